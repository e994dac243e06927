"""Captures that grow: appends, segments, the end, and what readers see meanwhile."""
