"""The guard's results for the frameworks' own classes."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pydantic
import pytest
from overspill.guard.guard import Guard
from overspill.previews.notice_facts import Facts
from overspill.previews.notice_forms import is_notice, notices_among
from overspill.shapes.envelope import Envelope
from overspill.shapes.examination import examine
from overspill.shapes.field_copies import Unchangeable
from overspill.shapes.sender import Sender
from overspill.shapes.shape import Shape

from tests import notices
from tests.lazy import LazyModule

if TYPE_CHECKING:
    import anthropic
    import pydantic_ai
    from anthropic.types import ToolResultBlockParam
    from langchain_core import messages as chain
    from langchain_core import tools as chain_tools
    from langgraph import types as graph
    from mcp import types as mcp
    from openai.types.chat import ChatCompletionToolMessageParam
    from openai.types.responses.response_input_item_param import FunctionCallOutput, ShellCallOutput
else:
    mcp = LazyModule("mcp.types")
    chain = LazyModule("langchain_core.messages")
    chain_tools = LazyModule("langchain_core.tools")
    graph = LazyModule("langgraph.types")
    anthropic = LazyModule("anthropic")
    pydantic_ai = LazyModule("pydantic_ai")

ID = "cap_abcdefghij234567abcd"
NOTICE = notices.captured(
    Facts(id=ID, tool="t", size=9_999, lines=99, preview="shown", reader="read {id}"),
    datetime(2026, 11, 22, tzinfo=UTC),
)
TEXT = str(NOTICE)
LONG = "x" * 500
PLACEHOLDER = f"[overspill {ID}: 500 bytes of text, in the capture]"


def shape_of(result: Any) -> Shape:
    found = examine(result)
    assert found is not None
    return found


def replaced(result: Any) -> Any:
    found = shape_of(result)
    new = found.replaced(NOTICE)
    assert shape_of(new).notices()
    assert not found.notices()
    return new


def test_many_links_and_pictures_make_no_data_of_an_mcp_result() -> None:
    links = [
        mcp.ResourceLink(type="resource_link", name=f"f{n}.py", uri=f"file:///f{n}.py", description="d" * 40)
        for n in range(300)
    ]
    image = mcp.ImageContent(type="image", data="A" * 100_000, mime_type="image/png")
    result = mcp.CallToolResult(
        content=[mcp.TextContent(type="text", text="ok"), image, *links], is_error=True
    )

    assert shape_of(result).body == "ok"
    for wire_form in (result.model_dump(), result.model_dump(by_alias=True, exclude_none=True)):
        assert shape_of(wire_form).body == "ok"


def test_data_that_says_that_its_tool_failed_still_does() -> None:
    value = {"content": [{"type": "text", "text": LONG}], "isError": True, "log": LONG * 10}

    assert replaced(value) == {
        "content": [{"type": "text", "text": TEXT}],
        "isError": True,
        "log": f"[overspill {ID}: 5,000 bytes of text, in the capture]",
    }


def test_an_mcp_result_keeps_all_but_its_text() -> None:
    image = mcp.ImageContent(type="image", data="aGk=" * 1000, mime_type="image/png")
    link = mcp.ResourceLink(type="resource_link", name="log", uri="file:///log")
    result = mcp.CallToolResult(
        content=[
            mcp.TextContent(type="text", text=LONG),
            image,
            link,
            mcp.TextContent(type="text", text=LONG),
        ],
        is_error=True,
    )

    assert shape_of(result).body == f"{LONG}\n{LONG}"
    assert replaced(result) == mcp.CallToolResult(
        content=[
            mcp.TextContent(type="text", text=TEXT),
            image,
            link,
            mcp.TextContent(type="text", text=PLACEHOLDER),
        ],
        is_error=True,
    )


def test_structured_content_that_repeats_the_text_is_captured_once_and_made_short() -> None:
    data = {"result": [LONG] * 9}
    text = mcp.TextContent(type="text", text=json.dumps(data))
    result = mcp.CallToolResult(content=[text], structured_content=data)

    assert shape_of(result).body == json.dumps(data)
    (stands,) = replaced(result).structured_content["result"]
    assert notices_among([TEXT, stands]) == [TEXT, stands]


def test_structured_content_alone_of_an_mcp_result_has_the_notice_in_it() -> None:
    result = mcp.CallToolResult(content=[], structured_content={"rows": [1, 2]})

    assert shape_of(result).body == '{\n  "rows": [\n    1,\n    2\n  ]\n}'
    assert replaced(result).structured_content == {"rows": [1, 2, TEXT]}


def test_the_text_of_a_resource_is_text_and_its_blob_is_not() -> None:
    text = mcp.TextResourceContents(uri="file:///a", mime_type="text/x-log", text=LONG)
    blob = mcp.BlobResourceContents(uri="file:///b", blob="aGk=" * 1000)
    blocks = [mcp.EmbeddedResource(type="resource", resource=each) for each in (text, blob)]
    result = mcp.CallToolResult(content=[*blocks])
    new = replaced(result)

    assert shape_of(result).body == LONG
    assert new.content[0].resource == text.model_copy(update={"text": TEXT})
    assert new.content[1] is blocks[1]


def test_a_tool_result_of_anthropic_keeps_its_id_and_its_images() -> None:
    image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    result: ToolResultBlockParam = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "is_error": True,
        "content": [{"type": "text", "text": LONG}, image],
    }

    assert replaced(result) == {**result, "content": [{"type": "text", "text": TEXT}, image]}


def test_of_a_users_turn_in_a_conversation_only_the_tool_results_are_touched() -> None:
    turn = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": LONG},
            {"type": "tool_result", "tool_use_id": "b", "content": LONG},
            {"type": "text", "text": "And now? " * 100},
        ],
    }

    found = examine(turn, sender=Sender.HOST)
    assert found is not None
    assert found.body == f"{LONG}\n{LONG}"
    assert found.replaced(NOTICE)["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": TEXT},
        {"type": "tool_result", "tool_use_id": "b", "content": PLACEHOLDER},
        turn["content"][2],
    ]


@pytest.mark.parametrize(
    ("block", "path"),
    [
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": LONG}},
            ("source", "data"),
        ),
        ({"type": "document", "source": {"type": "content", "content": LONG}}, ("source", "content")),
        (
            {
                "type": "search_result",
                "source": "https://a",
                "title": "A",
                "content": [{"type": "text", "text": LONG}],
            },
            ("content", 0, "text"),
        ),
    ],
)
def test_documents_and_search_results_have_text_inside(block: Any, path: tuple[Any, ...]) -> None:
    (new,) = replaced([block])

    assert shape_of([block]).body == LONG
    assert at(new, path) == TEXT
    assert set(new) == set(block)


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def test_a_tool_message_of_openai_has_text_or_parts() -> None:
    text: ChatCompletionToolMessageParam = {"role": "tool", "tool_call_id": "c", "content": LONG}
    parts: ChatCompletionToolMessageParam = {**text, "content": [{"type": "text", "text": LONG}]}

    assert replaced(text) == {**text, "content": TEXT}
    assert replaced(parts) == {**text, "content": [{"type": "text", "text": TEXT}]}


def test_a_function_call_output_keeps_its_call_id() -> None:
    item: FunctionCallOutput = {"type": "function_call_output", "call_id": "c", "output": LONG}
    listed: FunctionCallOutput = {
        **item,
        "output": [
            {"type": "input_text", "text": LONG},
            {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
        ],
    }
    new = replaced(listed)

    assert replaced(item) == {**item, "output": TEXT}
    assert new["output"][0] == {"type": "input_text", "text": TEXT}
    assert new["output"][1] is list(listed["output"])[1]


def test_both_streams_of_a_shells_output_are_text_and_its_outcome_stays() -> None:
    item: ShellCallOutput = {
        "type": "shell_call_output",
        "call_id": "c",
        "output": [{"stdout": LONG, "stderr": "boom", "outcome": {"type": "exit", "exit_code": 1}}],
    }

    assert replaced(item)["output"] == [
        {"stdout": TEXT, "stderr": "boom", "outcome": {"type": "exit", "exit_code": 1}}
    ]


def test_a_tool_message_of_langchain_keeps_artifact_status_and_ids() -> None:
    artifact = object()
    message = chain.ToolMessage(
        content=LONG, tool_call_id="c", id="m", name="grep", artifact=artifact, status="error"
    )
    new = replaced(message)

    assert (new.content, new.tool_call_id, new.id, new.name, new.status) == (TEXT, "c", "m", "grep", "error")
    assert new.artifact is artifact
    assert message.content == LONG


def test_a_tool_message_of_langchain_may_hold_strings_and_blocks() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    message = chain.ToolMessage(content=[LONG, image, {"type": "text", "text": LONG}], tool_call_id="c")

    assert replaced(message).content == [TEXT, image, {"type": "text", "text": PLACEHOLDER}]


def test_of_a_command_only_the_tool_messages_are_touched() -> None:
    said = chain.HumanMessage("hi " * 500)
    command: graph.Command[Any] = graph.Command(
        goto="next",
        update={"messages": [said, chain.ToolMessage(content=LONG, tool_call_id="c")], "notes": "n" * 9_999},
    )
    new = replaced(command)
    update: Any = new.update

    assert shape_of(command).body == LONG
    assert type(new) is graph.Command
    assert new.goto == "next"
    assert update["notes"] == "n" * 9_999
    assert update["messages"][0] is said
    assert update["messages"][1].content == TEXT


def test_a_list_of_tool_messages_keeps_every_one_of_them() -> None:
    messages = [chain.ToolMessage(content=LONG, tool_call_id=str(number)) for number in range(40)]
    new = replaced(messages)

    assert [message.tool_call_id for message in new] == [str(number) for number in range(40)]
    assert [message.content for message in new] == [TEXT, *[PLACEHOLDER] * 39]


def test_a_tool_return_has_a_value_and_content() -> None:
    image = pydantic_ai.BinaryContent(b"\x89PNG", media_type="image/png")
    result: pydantic_ai.ToolReturn[Any] = pydantic_ai.ToolReturn(
        LONG, content=[LONG, image], metadata={"k": 1}
    )
    new = replaced(result)

    assert (new.return_value, new.content, new.metadata) == (TEXT, [PLACEHOLDER, image], {"k": 1})


def test_a_tool_returns_data_has_the_notice_in_it() -> None:
    new = replaced(pydantic_ai.ToolReturn({"rows": [LONG]}))

    assert new.return_value == {"rows": [TEXT]}


def test_user_content_is_a_list_of_blocks() -> None:
    image = pydantic_ai.BinaryContent(b"\x89PNG", media_type="image/png")

    assert replaced([LONG, image]) == [TEXT, image]


class ReadOnly:
    type = "tool"

    @property
    def content(self) -> str:
        return LONG


class Proxy(Mapping[str, Any]):
    """A mapping that is not a dict."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def __getitem__(self, key: str) -> Any:
        return self._fields[key]

    def __iter__(self) -> Any:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def test_a_message_that_lets_nothing_be_put_in_has_no_stand_in() -> None:
    with pytest.raises(Unchangeable):
        replaced(ReadOnly())


