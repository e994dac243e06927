"""Structured content of every form gets short, and stays valid by its schema."""

from __future__ import annotations

import json
from typing import Any, Final

import jsonschema
import pytest
from overspill import Guard, Policy
from overspill.mcp.request import CALL, Request
from overspill.mcp.results import GuardedCall
from overspill.mcp.schema_room import with_room
from overspill.mcp.tool_names import ToolNames
from overspill.mcp.valid_results import shortened, validator

MOST: Final = 20_000
TEXT: Final[dict[str, Any]] = {"type": "string"}


def tree(depth: int) -> Any:
    return {"name": "node", "children": [tree(depth - 1) for _ in range(5)] if depth else []}


def listed(item: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, **more}


def record(*required: str, **properties: Any) -> dict[str, Any]:
    wanted = {"required": list(required), "additionalProperties": False}
    return {"type": "object", "properties": properties, **wanted}


FORMS: Final[dict[str, tuple[Any, Any]]] = {
    "a tree": (tree(6), record("name", "children", name=TEXT, children=listed({"$ref": "#"}))),
    "a list that must be long": (
        {"rows": ["y" * 900] * 500},
        record("rows", rows=listed(TEXT, minItems=500)),
    ),
    "a table": (
        {f"key {number}": number for number in range(30_000)},
        {"type": "object", "additionalProperties": {"type": "integer"}},
    ),
    "a table with long values": (
        {f"key {number}": {"text": "x" * 5_000} for number in range(300)},
        {"type": "object", "minProperties": 300, "additionalProperties": record("text", text=TEXT)},
    ),
    "a text that must be long": ({"text": "x" * 300_000}, record("text", text={**TEXT, "minLength": 1_000})),
    "lists of lists": ([[0.5] * 200] * 200, listed(listed({"type": "number"}, minItems=200))),
}


@pytest.mark.parametrize("form", FORMS)
def test_structured_content_gets_short_and_stays_valid(form: str) -> None:
    content, schema = FORMS[form]
    found = shortened(content, MOST, validator(schema, content))

    jsonschema.validate(found, schema)
    assert len(json.dumps(found, ensure_ascii=False)) <= MOST


def test_what_a_schema_wants_whole_stays_whole_beside_what_is_cut() -> None:
    content: dict[str, Any] = {"kind": "k" * 300, "rows": ["y" * 300] * 1_000, "count": 1_000}
    schema = record("kind", kind={"enum": ["k" * 300]}, rows=listed(TEXT), count={"type": "integer"})
    found = shortened(content, MOST, validator(schema, content))

    assert found == {**content, "rows": content["rows"][:5]}


DAY: Final = {"type": "string", "format": "date"}
NUMBERS: Final = list(range(12_000))
IN_BASE_64: Final = "QUJD" * 75_000
BY_ID: Final = {f"k{number}": number for number in range(12_000)}
"""A table."""
COUNTS: Final = record("rows", rows=listed({"type": "number"}))
ROW: Final = record("row", row={"type": "number"})
TEXT_ONLY: Final = record("text", text=TEXT)
CLOSED: Final[dict[str, tuple[Any, dict[str, Any]]]] = {
    "dates": ({"days": ["2026-11-28"] * 9_000}, record("days", days=listed(DAY))),
    "one address": ({"uri": "data:," + "x" * 300_000}, record("uri", uri={**TEXT, "format": "uri"})),
    "one pattern": ({"data": IN_BASE_64}, record("data", data={**TEXT, "pattern": "^[A-Za-z0-9+/]*={0,2}$"})),
    "a last item": ({"rows": NUMBERS}, record("rows", rows=listed({}, contains={"const": NUMBERS[-1]}))),
    "a reference": (
        {"rows": NUMBERS},
        {"type": "object", "$ref": "#/$defs/Rows", "$defs": {"Rows": COUNTS}},
    ),
    "references by place": (
        {"one": [{"row": number} for number in NUMBERS[:6_000]], "two": []},
        {
            **record("one", "two", one=listed(ROW), two={"$ref": "#/properties/one"}),
            "maxProperties": 2,
        },
    ),
    "one of two": ({"rows": NUMBERS}, {"type": "object", "oneOf": [COUNTS, TEXT_ONLY]}),
    "a table": (BY_ID, {"type": "object", "additionalProperties": {"type": "number"}}),
    "names of one form": (
        BY_ID,
        {"type": "object", "patternProperties": {"^k": {"type": "number"}}, "additionalProperties": False},
    ),
    "named names": ({"rows": NUMBERS}, {"type": "object", "propertyNames": {"enum": ["rows"]}}),
    "a list": (NUMBERS, listed({"type": "number"})),
}


