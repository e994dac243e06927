"""Exemptions from the guard: tools that read captures, and only as far as their answers go."""

import json
from typing import Any

import pytest
from overspill import AgentTool, Guard, Outcome, Policy, clamp_messages, inspection_tool, reading_tools
from overspill.agent_tools.inspect_request import MAX_CHARS
from overspill.guard.exemption import bare_name
from overspill.guard.policy_defaults import ANSWER_CHARS
from overspill.integrations.adapter import Adapter, OwnAnswer
from overspill.integrations.claude_code import post_tool_use
from overspill.previews.notice_forms import is_notice

SMALL = Policy(max_bytes=1_000, lost_preview_bytes=100)
FORMER = ["list_outputs", "get_terminal_output", "overspill_inspect", "inspect_output2", "Inspect_Output"]


def outcome(result: Any, tool: str, policy: Policy = SMALL) -> Outcome:
    return Guard(policy=policy, spool=False).process_sync(result, tool=tool).outcome


def test_no_answer_is_longer_than_what_a_name_exempts() -> None:
    assert MAX_CHARS == ANSWER_CHARS == 40_000


@pytest.mark.parametrize("tool", ["inspect_output", "list_captures"])
def test_the_name_of_a_reading_tool_exempts_what_is_as_short_as_its_answers(tool: str) -> None:
    for made in (str, str.encode, lambda text: {"content": text[20:]}, lambda text: ["a", text[20:]]):
        assert outcome(made("é" * 20_000 + "x" * 20_000), tool) is Outcome.INLINE
        assert outcome(made("x" * 240_000), tool) is Outcome.TRUNCATED
    assert outcome("é" * 40_001, tool) is Outcome.TRUNCATED


@pytest.mark.parametrize("tool", FORMER)
def test_a_tool_that_is_only_named_like_one_is_guarded(tool: str) -> None:
    assert outcome("x" * 1_001, tool) is Outcome.TRUNCATED


def test_what_the_host_vouches_for_is_exempt_at_any_length() -> None:
    policy = Policy(max_bytes=1_000, exempt=frozenset({"get_terminal_output"}))

    assert outcome("x" * 240_000, "get_terminal_output", policy) is Outcome.INLINE
    assert outcome("x" * 1_001, "inspect_output", policy) is Outcome.TRUNCATED


async def test_an_adapter_knows_its_own_tools_whatever_others_are_called() -> None:
    adapter = Adapter(Guard(policy=SMALL, spool=False))
    call, own = adapter.call("inspect_output", "c"), adapter.call("inspect_output", "c", is_own=True)
    for result in ("x" * 1_001, {"content": "x" * 1_001}):
        assert (await call.process(result)).outcome is Outcome.TRUNCATED
        assert call.process_sync(result).outcome is Outcome.TRUNCATED
        assert (await own.process(result)).value is result
        assert own.process_sync(result).value is result
    answer = OwnAnswer("x" * 1_001)
    assert call.process_sync(answer).value is answer


@pytest.mark.parametrize("tool", ["get_terminal_output", "inspect_output"])
@pytest.mark.parametrize("exempt", [Policy().exempt, frozenset[str]()])
def test_an_own_answer_never_spills_whatever_the_policy_exempts(tool: str, exempt: frozenset[str]) -> None:
    adapter = Adapter(Guard(policy=Policy(max_bytes=1_000, exempt=exempt, terminals=True), spool=False))
    for result, is_own in (("x" * 30_000, True), (OwnAnswer("x" * 30_000), False)):
        assert adapter.call(tool, "c", is_own=is_own).process_sync(result).value is result
    assert adapter.call(tool, "c").process_sync("x" * 30_000).outcome is Outcome.TRUNCATED


@pytest.mark.parametrize(
    ("tool", "own"),
    [
        ("mcp__overspill__inspect_output", "inspect_output"),
        ("mcp__logs__overspill_list_captures", "list_captures"),
        ("inspect_output", "inspect_output"),
        ("mcp__inspect_output__run", "run"),
        ("get_terminal_output", "get_terminal_output"),
    ],
)
def test_the_name_of_a_tool_is_told_from_that_of_its_server(tool: str, own: str) -> None:
    assert bare_name(tool) == own


@pytest.mark.parametrize(
    "tool", ["mcp__overspill__inspect_output", "mcp__evil__inspect_output", "inspect_output"]
)
def test_a_hook_sees_names_alone_and_passes_no_more_than_an_answer(tool: str) -> None:
    guard = Guard(policy=SMALL, spool=False)
    event = {"hook_event_name": "PostToolUse", "tool_name": tool, "tool_use_id": "c", "session_id": "s"}

    assert post_tool_use(guard, {**event, "tool_response": "x" * 40_000}) == {}
    assert post_tool_use(guard, {**event, "tool_response": "x" * 40_001}) != {}
    other = {**event, "tool_name": "mcp__x__get_terminal_output"}
    assert post_tool_use(guard, {**other, "tool_response": "x" * 2_000}) != {}


def test_in_a_history_a_name_exempts_no_more_than_an_answer() -> None:
    def cut(name: str, text: str) -> Any:
        calls = [{"id": "c", "type": "function", "function": {"name": name}}]
        result = {"role": "tool", "tool_call_id": "c", "content": text}
        return clamp_messages([{"role": "assistant", "tool_calls": calls}, result], SMALL)[1]["content"]

    assert cut("inspect_output", "x" * 40_000) == "x" * 40_000
    assert is_notice(cut("inspect_output", "x" * 40_001))
    assert is_notice(cut("get_terminal_output", "x" * 1_001))


async def test_in_a_turn_a_name_exempts_no_more_than_an_answer() -> None:
    guard = Guard(spool=False)
    async with guard.turn(1_000):
        short = await guard.process("x" * 40_000, tool="inspect_output")
        long = await guard.process("x" * 45_000, tool="inspect_output")

    assert (short.outcome, long.outcome) == (Outcome.INLINE, Outcome.TRUNCATED)


@pytest.mark.parametrize("tool", reading_tools(Guard(spool=False)), ids=lambda tool: tool.name)
def test_the_answers_of_the_tools_themselves_never_spill(tool: AgentTool) -> None:
    guard = Guard(policy=Policy(max_bytes=10), spool=False)
    answer = tool.call({})

    assert guard.process_sync(answer, tool=tool.name).value is answer
    assert guard.process_sync(json.dumps(answer), tool=tool.name).outcome is Outcome.INLINE
    assert guard.wrap(inspection_tool(None))("cap_x")["code"]
