"""Scores of pairs of positions as results: numbers, pictures, pages, files."""
