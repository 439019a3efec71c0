"""Which unknown positions of a masked sequence model depend on each other, and decoding that uses it."""
