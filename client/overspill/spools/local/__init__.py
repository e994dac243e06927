"""Bounded reads of captures on this machine's disk, with the answers that the service would give."""
