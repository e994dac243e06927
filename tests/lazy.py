"""Import libraries that take seconds to import when a test first needs them.

Each process of a parallel run imports all files of tests, and runs only its share of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """A module that is imported when one of its names is asked for first."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks at all that a file of tests holds
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
