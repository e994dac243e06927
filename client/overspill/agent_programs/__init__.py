"""Agent programs without code: what their hooks are told, and how their settings name a hook."""
