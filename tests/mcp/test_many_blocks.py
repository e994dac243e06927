"""Small blocks that are very many are one text, which is stored and becomes a notice."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from overspill import Guard, Policy
from overspill.guard.holdout import Holdout
from overspill.mcp.request import CALL, Request
from overspill.mcp.results import GuardedCall
from overspill.mcp.tool_names import ToolNames

NAMED: Final = {"uri": "file:///tmp/" + "u" * 100}
"""The address of a resource."""
FORMS: Final[dict[str, tuple[dict[str, Any], int]]] = {
    "empty texts": ({"type": "text", "text": ""}, 1),
    "texts of one character": ({"type": "text", "text": "x"}, 1),
    "texts with metadata": ({"type": "text", "text": "x", "_meta": {"k": "v" * 100}}, 1),
    "empty resources": ({"type": "resource", "resource": {**NAMED, "text": ""}}, 1),
    "small resources": ({"type": "resource", "resource": {**NAMED, "text": "x"}}, 2),
}
"""Blocks, and the lines that each makes."""


def call_of(guard: Guard, session: str | None = None) -> GuardedCall:
    request = Request(None, CALL, {"name": "many", "_meta": {}})
    return GuardedCall(guard, None, ToolNames((), drops_schemas=False), request, session)


async def shown(content: list[Any]) -> dict[str, Any]:
    found = await call_of(Guard()).result({"content": content, "isError": False})
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("form", FORMS)
async def test_of_blocks_that_are_too_many_the_first_stay_and_the_others_are_lines(form: str) -> None:
    block, lines = FORMS[form]
    found = await shown([block] * 9_000)
    kept = len(found["content"]) - 1

    assert 10 < kept <= 20
    assert found["content"][:-1] == [block] * kept
    assert found["_meta"]["overspill"]["total_lines"] == (9_000 - kept) * lines
    assert len(json.dumps(found)) < 20_000


async def test_pictures_between_blocks_that_are_too_many_stay() -> None:
    picture = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    found = await shown([*[FORMS["small resources"][0]] * 3_000, picture])

    assert found["content"][-2] == picture
    assert len(found["content"]) <= 22


async def test_metadata_of_a_few_blocks_stays() -> None:
    content = [{"type": "text", "text": "x", "_meta": {"k": "v" * 300_000}}] * 30

    assert (await shown(content))["content"] == content


async def test_the_blocks_of_a_tool_that_is_exempt_stay() -> None:
    result = {"content": [FORMS["texts with metadata"][0]] * 9_000}
    guard = Guard(policy=Policy(exempt=frozenset({"many"})))

    assert await call_of(guard).result(result) is result


async def test_the_blocks_of_a_session_that_is_held_out_stay() -> None:
    result = {"content": [FORMS["texts of one character"][0]] * 9_000}
    guard = Guard(holdout=Holdout(name="whole", share=1 - 1e-15))

    assert await call_of(guard, "one").result(result) is result
