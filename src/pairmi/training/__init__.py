"""Fitting denoisers and heads."""
