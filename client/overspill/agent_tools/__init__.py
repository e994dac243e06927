"""The tools with which agents read captures."""
