"""Histories of messages that are cut before they are saved, or whose results are captured afterwards."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import Client, SyncClient
from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.histories.history import clamp_messages, spill_messages, spill_messages_sync
from overspill.histories.tool_results import tool_results
from overspill.previews.cut import TAIL
from overspill.previews.notice_forms import is_notice
from overspill.wire import Outcome

from tests.client.shell import CAPTURE_ID
from tests.lazy import LazyModule
from tests.notice_marks import bare

if TYPE_CHECKING:
    from langchain_core import messages as chain
    from openai.types import responses

    from tests.servers.overspill import ServiceProcess
else:
    chain = LazyModule("langchain_core.messages")
    responses = LazyModule("openai.types.responses")

LONG = "".join(f"line {number} of a long output\n" for number in range(3_000))
SHORT = "all good\n"
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def openai_chat(result: Any) -> list[Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "run_command", "arguments": "{}"}}
    return [
        {"role": "system", "content": LONG},
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": LONG, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": result},
    ]


def openai_function(result: Any) -> list[Any]:
    return [
        {"role": "assistant", "function_call": {"name": "run_command", "arguments": "{}"}},
        {"role": "function", "name": "run_command", "content": result},
    ]


def openai_responses(result: Any) -> list[Any]:
    return [
        {"role": "user", "content": [{"type": "input_text", "text": LONG}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "call_1", "name": "run_command", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": result},
    ]


def anthropic(result: Any) -> list[Any]:
    use = {"type": "tool_use", "id": "call_1", "name": "run_command", "input": {}}
    return [
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": [{"type": "text", "text": LONG}, use]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": result, "is_error": True},
                {"type": "text", "text": LONG},
            ],
        },
    ]


def langchain(result: Any) -> list[Any]:
    call = {"name": "run_command", "args": {}, "id": "call_1"}
    return [
        chain.HumanMessage(LONG),
        chain.AIMessage(LONG, tool_calls=[call]),
        chain.ToolMessage(result, tool_call_id="call_1", artifact={"full": LONG}, status="error"),
    ]


def langchain_dicts(result: Any) -> list[Any]:
    return [chain.message_to_dict(message) for message in langchain(result)]


def langchain_of_anthropic(result: Any) -> list[Any]:
    return [
        chain.AIMessage(
            [{"type": "tool_use", "id": "call_1", "name": "run_command", "input": {}}],
        ),
        chain.HumanMessage([{"type": "tool_result", "tool_use_id": "call_1", "content": result}]),
    ]


def openai_custom(result: Any) -> list[Any]:
    return [
        {"type": "custom_tool_call", "call_id": "call_1", "name": "run_command", "input": LONG},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": result},
    ]


def converse(result: Any) -> list[Any]:
    block = {"text": result} if isinstance(result, str) else {"json": result}
    use = {"toolUseId": "call_1", "name": "run_command", "input": {}}
    return [
        {"role": "user", "content": [{"text": LONG}]},
        {"role": "assistant", "content": [{"text": LONG}, {"toolUse": use}]},
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "call_1", "content": [block], "status": "error"}},
                {"text": LONG},
            ],
        },
    ]


def gemini(result: Any) -> list[Any]:
    response = {"id": "call_1", "name": "run_command", "response": {"result": result}}
    return [
        {"role": "user", "parts": [{"text": LONG}]},
        {"role": "model", "parts": [{"functionCall": {"id": "call_1", "name": "run_command", "args": {}}}]},
        {"role": "user", "parts": [{"text": LONG}, {"functionResponse": response}]},
    ]


def gemini_objects(result: Any) -> list[Any]:
    response = SimpleNamespace(id="call_1", name="run_command", response={"output": result})
    return [SimpleNamespace(role="function", parts=[SimpleNamespace(text=None, function_response=response)])]


def gemini_interactions(result: Any) -> list[Any]:
    return [
        {"type": "function_call", "id": "call_1", "name": "run_command", "arguments": {}},
        {"role": "user", "content": [{"type": "function_result", "call_id": "call_1", "result": result}]},
    ]


SHAPES = [
    openai_chat,
    openai_function,
    openai_responses,
    openai_custom,
    anthropic,
    langchain,
    langchain_dicts,
    langchain_of_anthropic,
    converse,
    gemini,
    gemini_objects,
    gemini_interactions,
]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)


def one(messages: list[Any]) -> Any:
    (result,) = tool_results(messages)
    return result


# --- finding --------------------------------------------------------------------------------------


@shapes
def test_results_are_found_with_the_names_of_their_tools(shape: Any) -> None:
    result = one(shape(SHORT))

    assert (result.value, result.tool) == (SHORT, "run_command")
    assert result.call_id == ("" if shape is openai_function else "call_1")


def test_a_name_is_that_of_the_latest_call_before_with_the_same_id() -> None:
    first, second = openai_chat(SHORT), openai_chat(SHORT)
    second[2]["tool_calls"][0]["function"]["name"] = "grep_search"

    assert [result.tool for result in tool_results(first + second)] == ["run_command", "grep_search"]


def test_a_result_without_its_call_has_no_name() -> None:
    assert one(openai_chat(SHORT)[3:]).tool == ""


def test_errors_are_known_as_errors() -> None:
    assert one(anthropic(SHORT)).status == "error"
    assert one(langchain(SHORT)).status == "error"
    assert one(openai_chat(SHORT)).status == ""


def test_several_results_of_one_turn_are_found_in_order() -> None:
    results = [{"type": "tool_result", "tool_use_id": f"call_{at}", "content": SHORT} for at in range(3)]

    found = tool_results([{"role": "user", "content": results}])

    assert [result.call_id for result in found] == ["call_0", "call_1", "call_2"]
    assert [result.path for result in found] == [(0, "content", at, "content") for at in range(3)]


# --- clamping -------------------------------------------------------------------------------------


@shapes
def test_what_is_too_long_becomes_a_notice_in_its_place(shape: Any) -> None:
    clamped = clamp_messages(shape(LONG))

    assert is_notice(one(clamped).value)
    assert one(clamped)[2:] == one(shape(LONG))[2:]


@shapes
def test_blocks_stay_blocks_and_what_is_no_text_stays(shape: Any) -> None:
    clamped = clamp_messages(shape([{"type": "text", "text": LONG}, IMAGE]))
    notice, image = one(clamped).value

    assert is_notice(notice["text"])
    assert notice["type"] == "text"
    assert image == IMAGE


@shapes
def test_people_the_model_and_the_system_are_never_touched(shape: Any) -> None:
    messages = shape(LONG)
    clamped = clamp_messages(messages)
    kept = [after is before for before, after in zip(messages, clamped, strict=True)]

    assert kept == [True] * (len(messages) - 1) + [False]


def test_what_stands_beside_a_result_in_its_message_stays() -> None:
    messages = anthropic(LONG)
    last = clamp_messages(messages)[-1]

    assert last["content"][1] is messages[-1]["content"][1]
    assert last["content"][0] == {
        **messages[-1]["content"][0],
        "content": one(clamp_messages(messages)).value,
    }


@shapes
def test_a_history_in_which_nothing_is_too_long_is_returned_itself(shape: Any) -> None:
    messages = shape(SHORT)

    assert clamp_messages(messages) is messages


@shapes
def test_the_input_is_never_changed(shape: Any) -> None:
    messages = shape(LONG)
    before = copy.deepcopy(messages)
    clamp_messages(messages, keep_copies=False)

    assert messages == before


@shapes
def test_clamping_again_changes_nothing(shape: Any) -> None:
    clamped = clamp_messages(shape(LONG))

    assert clamp_messages(clamped) is clamped
    assert clamp_messages(clamped, Policy(max_bytes=10)) is clamped


def test_notices_in_every_form_stay_byte_for_byte() -> None:
    guard = Guard(policy=Policy(max_bytes=100))
    rows = {"rows": list(range(1_000))}
    text, blocks, a_dict = (
        guard.process_sync(value, tool="t").value
        for value in (LONG, [{"type": "text", "text": LONG}, {"type": "text", "text": LONG}], rows)
    )

    for notice in (text, blocks, a_dict):
        messages = openai_chat(notice)
        assert clamp_messages(messages, Policy(max_bytes=10)) is messages


def test_limits_are_those_of_the_tool() -> None:
    messages = openai_chat("x" * 30_000)

    assert clamp_messages(messages) is messages
    assert clamp_messages(messages, Policy(tools={"run_command": 20_000})) is not messages


def test_results_of_tools_that_read_captures_stay() -> None:
    messages = openai_chat(LONG[:40_000])
    messages[2]["tool_calls"][0]["function"]["name"] = "inspect_output"

    assert clamp_messages(messages, Policy(max_bytes=1_000)) is messages


def test_a_result_that_no_notice_could_shorten_stays() -> None:
    messages = openai_chat("x" * 101)

    assert clamp_messages(messages, Policy(max_bytes=100)) is messages


def test_copies_stay_unless_they_are_to_go() -> None:
    messages = langchain(LONG)

    assert clamp_messages(messages)[-1].artifact == {"full": LONG}
    assert clamp_messages(messages, keep_copies=False)[-1].artifact is None
    assert clamp_messages(messages, keep_copies=False)[-1].status == "error"
    assert "artifact" not in clamp_messages(langchain_dicts(LONG), keep_copies=False)[-1]["data"]


def test_copies_go_from_messages_that_were_cut_before() -> None:
    clamped = clamp_messages(langchain(LONG))

    assert clamp_messages(clamped, keep_copies=False)[-1].artifact is None
    assert clamp_messages(langchain(SHORT), keep_copies=False)[-1].artifact == {"full": LONG}


def test_rows_that_are_no_blocks_leave_a_message_that_langchain_takes() -> None:
    rows: list[Any] = [{"id": number, "name": "x" * 20} for number in range(3_000)]
    clamped = clamp_messages(langchain(rows))

    assert is_notice(one(clamped).value[-1]["name"])
    assert chain.ToolMessage.model_validate(clamped[-1].model_dump()) == clamped[-1]


def test_objects_of_openais_package_are_understood() -> None:
    item = responses.ResponseFunctionToolCallOutputItem(
        id="fc_1", call_id="call_1", output=LONG, type="function_call_output", status="completed"
    )
    clamped = clamp_messages([item])

    assert is_notice(clamped[0].output)
    assert item.output == LONG


ITEMS: dict[str, dict[str, Any]] = {
    "custom_tool": {"type": "custom_tool_call_output", "call_id": "c", "output": LONG},
    "local_shell": {"type": "local_shell_call_output", "id": "c", "output": LONG, "status": "completed"},
    "apply_patch": {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": LONG},
    "program": {"type": "program_output", "id": "p", "call_id": "c", "result": LONG},
    "search": {"type": "mcp_call", "id": "c", "name": "search", "arguments": LONG, "output": LONG},
}


@pytest.mark.parametrize(("tool", "item"), ITEMS.items(), ids=ITEMS)
def test_every_item_that_is_a_result_is_cut_where_its_result_is(tool: str, item: dict[str, Any]) -> None:
    (clamped,) = clamp_messages([item])
    found = one([item])
    field = found.path[-1]

    assert (found.call_id, found.tool) == ("c", "" if tool == "custom_tool" else tool)
    assert is_notice(clamped[field])
    assert {**clamped, field: LONG} == item


def shell_item(stdout: str, stderr: str = "", **more: Any) -> dict[str, Any]:
    outputs = [{"stdout": stdout, "stderr": stderr, "outcome": {"type": "exit", "exit_code": 1}}]
    return {"type": "shell_call_output", "id": "sh_1", "call_id": "c", "output": outputs, **more}


def shell(result: str) -> list[Any]:
    return [shell_item(result, result[:100])]


def extent(value: Any) -> int:
    return len(value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize(("stdout", "stderr"), [(LONG, ""), ("", LONG), (LONG, LONG)])
def test_a_shells_output_is_cut_and_stays_one(stdout: str, stderr: str) -> None:
    item = shell_item(stdout, stderr, max_output_length=4_096, status="completed")
    (clamped,) = clamp_messages([item])
    (output,) = clamped["output"]

    assert is_notice(output["stdout"] or output["stderr"])
    assert not stdout or len(output["stderr"]) < 200
    assert output["outcome"] == {"type": "exit", "exit_code": 1}
    assert {**clamped, "output": item["output"]} == item
    assert responses.ResponseFunctionShellToolCallOutput.model_validate(clamped, strict=True)
    assert clamp_messages([clamped], Policy(max_bytes=10)) == [clamped]


def test_a_shells_output_that_is_an_object_is_cut_too() -> None:
    item = responses.ResponseFunctionShellToolCallOutput.model_validate(shell_item(LONG, status="completed"))
    (clamped,) = clamp_messages([item])

    assert is_notice(clamped.output[0].stdout)
    assert item.output[0].stdout == LONG


def test_an_item_is_never_replaced_by_something_else() -> None:
    class Fixed:
        type = "shell_call_output"
        output = ({"stdout": LONG, "stderr": ""},)

        def __copy__(self) -> Fixed:
            return self

    messages = [Fixed()]

    assert clamp_messages(messages) is messages


def test_what_the_guard_cuts_is_cut_in_a_history() -> None:
    items = [item for name, item in ITEMS.items() if name != "search"] + [shell_item(LONG)]

    for item in items:
        assert Guard().process_sync(item, tool="t").outcome is Outcome.TRUNCATED
        assert clamp_messages([item]) != [item]


def test_each_text_and_document_of_a_converse_result_is_cut_in_its_own_form() -> None:
    image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    rows = {"rows": list(range(20_000))}
    messages = converse(LONG)
    holder = messages[-1]["content"][0]["toolResult"]
    holder["content"] += [image, {"json": rows}, {"text": SHORT}]
    text, kept, document, short = clamp_messages(messages)[-1]["content"][0]["toolResult"]["content"]

    assert [result.status for result in tool_results(messages)] == ["error"] * 3
    assert (text.keys(), is_notice(text["text"])) == ({"text"}, True)
    assert (document.keys(), is_notice(document["json"]["rows"][-1])) == ({"json"}, True)
    assert (kept, short) == (image, {"text": SHORT})


def test_a_gemini_response_stays_an_object() -> None:
    messages = gemini("")
    messages[-1]["parts"][1]["functionResponse"]["response"] = {"log": LONG, "code": 1}
    clamped = clamp_messages(messages)
    response = clamped[-1]["parts"][1]["functionResponse"]["response"]

    assert response["code"] == 1
    assert is_notice(response["log"])
    assert clamp_messages(clamped) is clamped


NUMBERED = "".join(f"line {number}\n" for number in range(9_000))


def test_what_the_model_reads_in_a_history_that_was_cut() -> None:
    policy = Policy(lost_preview_bytes=256, strategy=TAIL)

    assert bare(one(clamp_messages(openai_chat(NUMBERED), policy, session="s")).value) == (
        "[overspill NOT STORED] Output of run_command (call_1) too long: "
        "88890 bytes, 9000 lines, about 40000 tokens. It could NOT be stored: "
        "the history was cut before it was saved, with no store at hand.\n"
        "What the preview leaves out is lost. If you need it, run the tool again with a narrower "
        "question (a filter, a range, fewer files).\n"
        "--- preview ---\n"
        "… [8,980 lines, 88,690 bytes not shown] …\n"
        f"{NUMBERED[NUMBERED.index('line 8980') :]}"
        "[/overspill]"
    )


def test_what_the_model_reads_in_a_history_that_was_clamped() -> None:
    assert one(clamp_messages(openai_chat(NUMBERED), Policy.clamped(max_lines=5))).value == (
        "line 0\nline 1\nline 2\n\n"
        "[tool output truncated: exceeded 50KB or 5 lines; "
        "request smaller chunks (offset/limit) or specific sections]"
    )


@pytest.mark.parametrize(
    "policy",
    [
        Policy.persisted(),
        Policy.clamped(),
        Policy.clamped_to_share(20_000),
        Policy.token_limited(1_000),
        Policy.file_based(),
        Policy.capped(5_000),
    ],
    ids=["persisted", "clamped", "share", "tokens", "file based", "capped"],
)
@pytest.mark.parametrize("shape", [*SHAPES, shell], ids=lambda shape: shape.__name__)
def test_every_profile_cuts_a_history_once(shape: Any, policy: Policy) -> None:
    clamped = clamp_messages(shape(NUMBERED), policy)

    assert extent(one(clamped).value) < len(NUMBERED)
    assert clamp_messages(clamped, policy) is clamped


# --- capturing ------------------------------------------------------------------------------------


@shapes
async def test_what_is_cut_is_captured_under_the_id_that_it_had_at_production(
    shape: Any, service: ServiceProcess
) -> None:
    async with Client(service.url) as client:
        guard = Guard(client, session=f"history {shape.__name__}")
        call_id = one(shape(LONG)).call_id
        produced = await guard.process(LONG, tool="run_command", call_id=call_id)
        spilled = await spill_messages(shape(LONG), guard)

        assert one(spilled).value.startswith("[overspill] Output of run_command")
        assert str(produced.capture) in one(spilled).value
        assert await client.content(str(produced.capture)) == LONG.encode()


def test_without_an_event_loop_histories_are_captured_too(service: ServiceProcess) -> None:
    with SyncClient(service.url) as client:
        spilled = spill_messages_sync(anthropic(LONG), Guard(client, session="history sync"))
        entry = client.get(CAPTURE_ID.findall(one(spilled).value)[0])

    assert (entry.tool, entry.call_id, entry.session, entry.status) == (
        "run_command",
        "call_1",
        "history sync",
        "error",
    )


async def test_a_shells_output_is_captured_under_the_id_that_it_had_at_production(
    service: ServiceProcess,
) -> None:
    async with Client(service.url) as client:
        guard = Guard(client, session="history shell")
        item = shell_item(LONG, "it failed\n")
        produced = await guard.process(item, tool="shell", call_id="c")
        (spilled,) = await spill_messages([item], guard)

        assert str(produced.capture) in spilled["output"][0]["stdout"]
        assert await client.content(str(produced.capture)) == LONG.encode()


async def test_what_is_not_too_long_is_not_counted_a_second_time() -> None:
    guard = Guard()
    await spill_messages(openai_chat(SHORT), guard)

    assert guard.stats == {}


async def test_a_history_is_captured_once() -> None:
    guard = Guard()
    spilled = await spill_messages(openai_chat(LONG), guard)

    assert await spill_messages(spilled, guard) is spilled
    assert [count.count for count in guard.stats.values()] == [1]


# --- whatever a history holds ---------------------------------------------------------------------

texts = st.text(max_size=300) | st.text(alphabet="ab\n漢\U0001f600", min_size=50, max_size=400).map(
    lambda t: t * 20
)
blocks = st.lists(st.builds(lambda text: {"type": "text", "text": text}, texts) | st.just(IMAGE), max_size=4)
values = texts | blocks | st.none() | st.integers() | st.dictionaries(st.text(max_size=5), texts, max_size=3)
messages_of_all_kinds = st.lists(
    st.builds(lambda value: {"role": "tool", "tool_call_id": "c", "content": value}, values)
    | st.builds(lambda value: {"type": "function_call_output", "call_id": "c", "output": value}, values)
    | st.builds(
        lambda value: {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c", "content": value}],
        },
        values,
    )
    | st.builds(lambda value: {"type": "apply_patch_call_output", "call_id": "c", "output": value}, values)
    | st.builds(shell_item, texts, texts)
    | st.builds(lambda value: converse(value)[-1], values)
    | st.builds(lambda value: gemini(value)[-1], values)
    | st.builds(lambda value: {"role": "user", "parts": [{"function_response": value}]}, values)
    | st.builds(lambda value: {"role": "user", "content": value}, values)
    | st.builds(lambda value: {"role": "assistant", "content": value}, values)
    | values,
    max_size=6,
)


@given(messages_of_all_kinds, st.integers(0, 5_000))
def test_whatever_a_history_holds_clamping_shortens_it_once_and_leaves_the_input(
    messages: list[Any], limit: int
) -> None:
    before = copy.deepcopy(messages)
    policy = Policy(max_bytes=limit, lost_preview_bytes=200)
    clamped = clamp_messages(messages, policy)

    assert messages == before
    assert clamp_messages(clamped, policy) is clamped
    assert len(json.dumps(clamped)) <= len(json.dumps(messages))
    assert [after for after in clamped if after not in before] == [
        after for before, after in zip(messages, clamped, strict=True) if after is not before
    ]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [None],
        [[]],
        ["text"],
        [{}],
        [{"role": "tool"}],
        [{"role": "user", "content": None}],
        [{"role": "user", "content": [None, "x", {"type": "tool_result"}]}],
        [
            {
                "role": "assistant",
                "tool_calls": [None, {}, {"function": None}, {"id": 7, "function": {"name": 8}}],
            }
        ],
        [{"type": "function_call_output", "output": 7}],
        [{"type": "shell_call_output"}, {"type": "shell_call_output", "output": [None, 7, {"stdout": None}]}],
        [{"type": "mcp_call", "id": "c", "name": "search", "arguments": "{}"}],
        [{"role": "user", "content": [{"toolResult": None}, {"toolResult": {"content": [None, {}]}}]}],
        [{"role": "user", "parts": [None, {"functionResponse": None}, {"function_response": {"name": "t"}}]}],
    ],
    ids=repr,
)
def test_malformed_messages_stay(messages: list[Any]) -> None:
    assert clamp_messages(messages, Policy(max_bytes=0)) is messages


def test_messages_that_raise_when_looked_at_stay() -> None:
    class Hostile(dict[str, Any]):
        def get(self, *_: Any) -> Any:
            raise RuntimeError("no")

    class Unreadable:
        type = "tool"

        @property
        def content(self) -> str:
            raise RuntimeError("no")

    messages = [Hostile(role="tool", content=LONG), Unreadable(), *openai_chat(LONG)]
    clamped = clamp_messages(messages)

    assert clamped[0] is messages[0]
    assert clamped[1] is messages[1]
    assert is_notice(one(clamped[2:]).value)
