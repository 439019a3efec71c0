"""Decoding rules, one per file: which masked positions to fill in one pass."""
