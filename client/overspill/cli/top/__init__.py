"""`overspill top`: what happens to tool outputs, by tool or tenant, as a live table."""
