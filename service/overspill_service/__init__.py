"""The Overspill capture service."""
