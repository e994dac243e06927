"""HTTP: one route registry, short handlers, one table from failures to problems."""
