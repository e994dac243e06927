"""Settings, and the sizes and durations in them."""