def test_a_setter_that_keeps_the_old_text_is_found_out() -> None:
    class Stubborn:
        type = "tool"
        content = property(lambda _: LONG, lambda _, __: None)

    with pytest.raises(Unchangeable):
        replaced(Stubborn())


def test_messages_may_be_any_mapping() -> None:
    new = replaced(Proxy(role="tool", content=LONG, name="n"))

    assert type(new) is Proxy
    assert dict(new) == {"role": "tool", "content": TEXT, "name": "n"}


@pytest.mark.parametrize(
    "rows",
    [
        [{"type": "file", "name": "a.txt", "size": 3, "url": "https://a"}],
        [{"type": "document", "id": 7}],
        [{"type": "image", "name": "b.png"}],
    ],
)
def test_rows_of_data_that_have_a_type_are_data(rows: Any) -> None:
    assert isinstance(shape_of(rows), Envelope)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pydantic_ai.BinaryContent(data=bytes(100_000), media_type="image/png"),
        lambda: pydantic_ai.ImageUrl("data:image/png;base64," + "A" * 100_000),
        lambda: pydantic_ai.ImageUrl("https://files.example/" + "a" * 900, force_download=True),
    ],
    ids=["bytes", "data", "signed"],
)
def test_pictures_of_pydantic_ai_stay_beside_a_text_that_goes(make: Callable[[], Any]) -> None:
    picture = make()
    result = [LONG, *[picture] * 5]

    assert shape_of(result).body == LONG
    assert replaced(result) == [TEXT, *[picture] * 5]


