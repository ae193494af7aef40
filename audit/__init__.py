"""Slow trials of the book's own checks; their last results are in ``results/``."""
