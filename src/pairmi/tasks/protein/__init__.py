"""Proteins: reading them, and how good generated ones are."""
