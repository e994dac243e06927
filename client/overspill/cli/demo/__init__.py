"""`overspill demo`: a service of its own, three real tools, their notices, and reading back."""
