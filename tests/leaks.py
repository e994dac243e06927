"""Make a test fail that leaves files or connections open for the garbage collector.

Python warns of them when it collects them, and that fails whichever test of the process runs then.
"""

from __future__ import annotations

import gc
import os
import warnings
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEFORE: Final = pytest.StashKey[int]()
_YOUNG: Final = 1
"""The generation of the garbage collector with what a test made. All take a hundred times as long."""


def open_files() -> int:
    """How many files and sockets this process has open."""
    return len(os.listdir("/dev/fd"))  # noqa: PTH208  (`Path.iterdir` would take five times as long)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEFORE] = open_files()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Collect garbage after a test if more is open than before it."""
    yield
    if open_files() <= item.stash.get(_BEFORE, 0):
        return
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always", ResourceWarning)
        gc.collect(_YOUNG)
    if left:
        pytest.fail("left open: " + "; ".join(str(each.message) for each in left), pytrace=False)