@dataclasses.dataclass
class TextContent:
    """As in Haystack: its blocks are told apart by the names of their classes."""

    text: str


@dataclasses.dataclass
class ImageContent:
    base64_image: str
    mime_type: str = "image/png"


@dataclasses.dataclass
class FileContent:
    base64_data: str


def test_pictures_and_files_of_haystack_stay_beside_a_text_that_goes() -> None:
    media = [ImageContent("iVBORw0KGgo" * 50_000), FileContent("JVBERi0x" * 50_000)]
    result = replaced([TextContent("line\n" * 50_000), *media])

    assert result == [TextContent(TEXT), *media]


class Hit(pydantic.BaseModel):
    type: str = "file"
    text: str


def test_records_that_have_a_type_by_chance_are_data() -> None:
    assert "the text of a hit" in str(shape_of([Hit(text="the text of a hit")]).body)


class ToolOutputImage(pydantic.BaseModel):
    """As OpenAI's Agents SDK has it."""

    type: str = "image"
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


def test_a_block_that_is_alone_stays_one() -> None:
    text = mcp.TextContent(type="text", text=LONG)

    assert examine(ToolOutputImage(image_url="data:image/png;base64," + "A" * 100_000)) is None
    assert examine(mcp.ImageContent(type="image", data="A" * 9_000, mime_type="image/png")) is None
    assert examine({"type": "image", "source": {"type": "base64", "data": "A" * 9_000}}) is None
    assert replaced(text) == mcp.TextContent(type="text", text=TEXT)
    assert replaced({"type": "text", "text": LONG}) == {"type": "text", "text": TEXT}


