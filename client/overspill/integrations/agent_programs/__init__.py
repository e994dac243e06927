"""Agent programs without code: the events of their hooks, and how their settings name a hook."""
