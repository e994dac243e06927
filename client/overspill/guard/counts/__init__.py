"""Counts of all outputs that passed a guard: kept, reported to the service, shown to Prometheus."""
