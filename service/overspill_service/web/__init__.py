"""HTTP: one route registry, handlers of about ten lines, one table from failures to problems."""
