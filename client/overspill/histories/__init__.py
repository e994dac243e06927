"""Histories of messages: made shorter before they are saved, or when a call with them is too large."""
