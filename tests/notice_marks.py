"""Notices without their marks, to compare the words."""

from __future__ import annotations

import re


def bare(text: str) -> str:
    """`text` with every mark of a notice, or of a last line with a handle, taken out. One has to be there."""
    found, number = re.subn(r" [0-9]{12}\](?=\Z|[\"'\\\n])", "]", text)

    assert number, "there is no mark in it"
    return found
