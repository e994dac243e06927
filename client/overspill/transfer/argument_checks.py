"""Checks of what a caller gives: a value of a wrong type must never be searched for, or stored as text."""

from __future__ import annotations

import math
from typing import Any, Final

SHA256_BYTES: Final = 32


def check_text(name: str, value: Any) -> None:
    """Check that `value` is a `str`. Raises `TypeError`, which names it."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text (str), not {type(value).__name__}")


def checked_text(name: str, value: str) -> str:
    """Return `value`, as `check_text` checks it."""
    check_text(name, value)
    return value


def check_reference(ref: Any) -> None:
    """Check that a reference to a capture is a `str`. Raises `TypeError`, which says what a reference is."""
    if not isinstance(ref, str):
        type_name = type(ref).__name__
        raise TypeError(
            f"a capture is named by its id, such as cap_…, or by call(tool-call id), not by {type_name}"
        )


def check_digest(sha256: Any) -> None:
    """Check a digest that the caller has computed. Raises `ValueError`."""
    if sha256 is not None and (not isinstance(sha256, bytes) or len(sha256) != SHA256_BYTES):
        raise ValueError(
            "sha256 must be the digest of the content as 32 bytes, as hashlib's `digest()` gives it"
        )


def check_labels(labels: Any) -> None:
    """Check that labels are texts by their names. Raises `TypeError`."""
    if not hasattr(labels, "items"):
        raise TypeError(f"labels must be a mapping of names to texts, not {type(labels).__name__}")
    for name, value in labels.items():
        check_text("the name of a label", name)
        check_text(f"the label {name}", value)


def check_seconds(name: str, seconds: Any) -> None:
    """Check a time in seconds that is more than 0. Raises `ValueError`."""
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or math.isnan(seconds) or seconds <= 0:
        raise ValueError(f"{name} must be a number of seconds above 0, not {seconds!r}")


def check_duration(name: str, seconds: Any) -> None:
    """Check that a time in seconds is a number. Raises `TypeError`."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {seconds!r}")


def check_count(name: str, number: Any) -> None:
    """Check a number of times. Raises `ValueError`."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ValueError(f"{name} must be a whole number from 0 on, not {number!r}")
