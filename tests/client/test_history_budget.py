"""A budget for all results of a history together, and messages of the role `toolResult`."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from overspill import Guard, Policy, clamp_messages, spill_messages, spill_messages_sync
from overspill.histories.tool_results import tool_results

SIZE = 10_000


def text(number: int) -> str:
    return f"result {number} has a line\n" * (SIZE // 24)


def history(count: int) -> list[Any]:
    """A user's question, and `count` calls with their results."""
    messages: list[Any] = [{"role": "user", "content": "x" * 50_000}]
    for number in range(count):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": text(number)},
        ]
    return messages


def whole(messages: list[Any]) -> list[int]:
    """Numbers of the results that are as their tools returned them."""
    values = [result.value for result in tool_results(messages)]
    return [number for number, value in enumerate(values) if value == text(number)]


def total(messages: list[Any]) -> int:
    return sum(len(result.value) for result in tool_results(messages))


def test_without_a_budget_old_results_stay() -> None:
    messages = history(10)

    assert clamp_messages(messages) is messages


def test_the_oldest_results_go_until_all_come_to_three_quarters_of_the_budget() -> None:
    messages = history(10)
    before = copy.deepcopy(messages)
    clamped = clamp_messages(messages, budget=60_000)

    kept = whole(clamped)
    assert kept == list(range(10))[-len(kept) :]
    assert 30_000 < total(clamped) <= 45_000
    assert messages == before
    assert clamped[0] is messages[0]
    assert all(one is other for one, other in zip(clamped, messages, strict=True) if one == other)


def test_within_the_budget_nothing_changes() -> None:
    messages = history(5)

    assert clamp_messages(messages, budget=total(messages)) is messages


@pytest.mark.parametrize("newest", [0, 1, 4])
def test_the_newest_results_stay_whatever_the_budget_is(newest: int) -> None:
    clamped = clamp_messages(history(6), budget=1_000, newest=newest)

    assert whole(clamped) == list(range(6 - newest, 6))


def test_a_history_that_was_cut_is_not_cut_again_before_it_has_grown() -> None:
    messages = history(8)
    once = clamp_messages(messages, budget=60_000)
    grown = [*once, *history(9)[-2:]]

    assert clamp_messages(once, budget=60_000) is once
    assert clamp_messages(grown, budget=60_000) is grown


async def test_with_a_guard_both_kinds_of_code_cut_the_same_and_alone_results_that_are_too_long() -> None:
    messages = history(10)
    messages[-1]["content"] = "the newest\n" * 20_000
    guard = Guard(session="budget")
    spilled = await spill_messages(messages, guard, budget=60_000)

    assert spilled == spill_messages_sync(messages, guard, budget=60_000)
    assert len(spilled[-1]["content"]) < 20_000
    assert total(spilled) <= 60_000
    assert whole(spilled)


def test_what_a_reading_tool_gave_is_not_taken_away() -> None:
    messages = history(6)
    messages[1]["tool_calls"][0]["function"]["name"] = "inspect_output"

    assert whole(clamp_messages(messages, budget=1_000, newest=0)) == [0]


# --- the role toolResult --------------------------------------------------------------------------


def of_role(content: Any, **fields: Any) -> list[dict[str, Any]]:
    call = {"type": "toolCall", "id": "call_1", "name": "bash", "arguments": {"command": "make"}}
    result = {
        "role": "toolResult",
        "toolCallId": "call_1",
        "content": content,
        "isError": False,
        "timestamp": 1_750_000_000_000,
        **fields,
    }
    return [{"role": "user", "content": "build"}, {"role": "assistant", "content": [call]}, result]


LONG = "a line of the build\n" * 25_000


@pytest.mark.parametrize("content", [LONG, [{"type": "text", "text": LONG}]], ids=["text", "blocks"])
@pytest.mark.parametrize("named", [True, False])
def test_a_message_of_the_role_tool_result_is_cut_and_keeps_its_fields(content: Any, named: bool) -> None:
    messages = of_role(content, **({"toolName": "bash"} if named else {}))
    (result,) = tool_results(messages)
    clamped = clamp_messages(messages)

    assert (result.tool, result.call_id) == ("bash", "call_1")
    assert len(str(clamped[-1]["content"])) < 12_000
    assert {**clamped[-1], "content": content} == messages[-1]
    assert type(clamped[-1]["content"]) is type(content)


def test_a_tool_result_that_failed_says_so() -> None:
    (result,) = tool_results(of_role(LONG, isError=True))

    assert result.status == "error"


def test_details_of_a_tool_result_go_where_copies_are_not_kept() -> None:
    messages = of_role(LONG, details={"stdout": LONG})

    assert clamp_messages(messages, keep_copies=False)[-1].get("details") is None


@pytest.mark.parametrize(
    "part",
    [
        {"output": {"type": "text", "value": LONG}},
        {"output": {"type": "json", "value": {"log": LONG}}},
        {"result": LONG},
    ],
    ids=["text", "json", "earlier"],
)
def test_results_of_the_ai_sdk_are_cut_and_keep_their_parts(part: dict[str, Any]) -> None:
    block = {"type": "tool-result", "toolCallId": "call_1", "toolName": "bash", **part}
    messages = [{"role": "tool", "content": [block]}]
    (result,) = tool_results(messages)
    (message,) = clamp_messages(messages)

    assert (result.tool, result.call_id) == ("bash", "call_1")
    assert len(str(message)) < 12_000
    assert message["content"][0].keys() == block.keys()
    assert message["content"][0].get("output", {}).get("type") == part.get("output", {}).get("type")


async def test_a_guard_spills_half_a_megabyte_of_the_role_tool_result() -> None:
    spilled = await spill_messages(of_role(LONG), Guard(policy=Policy(), session="role"))

    assert len(spilled[-1]["content"]) < 12_000
