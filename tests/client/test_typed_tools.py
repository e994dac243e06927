"""Typed tools of an MCP server, wrapped: every result is valid, and the model sees the handle."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from overspill import Guard
from pydantic import BaseModel

from tests.lazy import LazyModule

if TYPE_CHECKING:
    from mcp import client as mcp_client
    from mcp import server as mcp_server
else:
    mcp_client = LazyModule("mcp.client")
    mcp_server = LazyModule("mcp.server")


class Row(BaseModel):
    id: int
    name: str


class Report(BaseModel):
    rows: list[Row]
    log: str
    total: int


ROWS = [Row(id=number, name=f"n{number}") for number in range(2_500)]


def texts() -> list[str]:
    return ["x" * 50] * 1_500


def counts() -> dict[str, int]:
    return {f"k{number}": number for number in range(5_000)}


def lists() -> dict[str, list[int]]:
    return {f"k{number}": [number] * 9 for number in range(1_500)}


def rows() -> list[Row]:
    return ROWS


def report() -> Report:
    return Report(rows=ROWS, log="l\n" * 100, total=3)


async def text() -> str:
    return "x\n" * 30_000


def numbers() -> list[int]:
    return list(range(12_000))


async def called(tool: Any) -> Any:
    server = mcp_server.MCPServer("typed")
    server.tool()(Guard(spool=False).wrap(tool))
    async with mcp_client.Client(server) as client:
        return await client.call_tool(tool.__name__, {})


@pytest.mark.parametrize("tool", [texts, counts, lists, rows, report, text])
async def test_the_result_of_a_typed_tool_is_valid_and_short_and_says_what_became_of_it(tool: Any) -> None:
    result = await called(tool)
    said = "".join(block.text for block in result.content)

    assert not result.is_error
    assert "[overspill" in said
    assert result.structured_content is not None
    assert len(said) < 20_000


async def test_a_result_that_has_no_room_for_a_text_stays_whole_and_valid() -> None:
    result = await called(numbers)

    assert not result.is_error
    assert result.structured_content == {"result": numbers()}


@dataclass
class Rows:
    """A tool that is not a function, and that has no hash, as no dataclass has."""

    count: int

    def __call__(self) -> list[dict[str, str]]:
        return [{"name": f"row {number} of many"} for number in range(self.count)]


def test_a_tool_that_is_a_callable_object_keeps_what_its_annotation_says() -> None:
    made = Guard(spool=False).wrap(Rows(3_000))()

    assert len(made) < 100
    assert all(isinstance(row["name"], str) for row in made)


def test_the_annotation_counts_as_soon_as_pydantic_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def late() -> list[int]:
        return numbers()

    tool = Guard(spool=False).wrap(late)
    with monkeypatch.context() as earlier:
        earlier.delitem(sys.modules, "pydantic")
        unchecked = tool()

    assert unchecked != numbers()
    assert tool() == numbers()


def test_an_annotation_counts_as_soon_as_its_names_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def late() -> Later:  # type: ignore[name-defined]  # noqa: F821  (the name that is missing)
        return numbers()

    tool = Guard(spool=False).wrap(late)
    unchecked = tool()
    monkeypatch.setitem(late.__globals__, "Later", list[int])

    assert unchecked != numbers()
    assert tool() == numbers()
