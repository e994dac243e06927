"""A test that leaves something open is the one that fails."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from tests import leaks


class Circle:
    """Only the garbage collector finds that nobody has it any more."""

    def __init__(self, held: object) -> None:
        self.held, self.itself = held, self


def ended(work: Any) -> None:
    """Run `work` as a test whose fixtures are done."""
    item: Any = SimpleNamespace(stash=pytest.Stash())
    leaks.pytest_runtest_setup(item)
    hook = leaks.pytest_runtest_teardown(item)
    next(hook)
    work()
    with pytest.raises(StopIteration):
        next(hook)


def test_a_socket_that_nobody_closed_is_the_failure_of_the_test_that_made_it() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"^left open: unclosed <socket\.socket"):
        ended(lambda: Circle(socket.socket()))


def test_what_is_still_in_use_is_none() -> None:
    kept: list[socket.socket] = []
    ended(lambda: kept.append(socket.socket()))

    kept[0].close()
