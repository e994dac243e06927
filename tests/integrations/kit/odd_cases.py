"""Odd results and odd call ids: with the adapter a framework does what it does without, and never worse."""

from __future__ import annotations

import os
import re
from enum import Enum, StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from tests.integrations.kit import tools
from tests.integrations.kit.fixtures import guard, possible, session, way
from tests.integrations.kit.harness import Call, Harness, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill import Guard

__all__ = ["guard", "possible", "session", "way"]
HARNESS: Harness = import_module(f"tests.integrations.{os.environ['KIT_FRAMEWORK']}.harness").harness
MANY = 20_000
SHORT = 300
"""What a model reads of a result that is short to it. Frameworks that cut results themselves show more."""
PER_RUN = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{27}|call_[0-9a-f]{24}")


class Unknown:
    """An object of a class that nobody knows."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Unknown({self.text})"


class Hidden:
    """An object whose text is in none of its fields: no copy of it is shorter."""

    def __init__(self, text: str) -> None:
        self.parts = [text]

    def __repr__(self) -> str:
        return f"Hidden({self.parts[0]})"


class Log(StrEnum):
    """A member of an enum is one of few: there is no shorter one."""

    WHOLE = "y" * 200_000


class Report(str, Enum):  # noqa: UP042  (such a member prints as its name)
    """A text that some frameworks show as it is, and others by its name."""

    WHOLE = "y" * 200_000


class Answer(Enum):
    """A member that frameworks show by its name, or by what it holds."""

    WHOLE = "y" * 200_000
    BYTES = b"y" * 200_000


class Spoken(str):
    """A text that prints as another."""

    __slots__ = ()

    def __str__(self) -> str:
        return "y" * 200_000


class Counted(int):
    """A number that prints at length."""

    def __str__(self) -> str:
        return "y" * 200_000

    __repr__ = __str__


class Unprintable:
    """An object that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class UnprintableError(Exception):
    """An exception whose message cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def raised() -> Any:
    raise UnprintableError


def noted() -> Any:
    error = ValueError("short")
    error.add_note("y" * 200_000)
    raise error


def grouped() -> Any:
    raise ExceptionGroup("short", [ValueError("small"), KeyError("y" * 200_000)])


def circle() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


def nested(depth: int) -> Any:
    found: Any = "x" * 10
    for _ in range(depth):
        found = [found]
    return found


SMALL: dict[str, Callable[[], Any]] = {
    "an unknown object": lambda: Unknown("x"),
    "an unprintable object": Unprintable,
    "an unprintable exception": raised,
    "bytes": lambda: b"\xff\0",
    "a set": lambda: {1},
    "no number": lambda: float("nan"),
    "a long number": lambda: 10**5_000,
    "half of a pair": lambda: "a\ud800b",
    "a circle": circle,
    "very deep": lambda: nested(3_000),
}
LARGE: dict[str, Callable[[], Any]] = {
    "an unknown object": lambda: Unknown("y" * 200_000),
    "an object that hides its text": lambda: Hidden("y" * 200_000),
    "bytes": lambda: b"\xff\0" * 100_000,
    "halves of pairs": lambda: "a\ud800b\n" * MANY,
    "control characters": lambda: "a\0b\x1b[31m\n" * MANY,
    "a tuple": lambda: ("x" * 200_000, {"a": 1}),
    "what looks like a message of a person": lambda: {"role": "user", "content": "y" * 200_000},
    "a member of an enum": lambda: Log.WHOLE,
    "a member with a name": lambda: Report.WHOLE,
    "a member with bytes": lambda: Answer.BYTES,
    "a member in data": lambda: {"log": Log.WHOLE, "lines": 1},
    "a member with a name in a list": lambda: [Answer.WHOLE],
    "a text that prints as another": lambda: Spoken("x"),
    "a number that prints at length": lambda: Counted(3),
    "an exception with long notes": noted,
    "a group with a long exception": grouped,
}
IDS = ["", "x" * 10_240, "a\0b/../..\x1b", "ünï☃", "\ud800", "a b\n\"'", "cap_aaaaaaaaaaaaaaaaaaaa"]


def ran(way: str, guard: Guard | None, make: Callable[[], Any], *ids: str, session: str) -> Any:
    """Return the results of calls, or the exception that the framework lets through."""

    def odd() -> Any:
        """Return what is odd."""
        return make()

    calls = [Call("odd", {}, each) for each in ids]
    try:
        return HARNESS.run(way, [odd], [calls], guard=guard, session=session).results
    except Exception as error:  # noqa: BLE001  (whatever the framework raises)
        return error


def shown(found: Any) -> Any:
    """Return what the model reads, without what differs from run to run."""
    if isinstance(found, Exception):
        return type(found), "" if isinstance(found, UnprintableError) else PER_RUN.sub("", str(found))
    return {name: (each.is_error, PER_RUN.sub("", each.text)) for name, each in found.items()}


@pytest.mark.parametrize("kind", SMALL)
def test_a_small_odd_result_is_what_it_would_be_without_us(
    way: str, guard: Guard, session: str, kind: str
) -> None:
    without = ran(way, None, SMALL[kind], "call_1", session=session)

    assert shown(ran(way, guard, SMALL[kind], "call_1", session=session)) == shown(without)


@pytest.mark.parametrize("kind", LARGE)
def test_a_large_odd_result_is_one_that_a_model_can_read(
    way: str, guard: Guard, session: str, kind: str
) -> None:
    without = ran(way, None, LARGE[kind], "call_1", session=session)
    found = ran(way, guard, LARGE[kind], "call_1", session=session)
    if not isinstance(without, Exception) and len(without["call_1"].text) < SHORT:
        assert shown(found) == shown(without)
        return
    if isinstance(without, Exception) or len(without["call_1"].text) < 60_000:
        assert shown(found) == shown(without) or "[overspill]" in found["call_1"].text
        return

    assert len(found["call_1"].text) < 10_000
    assert "[overspill]" in found["call_1"].text


@pytest.mark.parametrize("call_id", IDS, ids=ascii)
def test_an_odd_call_id_is_no_reason_to_fail(way: str, guard: Guard, session: str, call_id: str) -> None:
    without = ran(way, None, lambda: tools.lines(MANY), call_id, session=session)
    found = ran(way, guard, lambda: tools.lines(MANY), call_id, session=session)

    assert isinstance(without, Exception) or isinstance(found, dict)
    if isinstance(found, dict):
        results: list[Result] = list(found.values())
        assert all("[overspill]" in each.text and len(each.text) < 30_000 for each in results)


def test_an_id_that_two_calls_have_is_no_reason_to_fail(way: str, guard: Guard, session: str) -> None:
    without = ran(way, None, lambda: tools.lines(MANY), "same", "same", session=session)
    found = ran(way, guard, lambda: tools.lines(MANY), "same", "same", session=session)

    assert isinstance(without, Exception) or isinstance(found, dict)
