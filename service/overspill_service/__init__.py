"""The Overspill capture service."""

from functools import cache
from importlib.metadata import version


@cache
def release() -> str:
    """Return the version of the installed distribution, whose metadata is read once."""
    return version("overspill-service")
