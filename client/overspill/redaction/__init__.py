"""Finds secrets in text and masks them: pure, for whole texts and for text that comes in chunks."""
