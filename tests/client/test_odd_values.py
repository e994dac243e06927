"""Values that are hard to look at: the guard always has something to capture, and never raises."""

import dataclasses
import json
import math
import re
import sys
from collections import UserDict, UserList, UserString, deque, namedtuple
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from unittest.mock import MagicMock
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from overspill.guard.guard import Guard
from overspill.shapes.envelope import Envelope
from overspill.shapes.examination import examine
from overspill.shapes.single_values import TextShape
from overspill.shapes.writer import Writer, as_text
from overspill.text import measure
from overspill.text.limits import Limits
from overspill.text.measure import extent_of
from overspill.text.rendering import plain_stats

from tests.client.shell import printed_by

TIGHT = Limits(100, 10)


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Word(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "not what it is"


class Broken:
    def __repr__(self) -> str:
        raise ValueError("no")


class Hostile:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("no")


class Point(msgspec.Struct):
    x: int


class Model(pydantic.BaseModel):
    x: Any


class Unserialisable(pydantic.BaseModel):
    def model_dump(self, **_: Any) -> Any:
        raise RuntimeError("no")


class Again:
    """Has another one of itself in it, whenever it is asked."""

    def model_dump(self) -> Any:
        return {"next": Again()}


class Endless(Sequence[int]):
    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, index: Any) -> Any:
        return index


@dataclasses.dataclass
class Record:
    x: Any


Pair = namedtuple("Pair", "a b")  # noqa: PYI024


def class_name(value: Any) -> str:
    return type(value).__name__


def body(value: Any) -> str:
    found = examine(value)
    assert found is not None
    return str(found.body)


def written(value: Any) -> str:
    pieces: list[str] = []
    Writer(pieces.append).value(value)
    return "".join(pieces)


def nested(depth: int) -> Any:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


# --- data -----------------------------------------------------------------------------------------


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=4) | st.integers() | st.none() | st.booleans(), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON)
def test_what_is_written_in_pieces_is_the_json_of_the_standard_library(value: Any) -> None:
    assert written(value) == json.dumps(value, ensure_ascii=False, indent=2)


ROWS = [{"n": number, "name": f"row\n{number}", "tags": ["a", [], {}]} for number in range(1_000)]


@pytest.mark.parametrize(
    "value",
    [
        ROWS,
        {"rows": ROWS, "more": {str(number): ROWS[number] for number in range(700)}},
        [ROWS, [[ROWS[:300]]], math.nan, "\ud800"],
        {number: number for number in range(1_000)},
        [*range(5_000), [*range(5_000)], *range(257)],
        {"log": 'a "line"\r\n\x7f\x1b\ud800\u2028 é😀\\' * 300_000, "code": 1},
    ],
    ids=range(6),
)
def test_large_data_is_written_as_the_standard_library_does(value: Any) -> None:
    assert body(value) == json.dumps(value, ensure_ascii=False, indent=2)


def test_of_large_data_only_what_json_lacks_is_written_otherwise() -> None:
    rows: list[Any] = list(range(1_000))
    rows[700] = Decimal("1.5")
    expected = [*range(700), "1.5", *range(701, 1_000)]

    assert body(rows) == json.dumps(expected, indent=2)


def test_data_of_more_than_is_kept_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overspill.shapes.writer._MAX_BYTES", 100_000)

    assert body(ROWS * 10).endswith("\n(the rest is left out: more than 100.0 KB)\n")


