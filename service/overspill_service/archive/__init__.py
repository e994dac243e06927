"""Whole captures: stored, read, removed, swept, and recovered."""
