"""The guard: decides which outputs spill, and puts notices in their place."""