@pytest.mark.parametrize("shared", [[], {}, [1], {"a": [1, {"b": []}]}])
def test_what_appears_twice_is_written_twice(shared: Any) -> None:
    assert json.loads(as_text({"a": shared, "b": [shared, shared], 1: shared})) == {
        "a": shared,
        "b": [shared, shared],
        "1": shared,
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Word("abc"), "abc"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 11, 22), "2026-11-22"),
        (datetime(2026, 11, 22, 1, 2, tzinfo=UTC), "2026-11-22T01:02:00+00:00"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (PurePosixPath("/a/b"), "/a/b"),
        (ValueError("boom"), "ValueError: boom"),
        (range(10**9), "range(0, 1000000000)"),
        (b"\xff\xfe", "<2 bytes of application/octet-stream>"),
        (bytearray(b"ok"), "ok"),
        (1 + 2j, "(1+2j)"),
        (10**5000, hex(10**5000)),
        (Broken(), "<Broken that cannot be shown: ValueError>"),
    ],
    ids=class_name,
)
def test_single_values_are_written_as_exactly_as_json_can(value: Any, expected: Any) -> None:
    assert json.loads(body({"value": value})) == {"value": expected}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1), {"x": 1}),
        (Model(x=[1]), {"x": [1]}),
        (Record({"y"}), {"x": ["y"]}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (UserDict({"a": 1}), {"a": 1}),
        (UserList([1]), [1]),
        (deque([1, 2]), [1, 2]),
        ({"b": 1}.keys(), ["b"]),
        ({"b": 1}.values(), [1]),
        ({"b": 1}.items(), [["b", 1]]),
        (Pair(1, [2]), [1, [2]]),
        (frozenset({"z", "y"}), ["y", "z"]),
        (pydantic.RootModel[list[int]]([1]), [1]),
    ],
    ids=class_name,
)
def test_containers_and_records_are_written_as_data(value: Any, expected: Any) -> None:
    assert json.loads(body(value)) == expected
    assert json.loads(body([value])) == [expected]


