"""The error for a catalog URL that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urllib.parse import SplitResult


def wrong_url(parts: SplitResult, problem: str) -> ValueError:
    """Return the error. It names the URL without the password."""
    hosts = parts.netloc.rpartition("@")[2]
    shown = f"{parts.scheme}://{hosts}{parts.path}" if parts.netloc else f"{parts.scheme}:{parts.path}"
    return ValueError(f"catalog URL {shown}: {problem}")
