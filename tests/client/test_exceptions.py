"""Exceptions: the type and all that programs read stays, what a model reads is the notice."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import pickle
import subprocess
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pydantic
import pytest
from overspill.guard.guard import Guard
from overspill.previews.notice_facts import Facts
from overspill.shapes.examination import examine
from overspill.shapes.exceptions import ExceptionShape
from overspill.text.limits import Limits
from overspill.wire import Outcome

from tests import notices
from tests.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import Callable

    import pydantic_ai
else:
    pydantic_ai = LazyModule("pydantic_ai")

ID = "cap_abcdefghij234567abcd"
NOTICE = notices.captured(
    Facts(id=ID, tool="t", size=9_999, lines=99, preview="shown", reader="read {id}"),
    datetime(2026, 11, 22, tzinfo=UTC),
)
TEXT = str(NOTICE)
LONG = "x" * 50_001
LIMITS = Limits(50_000, 2_000)


class Coded(Exception):
    """Has arguments of its own, and keeps the message in an attribute."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class Slotted(Exception):
    __slots__ = ("status",)

    def __init__(self, status: int, *, message: str) -> None:
        super().__init__(message)
        self.status = status


class Told(OSError):
    def __init__(self, path: str) -> None:
        super().__init__(2, LONG, path)


class Registered(Exception):
    known: list[type] = []  # noqa: RUF012

    def __init_subclass__(cls) -> None:
        raise TypeError("no more classes")

    def __str__(self) -> str:
        return LONG


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def thrown(error: BaseException) -> Any:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def replaced(error: Exception) -> Any:
    found = examine(error)
    assert isinstance(found, ExceptionShape)
    assert found.exceeds(LIMITS)
    return found.replaced(NOTICE)


def unicode_error() -> UnicodeDecodeError:
    return UnicodeDecodeError("utf-8", b"\xff" * 100, 0, 1, LONG)


# --- the type stays -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: ValueError(LONG),
        lambda: KeyError(LONG),
        lambda: OSError(28, LONG),
        lambda: FileNotFoundError(2, "no", LONG),
        lambda: ImportError(LONG, name="a", path="b"),
        lambda: SyntaxError(LONG, ("f.py", 1, 2, "text")),
        lambda: StopIteration(LONG),
        lambda: AttributeError(LONG, name="a", obj=1),
        lambda: ValueError(LONG, {"more": 1}),
        lambda: ValueError({"detail": LONG}),
        unicode_error,
        lambda: Coded(7, LONG),
        lambda: Slotted(7, message=LONG),
        lambda: Told("/a"),
        lambda: pydantic_ai.ModelRetry(LONG),
        lambda: subprocess.CalledProcessError(1, LONG, output="o"),
        lambda: ExceptionGroup(LONG, [ValueError("small")]),
        lambda: TimeoutError(LONG),
    ],
)
def test_an_exception_stays_one_of_its_type_and_says_the_notice(make: Any) -> None:
    error = thrown(make())
    new = replaced(error)

    assert isinstance(new, type(error))
    assert type(new).__name__ == type(error).__name__
    assert TEXT in str(new)
    assert len(str(new)) < len(TEXT) + 100
    assert len(repr(new)) < 2 * len(TEXT) + 100


EVERY = [
    kind
    for kind in vars(builtins).values()
    if isinstance(kind, type)
    and issubclass(kind, Exception)
    and not issubclass(kind, (UnicodeError, ExceptionGroup))
]


@pytest.mark.parametrize("kind", EVERY)
def test_every_exception_of_python_can_be_clamped(kind: Any) -> None:
    new = replaced(thrown(kind(LONG)))

    assert isinstance(new, kind)
    assert str(new) == TEXT


def test_a_plain_exception_is_of_exactly_its_class() -> None:
    assert type(replaced(ValueError(LONG))) is ValueError


