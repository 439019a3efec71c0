"""Work cut into units, and the engines that do them: here, or on Ray."""
