"""Serving processes."""
