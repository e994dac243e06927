"""Settings, where they come from, and the sizes and durations in them."""
