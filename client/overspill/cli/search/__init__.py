"""A search as grep makes it: what was asked for, the pages of its answer, and how lines are printed."""