def test_a_validation_error_of_pydantic_is_one_still() -> None:
    class Model(pydantic.BaseModel):
        numbers: list[int]

    with pytest.raises(pydantic.ValidationError) as caught:
        Model(numbers=["x"] * 1_000)  # type: ignore[list-item]
    new = replaced(caught.value)

    assert type(new) is pydantic.ValidationError
    assert [line["msg"] for line in new.errors()] == [TEXT]
    assert new.title == "Model"


# --- so do attributes, causes and tracebacks ------------------------------------------------------


def test_attributes_that_programs_read_stay() -> None:
    new = replaced(OSError(28, LONG, "/a"))
    told = replaced(Told("/b"))
    process = replaced(subprocess.CalledProcessError(3, LONG, output=LONG, stderr="e"))
    slotted = replaced(Slotted(7, message=LONG))
    broken = replaced(unicode_error())

    assert (new.errno, new.filename) == (28, "/a")
    assert (told.errno, told.filename) == (2, "/b")
    assert (process.returncode, process.output, process.stderr) == (3, LONG, "e")
    assert slotted.status == 7
    assert (broken.encoding, broken.start, broken.end) == ("utf-8", 0, 1)


def test_an_attribute_that_is_the_message_says_the_notice_too() -> None:
    new = replaced(pydantic_ai.ModelRetry(LONG))

    assert new.message == TEXT


def test_the_original_is_not_changed() -> None:
    error = pydantic_ai.ModelRetry(LONG)
    replaced(error)

    assert (str(error), error.message, error.args) == (LONG, LONG, (LONG,))


def test_cause_context_and_traceback_stay() -> None:
    def fail() -> None:
        try:
            dict[str, int]()["first"]
        except KeyError as first:
            raise ValueError(LONG) from first

    with pytest.raises(ValueError) as caught:
        fail()
    new = replaced(caught.value)

    assert new.__cause__ is caught.value.__cause__
    assert new.__context__ is caught.value.__context__
    assert new.__suppress_context__
    assert new.__traceback__ is caught.value.__traceback__


def test_short_notes_stay_and_long_ones_are_in_the_capture() -> None:
    short, long = ValueError(LONG), ValueError("short")
    short.add_note("Try the other one.")
    long.add_note(LONG)
    found = examine(long)

    assert replaced(short).__notes__ == ["Try the other one."]
    assert replaced(long).__notes__ == [TEXT]
    assert found is not None
    assert LONG in str(found.body)


@pytest.mark.parametrize("error", [ValueError(LONG), Coded(7, LONG), OSError(28, LONG, "/a")])
def test_a_clamped_exception_can_be_sent_to_another_process(error: Any) -> None:
    again = pickle.loads(pickle.dumps(replaced(error)))

    assert isinstance(again, type(error))
    assert str(again) == TEXT


# --- what is captured -----------------------------------------------------------------------------


def test_the_capture_is_the_traceback_as_python_prints_it() -> None:
    def fail() -> None:
        raise ValueError(LONG)

    try:
        fail()
    except ValueError as error:
        found = examine(error)

    assert found is not None
    lines = str(found.body).splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == f"ValueError: {LONG}"
    assert any("in fail" in line for line in lines)


def test_a_long_traceback_of_a_short_message_stays_inline() -> None:
    error: Exception = ValueError("short")
    for number in range(200):
        following = ValueError(f"{number} " * 100)
        following.__cause__ = error
        error = following
    last = ValueError("short")
    last.__cause__ = error
    found = examine(last)

    assert found is not None
    assert not found.exceeds(LIMITS)
    assert len(found.body) > 50_000


def test_members_of_a_group_count_and_are_clamped_each() -> None:
    group = ExceptionGroup("two", [ValueError("small"), ExceptionGroup("in", [KeyError(LONG)])])
    new = replaced(group)
    small, (inner,) = new.exceptions[0], new.exceptions[1].exceptions

    assert small is group.exceptions[0]
    assert isinstance(inner, KeyError)
    assert str(inner) == TEXT
    assert LONG in str(ExceptionShape(group).body)
    assert new.subgroup(KeyError) is not None


