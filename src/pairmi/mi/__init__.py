"""Estimates of pairwise mutual information."""