def long_text(times: int) -> str:
    """Return a long text."""
    return LONG * 300 * times


def test_a_structured_tool_stays_one_and_its_results_are_guarded() -> None:
    tool = chain_tools.StructuredTool.from_function(long_text)
    wrapped = Guard(spool=False).wrap(tool)
    call: Any = {"name": "long_text", "args": {"times": 1}, "id": "call_1", "type": "tool_call"}

    assert type(wrapped) is chain_tools.StructuredTool
    assert (wrapped.name, wrapped.args_schema) == (tool.name, tool.args_schema)
    assert is_notice(wrapped.invoke({"times": 1}))
    assert is_notice(wrapped.invoke(call).content)
    assert not is_notice(tool.invoke({"times": 1}))


async def test_a_tool_that_returns_an_artifact_keeps_it_whole() -> None:
    def both() -> tuple[str, list[str]]:
        """Return a text and what programs get."""
        return LONG * 300, [LONG] * 300

    async def both_async() -> tuple[str, list[str]]:
        return both()

    tool = chain_tools.StructuredTool.from_function(
        both, coroutine=both_async, response_format="content_and_artifact"
    )
    wrapped = Guard(spool=False).wrap(tool)
    call: Any = {"name": "both", "args": {}, "id": "call_1", "type": "tool_call"}
    for message in (wrapped.invoke(call), await wrapped.ainvoke(call)):
        assert is_notice(message.content)
        assert message.artifact == [LONG] * 300


def test_a_tool_of_a_class_of_its_own_stays_one() -> None:
    class Reader(chain_tools.BaseTool):
        name: str = "reader"
        description: str = "reads"

        def _run(self) -> str:
            return LONG * 300

    assert is_notice(Guard(spool=False).wrap(Reader()).invoke({}))


async def test_a_tool_of_anthropics_runner_stays_one() -> None:
    async def later(times: int) -> str:
        """Return a long text."""
        return long_text(times)

    guard, tool = Guard(spool=False), anthropic.beta_tool(long_text)
    wrapped, awaited = guard.wrap(tool), guard.wrap(anthropic.beta_async_tool(later))

    assert (type(wrapped), wrapped.to_dict()) == (type(tool), tool.to_dict())
    assert is_notice(wrapped.call({"times": 1}))
    assert is_notice(await awaited.call({"times": 1}))
    assert not is_notice(tool.call({"times": 1}))


async def test_a_tool_of_pydantic_ai_stays_one() -> None:
    async def later(times: int) -> str:
        return long_text(times)

    guard, tools = Guard(spool=False), [pydantic_ai.Tool(long_text), pydantic_ai.Tool(later)]
    for tool in tools:
        wrapped = guard.wrap(tool)

        assert (type(wrapped), wrapped.tool_def) == (type(tool), tool.tool_def)
        assert is_notice(await wrapped.function_schema.call({"times": 1}, ANY))
        assert not is_notice(await tool.function_schema.call({"times": 1}, ANY))


class Bindable:
    """A tool as Strands and the Agent Framework have them: in a class it is bound as a method is."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._tool_func = function
        self.tool_name = "bindable"
        functools.update_wrapper(self, function)

    def __get__(self, instance: object, owner: type) -> Bindable:
        return self

    def __call__(self, times: int) -> Any:
        return self._tool_func(times)


def test_a_tool_that_can_be_bound_as_a_method_stays_one() -> None:
    tool = Bindable(long_text)
    wrapped = Guard(spool=False).wrap(tool)

    assert type(wrapped) is Bindable
    assert "Output of bindable too long" in wrapped(1)
    assert not is_notice(tool(1))


class Forwarding:
    """A tool as smolagents has them."""

    name = "forwarding"

    def __call__(self) -> str:
        return self.forward()

    def forward(self) -> str:
        return LONG * 300


def test_a_tool_that_calls_its_forward_stays_one() -> None:
    wrapped = Guard(spool=False).wrap(Forwarding())

    assert type(wrapped) is Forwarding
    assert is_notice(wrapped())