class Letters(Sequence[Any]):
    """As other texts of other libraries: each item is a text again."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __getitem__(self, at: Any) -> "Letters":
        return Letters(self.text[at])

    def __len__(self) -> int:
        return len(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Letters) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text


def test_what_is_a_text_in_all_but_its_class_is_captured_as_one() -> None:
    assert body(UserString("hello")) == "hello"
    assert json.loads(body([UserString("hello"), Letters("hello")])) == ["hello", "hello"]


def test_items_of_a_set_that_print_alike_have_an_order() -> None:
    assert json.loads(body({1, "1", 1.5, "1.5"})) == [1, "1", 1.5, "1.5"]


@pytest.mark.parametrize("value", [10**5000, -(10**5000)], ids=["positive", "negative"])
def test_a_number_with_too_many_digits_to_print_is_captured_in_hexadecimal(value: int) -> None:
    assert int(body(value), 16) == value


def test_numbers_that_json_lacks_are_written_as_python_does() -> None:
    assert body([math.nan, math.inf, -math.inf]) == "[\n  NaN,\n  Infinity,\n  -Infinity\n]"


def test_keys_of_any_type_are_written() -> None:
    value = {Colour.RED: 1, (1, 2): 2, Broken(): 3, Level.HIGH: 4, None: 5, True: 6, b"k": 7, 10**5000: 8}

    assert list(json.loads(body(value)).values()) == [1, 2, 3, 4, 5, 6, 7, 8]


# --- depth, cycles, size --------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [150, 500, 100_000])
def test_any_depth_is_captured(depth: int) -> None:
    text = body(nested(depth))

    assert text.count("[") == text.count("]") == depth + 1
    assert len(text) < 100_000 + 2 * depth


def test_text_at_the_bottom_of_a_deep_list_is_there() -> None:
    value: Any = "treasure"
    for _ in range(5_000):
        value = {"a": [value]}

    assert "treasure" in body(value)


def test_cycles_end_where_they_begin_again() -> None:
    outer: dict[str, Any] = {}
    inner: list[Any] = [outer]
    outer["inner"] = [inner, inner]
    inner.append(inner)

    assert json.loads(body(outer)) == {
        "inner": [["<dict that holds itself>", "<list that holds itself>"]] * 2,
    }


def test_a_tool_result_that_holds_itself_is_looked_at() -> None:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": "a"}
    block["content"] = [block, {"type": "text", "text": "a"}]

    assert examine(block) is not None


def test_a_record_that_goes_on_for_ever_is_cut() -> None:
    assert 50 < body(Again()).count("next") < 500


def test_a_sequence_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overspill.text.rendering._MAX_ITEMS", 1_000)

    assert len(json.loads(body(Endless()))) == 1_000


def test_few_lists_that_stand_for_billions_are_cut() -> None:
    value: list[Any] = ["ha"]
    for _ in range(40):
        value = [value, value]
    pieces: list[str] = []
    Writer(pieces.append, max_values=10_000).value(value)

    assert plain_stats(value, 1_000_000) is None
    assert pieces[-1] == "\n… the rest is left out: there are too many values …\n"
    assert len(pieces) < 50_000


# --- objects --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Hostile, Unserialisable])
@pytest.mark.parametrize(
    "within",
    [lambda value: value, lambda value: {"a": value}, lambda value: [value], Record],
    ids=["alone", "in a dict", "in a list", "in a record"],
)
def test_what_its_own_methods_hide_is_described(kind: Any, within: Any) -> None:
    assert f"<{kind.__name__} that cannot be shown: RuntimeError>" in body(within(kind()))


def test_a_mock_is_no_data() -> None:
    assert examine(MagicMock()) is not None
    assert not isinstance(examine(MagicMock()), Envelope)


def test_an_object_is_captured_as_it_prints() -> None:
    class Table:
        def __str__(self) -> str:
            return "| a |\n" * 100

    found = examine(Table())

    assert found is not None
    assert found.body == "| a |\n" * 100
    assert found.exceeds(TIGHT)


def test_a_string_of_another_class_is_captured_as_the_text_that_it_holds() -> None:
    found = examine(Word("abc"))

    assert found is not None
    assert type(found.body) is str
    assert found.body == "abc"


def test_a_dict_whose_methods_raise_is_captured_all_the_same() -> None:
    class Shy(dict[str, int]):
        def get(self, *_: Any) -> Any:
            raise RuntimeError

        def items(self) -> Any:
            raise RuntimeError

        def __iter__(self) -> Iterator[str]:
            raise RuntimeError

    assert json.loads(body(Shy(a=1))) == {"a": 1}


# --- how cheaply it is known that data is small ---------------------------------------------------


@given(JSON.filter(lambda value: isinstance(value, (dict, list, tuple))))
def test_an_outline_never_promises_less_than_there_is(value: Any) -> None:
    found = plain_stats(value, 1_000)
    if found is not None:
        extent = extent_of(json.dumps(value, ensure_ascii=False, indent=2))

        assert extent.size <= found.most_bytes()


def test_small_data_is_not_rendered_to_see_that_it_is_small() -> None:
    found = examine({"rows": [{"n": number, "name": "x" * 20} for number in range(20)]})
    assert isinstance(found, Envelope)

    assert not found.exceeds(Limits(50_000, 2_000))
    assert "body" not in vars(found)


@given(
    JSON.filter(lambda value: isinstance(value, (dict, list, tuple))), st.integers(0, 300), st.integers(1, 9)
)
def test_data_exceeds_as_its_json_on_one_line_does(value: Any, size: int, lines: int) -> None:
    found = examine(value)
    if isinstance(found, Envelope):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        assume(not re.search(r"\de[+-]", text))  # numbers that others write as 0.00001 or 1e16

        assert found.exceeds(Limits(size, lines)) == (measure.size(text) > size)


@pytest.mark.parametrize(
    ("value", "is_light"),
    [
        ("x" * 60_000, True),
        ("x" * 70_000, False),
        ({"a": 1}, True),
        ({"a": "x" * 70_000}, False),
        (list(range(10_000)), False),
        (Record(1), False),
        ([{"type": "text", "text": "a"}, {"type": "image", "data": "x" * 1_000_000}], True),
        ([{"type": "text", "text": "x" * 70_000}], False),
        ({"content": [], "structuredContent": {"rows": list(range(10_000))}}, False),
        (ValueError("a"), True),
        (ValueError("x" * 70_000), False),
    ],
    ids=range(11),
)
def test_it_is_known_beforehand_what_takes_long_to_measure(value: Any, is_light: bool) -> None:
    found = examine(value)
    assert found is not None

    assert found.is_quick() == is_light


def test_of_a_very_long_text_it_is_known_at_once_that_it_is_too_long() -> None:
    assert TextShape("x" * 70_000).is_quick(Limits(50_000))


# --- size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["", b"", [], {}, "\n" * 100_000, b"\n" * 100_000, "x" * 1_000_000, b"\xff" * 1_000_000]
)
def test_empty_and_monotonous_outputs_are_measured_exactly(value: Any) -> None:
    found = examine(value)
    assert found is not None
    extent = extent_of(found.body)

    assert not found.exceeds(Limits(extent.size, extent.lines))
    assert not extent.size or found.exceeds(Limits(extent.size - 1, extent.lines))
    assert not extent.size or found.exceeds(Limits(extent.size, extent.lines - 1))


def test_an_enormous_text_is_measured_without_a_copy() -> None:
    code = (
        "import resource, sys\n"
        "from overspill.shapes.examination import examine\n"
        "from overspill.text.limits import Limits\n"
        "text = 'x' * 200_000_000\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert examine(text).exceeds(Limits(50_000, 2_000))\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(after - before)\n"
    )

    assert int(printed_by(code)) < 50_000


def test_an_object_whose_class_and_metaclass_raise_passes_as_it_is() -> None:
    class Raising(type):
        def __getattr__(cls, name: str) -> Any:
            raise RuntimeError(name)

    class Shy(metaclass=Raising):
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __repr__(self) -> str:
            raise RuntimeError("repr")

    value = Shy()
    guarded = Guard(spool=False).process_sync(value, tool="t")

    assert guarded.value is value
    assert Guard(spool=False).wrap(lambda: value)() is value
    assert Guard(spool=False).process_sync([value, "x" * 90_000], tool="t").outcome == "truncated"


def test_an_object_of_a_class_without_a_hash_passes_as_it_is() -> None:
    class Compared(type):  # noqa: PLW1641  (that is what is wrong with it)
        def __eq__(cls, other: object) -> bool:
            return cls is other

    class Odd(metaclass=Compared):
        pass

    value = Odd()

    assert Guard(spool=False).wrap(lambda: value)() is value


class Log(StrEnum):
    WHOLE = "line\n" * 20_000


class Named(str, Enum):  # noqa: UP042  (such a member prints as its name)
    WHOLE = "line\n" * 20_000


class Coded(Enum):
    WHOLE = "line\n" * 20_000


class Counted(int):
    def __str__(self) -> str:
        return "3" * 90_000


class Hidden:
    def __repr__(self) -> str:
        return "x" * 90_000


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (Log.WHOLE, lambda value: value),
        (Named.WHOLE, lambda value: value),
        ({"log": Log.WHOLE, "lines": 20_000}, lambda value: value["log"]),
        ({"log": Coded.WHOLE, "lines": 20_000}, lambda value: value["log"]),
        ([1, Coded.WHOLE], lambda value: value[1]),
        ({"digits": Decimal("3" * 90_000)}, lambda value: value["digits"]),
        (Record(Log.WHOLE), lambda value: value.x),
    ],
    ids=["text", "named", "in data", "other in data", "in a list", "number", "in a record"],
)
def test_a_notice_stands_as_a_plain_text_in_the_place_of_what_can_have_no_other_value(
    value: Any, kept: Any
) -> None:
    guarded = Guard(spool=False).process_sync(value, tool="t")

    assert type(kept(guarded.value)) is str
    assert kept(guarded.value) == str(guarded.notice)
    assert guarded.bytes_after < 10_000


@pytest.mark.parametrize("value", [Counted(3), Hidden(), [Hidden()]], ids=["number", "object", "list"])
def test_the_text_of_an_object_is_cut_and_counted_once_if_a_model_is_shown_that(value: Any) -> None:
    guard = Guard(spool=False)
    guarded = guard.process_sync(value, tool="t", is_printed=True)

    assert len(str(guarded.value)) < 10_000
    assert [each.count for each in guard.stats.values()] == [1]


@pytest.mark.parametrize("value", [Named.WHOLE, Coded.WHOLE], ids=["named", "other"])
def test_a_member_whose_name_is_shown_stays(value: Any) -> None:
    guarded = Guard(spool=False).process_sync(value, tool="t", is_printed=True)

    assert guarded.value is value


def test_shared_lists_that_stand_for_millions_are_written_in_bounded_parts() -> None:
    value: Any = [1, 2]
    for _ in range(23):
        value = [value, value]
    found = examine(value)

    assert found is not None
    assert len(found.body) < 50_000_000
    assert "the same list as above" in str(found.body)
