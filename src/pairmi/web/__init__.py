"""The explorer: one local page on the public functions."""
