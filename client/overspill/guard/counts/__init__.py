"""Counts of all outputs that passed a guard, and who is told of them."""
