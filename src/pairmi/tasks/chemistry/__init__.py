"""What is known of molecules and reactions."""
