"""Histories of messages, and calls that are too large with them."""