def test_one_member_of_a_group_says_the_notice_and_the_other_long_ones_name_the_capture() -> None:
    group = ExceptionGroup("three", [ValueError(LONG), KeyError(LONG + LONG), ValueError("small")])
    first, second, third = replaced(group).exceptions

    assert str(first).startswith(f"[overspill {ID}: ")
    assert str(second) == TEXT
    assert third is group.exceptions[2]


def noted(error: Exception, note: str) -> Exception:
    error.add_note(note)
    return error


@pytest.mark.parametrize(
    "make",
    [
        lambda: noted(ValueError("short"), LONG),
        lambda: noted(Coded(7, "short"), LONG),
        lambda: noted(OSError(28, "short"), LONG),
        lambda: ExceptionGroup("short", [ValueError("small"), KeyError(LONG)]),
        lambda: ExceptionGroup("short", [noted(ValueError("small"), LONG)]),
        lambda: ExceptionGroup("short", [ValueError("x" * 60)] * 1_000),
        lambda: noted(ExceptionGroup("short", [ValueError("small")]), LONG),
    ],
)
def test_a_short_message_stays_whatever_is_long_beside_it(make: Any) -> None:
    error = thrown(make())
    new = replaced(error)
    found = examine(new)

    assert (str(new), type(new)) == (str(error), type(error))
    assert found is not None
    assert found.notices()[0] == TEXT


# --- difficult ones -------------------------------------------------------------------------------


def test_an_exception_that_cannot_say_what_it_is_is_described() -> None:
    found = examine(Mute())

    assert found is not None
    assert not found.exceeds(LIMITS)
    assert "Mute" in str(found.body)


def test_an_exception_whose_class_allows_no_other_passes_as_it_is() -> None:
    guard, error = Guard(spool=False), Registered(LONG)
    guarded = guard.process_sync(error, tool="t")

    assert guarded.value is error
    assert "no shorter copy of it can be made: Registered" in str(guarded.reason)
    assert guard.stats["t", Outcome.INLINE].left_whole == 1


def test_what_was_clamped_is_not_clamped_again() -> None:
    for error in (ValueError(LONG), Coded(7, LONG)):
        found = examine(replaced(error))

        assert found is not None
        assert found.notices()


def test_what_stops_a_program_is_no_output() -> None:
    assert not isinstance(examine(KeyboardInterrupt(LONG)), ExceptionShape)


async def test_what_gather_returns_is_clamped_like_what_is_raised() -> None:
    async def fail() -> None:
        raise ValueError(LONG)

    (error,) = await asyncio.gather(fail(), return_exceptions=True)

    assert isinstance(error, Exception)
    assert str(replaced(error)) == TEXT


@pytest.mark.parametrize(
    "make",
    [
        ValueError,
        KeyError,
        subprocess.SubprocessError,
        lambda text: pydantic_ai.ModelRetry(text),  # noqa: PLW0108  (imported when the test runs)
    ],
    ids=["ValueError", "KeyError", "SubprocessError", "ModelRetry"],
)
@pytest.mark.parametrize("is_raised", [True, False])
def test_a_very_long_message_is_captured_as_python_prints_it(
    make: Callable[[str], Exception], is_raised: bool
) -> None:
    error = make("a line\n" * 200_000)
    error.add_note("seen\ntwice")
    if is_raised:
        with contextlib.suppress(type(error)):
            raise error

    assert ExceptionShape(error).body == "".join(traceback.format_exception(error))


def test_the_causes_of_a_very_long_message_are_captured_with_it() -> None:
    error = ValueError("a line\n" * 200_000)
    error.__cause__ = KeyError("the cause")

    assert ExceptionShape(error).body == "".join(traceback.format_exception(error))
