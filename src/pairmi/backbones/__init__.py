"""Masked sequence models behind one protocol."""