async def shown(content: Any, schema: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return what a client gets of content that is too long, and the schema that it has for it."""
    names = ToolNames((), drops_schemas=False)
    names.listed({"tools": [{"name": "rows", "outputSchema": schema}], "nextCursor": "2"}, "2025-06-18")
    request = Request(None, CALL, {"name": "rows", "_meta": {}})
    found = await GuardedCall(Guard(), None, names, request).result(
        {"content": [], "structuredContent": content}
    )
    return found["structuredContent"], names.schemas["rows"]


@pytest.mark.parametrize("form", CLOSED)
async def test_the_notice_stands_in_content_that_is_closed_by(form: str) -> None:
    content, schema = CLOSED[form]
    found, given = await shown(content, schema)

    kind = jsonschema.Draft202012Validator
    kind.check_schema(given)
    kind(given).validate(content)
    kind(given, format_checker=kind.FORMAT_CHECKER).validate(found)
    assert len(json.dumps(found)) < 10_000
    assert "] Output of rows" in json.dumps(found)


def test_the_schema_of_a_table_names_no_entries_beside_those_that_it_had() -> None:
    names = ToolNames((), drops_schemas=False)
    table = {"type": "object", "additionalProperties": {"type": "number"}}
    names.listed({"tools": [{"name": "rows", "outputSchema": table}], "nextCursor": "2"}, "2025-06-18")

    assert "properties" not in names.schemas["rows"]
    assert table in names.schemas["rows"]["anyOf"]


@pytest.mark.parametrize(
    "described",
    [
        {"type": "integer", "format": "int64"},
        {"type": ["number", "null"], "format": "double"},
        {**TEXT, "format": "uri", "maxLength": 2083, "minLength": 1},
        {**TEXT, "default": {"format": "zip"}},
        {"type": "object", "properties": {"contains": {"type": "object", "properties": {}}}},
    ],
    ids=["a number", "a number or none", "a short address", "a default", "a name that is a word of schemas"],
)
def test_a_schema_of_what_is_never_long_stays_as_it_is(described: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"one": described}, "required": ["one"]}

    assert with_room(schema) is schema


def test_entries_that_are_a_list_are_none() -> None:
    schema = {"type": "object", "properties": ["one"], "additionalProperties": False}

    assert schema in with_room(schema)["anyOf"]


async def test_a_text_with_a_pattern_that_only_clients_can_check_stays_as_it_was_or_goes() -> None:
    letters = record("name", "text", name=TEXT, text={**TEXT, "pattern": r"^\p{L}+$"})
    found, _ = await shown({"name": "log", "text": "a" * 300_000}, letters)

    assert found.keys() == {"name", "overspill"}


def test_a_text_with_a_format_stays_as_it_was() -> None:
    content = {"days": ["2026-11-28"] * 9_000}
    schema = record("days", days=listed(DAY))
    found = shortened(content, MOST, validator(schema, content))

    assert found == {"days": ["2026-11-28"] * len(found["days"])}


async def test_structured_content_keeps_to_a_limit_in_tokens() -> None:
    schema = listed(record("number", number={"type": "integer"}))
    content = [{"number": number} for number in range(9_000)]
    result = {"content": [{"type": "text", "text": json.dumps(content)}], "structuredContent": content}
    names = ToolNames((), drops_schemas=False)
    names.listed({"tools": [{"name": "rows", "outputSchema": schema}], "nextCursor": "2"}, "2025-06-18")
    request = Request(None, CALL, {"name": "rows", "_meta": {}})
    found = await GuardedCall(Guard(), Policy(max_bytes=500_000, max_tokens=2_000), names, request).result(
        result
    )

    jsonschema.validate(found["structuredContent"], names.schemas["rows"])
    assert len(json.dumps(found["structuredContent"])) < 10_000
