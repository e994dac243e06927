"""Properties of every shape that tools return: the envelope survives, and nothing is longer than before."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import pydantic
import pydantic_core
from hypothesis import given
from hypothesis import strategies as st
from overspill import Guard, Policy

from tests.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.genai import types as genai
    from langchain_core import messages as chain
    from langgraph import types as graph
    from mcp import types as mcp
else:
    mcp = LazyModule("mcp.types")
    chain = LazyModule("langchain_core.messages")
    graph = LazyModule("langgraph.types")
    genai = LazyModule("google.genai.types")

PICTURE = "iVBORw0KGgo" + "A" * 400
TEXTS = st.builds(
    lambda word, times: word * times,
    st.sampled_from(["word ", "line of text\n", '{"a": 1}\n', "é", "x"]),
    st.sampled_from([1, 3, 40, 400, 4_000]),
)
DATA = st.recursive(
    TEXTS | st.integers(-(10**9), 10**9) | st.booleans() | st.none(),
    lambda below: (
        st.lists(below, max_size=5)
        | st.tuples(below, below)
        | st.dictionaries(st.sampled_from(["a", "b", "output", "rows", "log"]), below, max_size=4)
    ),
    max_leaves=12,
)


class Point(NamedTuple):
    id: str
    output: Any
    is_error: bool


@dataclasses.dataclass(frozen=True)
class Row:
    id: str
    output: Any
    is_error: bool


class Model(pydantic.BaseModel):
    id: str
    output: Any
    is_error: bool


class Shape(NamedTuple):
    """A result around texts and data, and the ids, statuses and flags that must still be there."""

    name: str
    make: Callable[[list[str], Any], Any]
    kept: Callable[[Any], Any]


def message(texts: list[str], **more: Any) -> chain.ToolMessage:
    blocks: list[Any] = [{"type": "text", "text": text} for text in texts]
    return chain.ToolMessage(blocks, tool_call_id="call_1", status="error", name="grep", **more)


def mcp_result(texts: list[str], data: Any) -> mcp.CallToolResult:
    image = mcp.ImageContent(type="image", data=PICTURE, mime_type="image/png")
    content: list[Any] = [image, *(mcp.TextContent(type="text", text=text) for text in texts)]
    return mcp.CallToolResult(content=content, structured_content={"data": data}, is_error=True)


def strands(texts: list[str], data: Any) -> dict[str, Any]:
    """Return a tool's result as Strands and Bedrock have it."""
    picture = {"image": {"format": "png", "source": {"bytes": PICTURE}}}
    content: list[Any] = [{"text": text} for text in texts]
    return {"toolUseId": "tool_1", "status": "error", "content": [picture, *content, {"json": {"a": data}}]}


def response(texts: list[str], data: Any) -> genai.Part:
    return genai.Part(
        function_response=genai.FunctionResponse(
            id="id_1", name="grep", response={"output": "".join(texts), "more": data}
        )
    )


def parts(texts: list[str], data: Any) -> list[genai.Part]:
    picture = genai.Part(inline_data=genai.Blob(data=b"\x89PNG" * 100, mime_type="image/png"))
    return [picture, *(genai.Part(text=text) for text in texts), response(texts, data)]


def gemini(texts: list[str], data: Any) -> genai.Content:
    return genai.Content(role="user", parts=parts(texts, data))


def record_of(kind: Callable[..., Any]) -> Callable[[list[str], Any], Any]:
    return lambda _, data: kind(id="row_1", output=data, is_error=True)


SHAPES = [
    Shape("data", lambda _, data: data, type),
    Shape(
        "a dict",
        lambda _, data: {"id": "row_1", "exitCode": 3, "output": data},
        lambda value: (value["id"], value["exitCode"]),
    ),
    *(
        Shape(
            kind.__name__,
            record_of(kind),
            lambda value: (value.id, value.is_error),
        )
        for kind in (Point, Row, Model)
    ),
    Shape("MCP", mcp_result, lambda value: (value.is_error, value.content[0])),
    Shape(
        "LangChain",
        lambda texts, data: message(texts, artifact=data),
        lambda value: (value.tool_call_id, value.status, value.name, value.artifact),
    ),
    Shape(
        "LangGraph",
        lambda texts, _: graph.Command(update={"messages": [message(texts)], "n": 1}, goto="next"),
        lambda value: (value.goto, value.update["n"], value.update["messages"][0].tool_call_id),
    ),
    Shape("Strands", strands, lambda value: (value["toolUseId"], value["status"], value["content"][0])),
    Shape(
        "Gemini's response",
        response,
        lambda value: (value.function_response.id, value.function_response.name),
    ),
    Shape("Gemini's parts", parts, lambda value: (value[0], value[-1].function_response.id)),
    Shape("Gemini's turn", gemini, lambda value: (value.role, value.parts[:-1])),
    Shape(
        "Gemini's user",
        lambda texts, _: genai.Content(role="user", parts=[genai.Part(text=text) for text in texts]),
        lambda value: value.parts,
    ),
    Shape(
        "Anthropic",
        lambda texts, _: {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "is_error": True,
            "content": [{"type": "text", "text": text} for text in texts],
        },
        lambda value: (value["type"], value["tool_use_id"], value["is_error"]),
    ),
    Shape(
        "OpenAI",
        lambda texts, _: {"type": "function_call_output", "call_id": "call_1", "output": "".join(texts)},
        lambda value: (value["type"], value["call_id"]),
    ),
]


def dumped(value: Any) -> bytes:
    return pydantic_core.to_json(value, bytes_mode="base64", inf_nan_mode="constants")


@given(
    st.sampled_from(SHAPES),
    st.lists(TEXTS, min_size=1, max_size=4),
    DATA,
    st.sampled_from([0, 500, 2_000, 10_000, 50_000]),
)
def test_the_envelope_survives(shape: Shape, texts: list[str], data: Any, most: int) -> None:
    result = shape.make(texts, data)
    before, kept = dumped(result), shape.kept(result)

    guarded = Guard(policy=Policy(max_bytes=most, max_lines=most), spool=False).process_sync(result, tool="t")
    value = guarded.value

    assert type(value) is type(result)
    assert shape.kept(value) == kept
    assert dumped(result) == before
    assert len(dumped(value)) <= len(before)
    assert dumped(copy.deepcopy(value)) == dumped(value)
    assert (guarded.notice is None) == (value is result)
