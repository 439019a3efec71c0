"""Grids of experiments, their statistics and reports."""
