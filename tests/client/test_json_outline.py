"""The outline of JSON that a preview shows before the JSON itself."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.previews.preview import preview
from overspill.text import measure

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=20), inner, max_size=6),
    max_leaves=40,
)

ORDER = "{id: number, name: string, tags: array of 0-3 strings, paid: boolean, note: null}"


def sketched(value: Any, *, indent: int | None = None) -> list[str]:
    """The lines before the text itself."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    shown = preview(text, 2_048)
    return shown[: shown.index(text[:10])].splitlines()


def orders(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "name": f"order {number}",
            "tags": ["new"] * (number % 4),
            "paid": number % 2 == 0,
            "note": None,
        }
        for number in range(count)
    ]


def test_the_shape_names_keys_types_and_lengths() -> None:
    assert sketched(orders(1_204)) == ["JSON: array of 1,204 objects " + ORDER]


def test_an_indented_text_has_the_same_shape() -> None:
    assert sketched(orders(500)) == sketched(orders(500), indent=2)


def test_the_first_items_follow_the_shape() -> None:
    text = json.dumps(orders(1_000))
    head = preview(text, 2_048).splitlines()[1]

    assert len(head) > 800
    assert text.startswith(head)


def test_members_that_only_some_objects_have_and_mixed_types_are_marked() -> None:
    rows = [{"a": 1}, {"a": "x", "b": [[1, 2], [3, 4]]}, {"a": None}] * 400

    assert sketched(rows) == [
        "JSON: array of 1,200 objects {a: number|string|null, b?: array of 2 arrays of 2 numbers}"
    ]


def test_members_that_tell_of_errors_are_shown_with_their_paths() -> None:
    results = orders(900)
    results[511] |= {"error": {"code": "E_RATE", "message": "no rate for XAU"}}
    results[600] |= {"status": "failed", "reason": "the card has expired"}

    assert sketched({"status": "partial", "results": results})[1:] == [
        'at $.results[511]: error: {"code":"E_RATE","message":"no rate for XAU"}, name: "order 511", id: 511',
        'at $.results[600]: status: "failed", reason: "the card has expired", name: "order 600", id: 600',
    ]


def test_errors_that_are_alike_are_shown_once_with_a_count() -> None:
    rows = [{"id": number, "error": f"timeout after {number} ms"} for number in range(900)]

    assert sketched(rows)[1:] == ['at $[0]: error: "timeout after 0 ms", id: 0 (and 899 more like it)']


def test_of_very_many_errors_no_more_are_told_than_are_counted() -> None:
    rows = [{"id": number, "error": f"timeout after {number} ms"} for number in range(2_000)]

    assert sketched(rows)[1:] == [
        'at $[0]: error: "timeout after 0 ms", id: 0 (and at least 999 more like it)'
    ]


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
def test_an_error_that_says_there_is_none_is_not_shown(value: Any) -> None:
    assert len(sketched([{"error": value, "status": "ok", "exit_code": 0}] * 900)) == 1


def test_json_lines_are_told_from_json() -> None:
    text = "".join(json.dumps(order) + "\n" for order in orders(900))

    assert preview(text, 2_048).startswith("JSON Lines: 900 of object " + ORDER + '\n{"id": 0, ')


def test_of_a_long_text_the_beginning_is_sketched() -> None:
    text = json.dumps({"rows": orders(60_000)})
    assert len(text) > 4_000_000

    assert preview(text, 2_048).startswith(
        "JSON (from its beginning): object {rows: array of 395+ objects {id: number, name: string, "
        "tags: array of 0-3 strings, paid: boolean, note: null}}\n"
    )


def test_hostile_keys_stay_on_their_line_and_within_bounds() -> None:
    rows = [{"a\nb\x1b[2J\u202e": 1, "k" * 500: 2, "": 3}] * 600
    lines = sketched(rows)

    assert len(lines) == 1
    assert lines[0].startswith('JSON: array of 600 objects {"a\\nb')
    assert "\x1b" not in lines[0]
    assert "\u202e" not in lines[0]
    assert len(lines[0]) < 300


def test_deep_nesting_is_no_trouble() -> None:
    deep = "[" * 100_000 + "]" * 100_000

    assert len(preview(deep, 2_048)) <= 2_048
    assert preview('{"a":' * 900 + "1" + "}" * 900 + " " * 9_000, 2_048).startswith(
        "JSON: object {a: object {a: object {a: object {a: object {…}}}}}\n"
    )


def test_what_only_begins_like_json_is_shown_as_text() -> None:
    assert preview("[info] all is well here\n" * 500, 1_000).startswith("[info] all is well here\n…")


@given(JSON.filter(lambda value: isinstance(value, (list, dict))), st.integers(0, 3_000), st.integers(0, 60))
def test_a_sketch_keeps_within_the_budgets(value: Any, max_bytes: int, max_lines: int) -> None:
    for indent in None, 1:
        text = json.dumps([value] * 30, indent=indent, ensure_ascii=False)
        shown = preview(text, max_bytes, max_lines)

        assert len(shown.encode()) <= max_bytes
        assert measure.count_lines(shown) <= max_lines
        assert shown == preview(text, max_bytes, max_lines)
