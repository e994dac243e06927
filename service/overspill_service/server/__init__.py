"""The serving processes: one of them, and the supervisor of several."""
