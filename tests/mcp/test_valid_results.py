"""Structured content of every form gets short, and stays valid by its schema."""

from __future__ import annotations

import json
from typing import Any, Final

import jsonschema
import pytest
from overspill import Guard, Policy
from overspill.mcp.request import CALL, Request
from overspill.mcp.results import guarded
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
    found = shortened(content, MOST, validator(schema))

    jsonschema.validate(found, schema)
    assert len(json.dumps(found, ensure_ascii=False)) <= MOST


def test_what_a_schema_wants_whole_stays_whole_beside_what_is_cut() -> None:
    content: dict[str, Any] = {"kind": "k" * 300, "rows": ["y" * 300] * 1_000, "count": 1_000}
    schema = record("kind", kind={"enum": ["k" * 300]}, rows=listed(TEXT), count={"type": "integer"})
    found = shortened(content, MOST, validator(schema))

    assert found == {**content, "rows": content["rows"][:5]}


async def test_structured_content_keeps_to_a_limit_in_tokens() -> None:
    schema = listed(record("number", number={"type": "integer"}))
    content = [{"number": number} for number in range(9_000)]
    result = {"content": [{"type": "text", "text": json.dumps(content)}], "structuredContent": content}
    names = ToolNames((), drops_schemas=False)
    names.listed({"tools": [{"name": "rows", "outputSchema": schema}], "nextCursor": "2"}, "2025-06-18")
    request = Request(None, CALL, {"name": "rows", "_meta": {}})
    found = await guarded(Guard(), Policy(max_bytes=500_000, max_tokens=2_000), names, request, result)

    jsonschema.validate(found["structuredContent"], names.schemas["rows"])
    assert len(json.dumps(found["structuredContent"])) < 10_000
