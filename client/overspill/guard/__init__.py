"""The guard: what spills, how an output passes, and what the model gets in its place."""
