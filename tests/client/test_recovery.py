"""Calls that are too large for the model, made again with less."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overspill import Client
from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.histories.recovery import Recovered, recover, recover_sync
from overspill.histories.selection import KEPT_CHARS
from overspill.histories.tool_results import tool_results
from overspill.previews.notice_forms import is_notice

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.overspill import ServiceProcess


def tool(call_id: str, size: int) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": call_id,
        "name": "t",
        "content": f"{call_id} " * (size // len(f"{call_id} ")),
    }


def history(*sizes: int) -> list[Any]:
    return [
        {"role": "user", "content": "question"},
        *(tool(f"call_{at}", size) for at, size in enumerate(sizes)),
    ]


def extent(messages: list[Any]) -> int:
    return sum(len(message["content"]) for message in messages)


class Model:
    """Takes up to `limit` characters of messages; refuses more, as providers do, with or without numbers."""

    def __init__(
        self, limit: int, *, says: str = "prompt is too long: {actual} tokens > {limit} maximum"
    ) -> None:
        self.limit = limit
        self.says = says
        self.asked: list[list[Any]] = []

    def __call__(self, messages: list[Any]) -> str:
        assert messages not in self.asked, "the same call twice"
        self.asked.append(json.loads(json.dumps(messages)))
        if extent(messages) <= self.limit:
            return f"answer to {len(messages)} messages"
        raise RuntimeError(self.says.format(actual=extent(messages) // 4, limit=self.limit // 4))

    async def later(self, messages: list[Any]) -> str:
        await asyncio.sleep(0)
        return self(messages)


NO_NUMBERS = "Your input exceeds the context window of this model."


async def both(model: Model, messages: list[Any], **options: Any) -> Recovered[str]:
    """With an event loop and without: the same, but for a model that counts its calls once."""
    again = Model(model.limit, says=model.says)
    guard = Guard(session="recovery")
    recovered = await recover(model.later, messages, guard=guard, **options)
    assert recover_sync(again, messages, guard=guard, **options) == recovered
    assert again.asked == model.asked
    return recovered


def notices(messages: list[Any]) -> list[str]:
    """The calls whose results are notices."""
    return [result.call_id for result in tool_results(messages) if is_notice(result.value)]


async def test_a_call_that_fits_is_made_once() -> None:
    model, messages = Model(100_000), history(1_000)
    recovered = await both(model, messages)

    assert recovered == Recovered(value="answer to 2 messages", messages=messages)
    assert recovered.messages is messages
    assert len(model.asked) == 1


async def test_compaction_comes_first_and_as_often_as_it_helps() -> None:
    model, messages = Model(1_500), history(*[1_000] * 3)
    recovered = await both(model, messages, compact=lambda messages: messages[:-1])

    assert (recovered.value, recovered.compactions) == ("answer to 2 messages", 2)
    assert recovered.messages == messages[:2]
    assert recovered.spilled == ()


@pytest.mark.parametrize(
    "message",
    [
        {
            "type": "shell_call_output",
            "call_id": "c",
            "output": [{"stdout": "a line\n" * 9_000, "stderr": ""}],
        },
        {"type": "apply_patch_call_output", "call_id": "c", "output": "a line\n" * 9_000},
        {"role": "user", "content": [{"toolResult": {"content": [{"text": "a line\n" * 9_000}]}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "t", "response": {"rows": [*range(9_000)]}}}],
        },
    ],
    ids=["shell", "patch", "Converse", "Gemini"],
)
async def test_results_of_every_protocol_are_spilled(message: dict[str, Any]) -> None:
    async def call(messages: list[Any]) -> int:
        size = len(json.dumps(messages))
        if size > 20_000:
            raise RuntimeError(NO_NUMBERS)
        return size

    recovered = await recover(call, [message], guard=Guard())

    assert (len(recovered.spilled), recovered.messages[0].keys()) == (1, message.keys())


async def test_compaction_may_be_async() -> None:
    async def compact(messages: list[Any]) -> list[Any]:
        await asyncio.sleep(0)
        return messages[:1]

    recovered = await recover(Model(500).later, history(1_000), guard=Guard(), compact=compact)

    assert (recovered.compactions, len(recovered.messages)) == (1, 1)


@pytest.mark.parametrize(("attempts", "compactions"), [(0, 0), (1, 1), (3, 3)])
async def test_compaction_is_tried_so_often_and_no_more(attempts: int, compactions: int) -> None:
    calls: list[int] = []

    def compact(messages: list[Any]) -> list[Any]:
        calls.append(len(messages))
        return messages[:-1]

    with pytest.raises(RuntimeError, match="prompt is too long"):
        await recover(
            Model(5).later, history(*[1_000] * 9), guard=Guard(), compact=compact, attempts=attempts
        )
    assert len(calls) == compactions


@pytest.mark.parametrize(
    "compact",
    [
        lambda messages: messages,
        lambda messages: [*messages],
        lambda messages: [*messages, messages[-1]],
        lambda messages: None,
    ],
    ids=["the same", "as large", "larger", "nothing"],
)
async def test_a_compaction_that_does_not_shrink_is_not_used_and_not_tried_again(
    compact: Callable[[list[Any]], Any],
) -> None:
    model, calls = Model(30_000), []

    def counted(messages: list[Any]) -> Any:
        calls.append(1)
        return compact(messages)

    recovered = await recover(model.later, history(60_000), guard=Guard(), compact=counted)

    assert (len(calls), recovered.compactions, len(recovered.spilled)) == (1, 0, 1)


async def test_a_compaction_in_place_counts() -> None:
    def compact(messages: list[Any]) -> None:
        del messages[-1]

    messages = history(1_000, 1_000)
    recovered = await recover(Model(1_500).later, messages, guard=Guard(), compact=compact)

    assert (recovered.compactions, len(recovered.messages)) == (1, 2)


async def test_a_compaction_that_is_too_large_for_the_model_itself_leads_on_to_spilling() -> None:
    def compact(messages: list[Any]) -> list[Any]:
        raise RuntimeError("Conversation: prompt is too long: 9 tokens > 8 maximum")

    recovered = await both(Model(30_000), history(60_000), compact=compact)

    assert (recovered.compactions, len(recovered.spilled)) == (0, 1)


async def test_only_as_many_results_spill_as_the_numbers_ask_for_and_those_at_the_end() -> None:
    model, messages = Model(80_000), history(5_000, 40_000, 20_000, 35_000)
    recovered = await both(model, messages)

    assert notices(recovered.messages) == ["call_3"]
    assert len(model.asked) == 2
    assert all(one is other for one, other in zip(recovered.messages[:4], messages[:4], strict=True))


async def test_the_largest_results_of_that_end_spill_first() -> None:
    recovered = await both(Model(65_000), history(90_000 - 70_000, 40_000, 8_000, 30_000, 3_000, 4_000))

    assert notices(recovered.messages) == ["call_1", "call_3"]


def turn(*sizes: int, at: int = 10) -> list[Any]:
    """What the model asked for after a history, and the results."""
    return [
        {"role": "assistant", "content": "I look at these"},
        *(tool(f"call_{at + number}", size) for number, size in enumerate(sizes)),
    ]


async def test_without_numbers_what_came_since_the_model_spoke_last_spills_first() -> None:
    model, messages = Model(77_000, says=NO_NUMBERS), [*history(30_000, 40_000), *turn(3_000, 20_000)]
    recovered = await both(model, messages)

    assert notices(recovered.messages) == ["call_11"]
    assert all(one is other for one, other in zip(recovered.messages[:5], messages[:5], strict=True))


async def test_where_the_end_is_not_enough_older_results_spill_too() -> None:
    model = Model(30_000, says=NO_NUMBERS)
    recovered = await both(model, [*history(60_000, 9_000), *turn(20_000)])

    assert notices(recovered.messages) == ["call_0", "call_10"]


@pytest.mark.parametrize("says", [NO_NUMBERS, "prompt is too long: {actual} tokens > {limit} maximum"])
@pytest.mark.parametrize(
    ("count", "size", "limit"), [(40, 3_000, 24_000), (60, 1_900, 40_000), (8, 90_000, 6_000)]
)
async def test_results_come_down_below_two_kilobytes_where_they_must(
    says: str, count: int, size: int, limit: int
) -> None:
    recovered = await both(Model(limit, says=says), history(*[size] * count))

    assert recovered.value == f"answer to {count + 1} messages"
    assert len(recovered.spilled) == len(notices(recovered.messages)) == count
    assert max(len(result.value) for result in tool_results(recovered.messages)) < 1_000


async def test_what_the_provider_counts_besides_the_messages_does_not_make_too_few_spill() -> None:
    says = "prompt is too long: 40000 tokens > 30000 maximum"  # 30,000 of them are tools and the answer
    model = Model(15_000, says=says)
    recovered = await both(model, history(*[10_000] * 4))

    assert len(model.asked) == 2
    assert len(recovered.spilled) == 4


async def test_numbers_that_say_too_little_are_doubled_round_after_round() -> None:
    model = Model(30_000, says="prompt is too long: 10001 tokens > 10000 maximum")
    await both(model, history(*[6_000] * 12))

    assert [len(notices(asked)) for asked in model.asked] == [0, 2, 6, 12]


async def test_of_equal_results_the_last_one_spills() -> None:
    recovered = await both(Model(70_000), history(30_000, 30_000, 30_000))

    assert notices(recovered.messages) == ["call_2"]


async def test_without_numbers_results_spill_above_thresholds_that_come_down() -> None:
    model = Model(30_000, says=NO_NUMBERS)
    recovered = await both(model, history(60_000, 20_000, 9_000, 3_000))

    assert [notices(asked) for asked in model.asked] == [[], ["call_0"], ["call_0", "call_1"]]
    assert recovered.value == "answer to 5 messages"


async def test_without_numbers_a_known_window_gives_the_first_threshold() -> None:
    model = Model(40_000, says=NO_NUMBERS)
    recovered = await both(model, history(30_000, 20_000, 9_000), window=20_000)

    assert notices(recovered.messages) == ["call_0"]


async def test_a_limit_without_the_actual_size_gives_the_first_threshold_too() -> None:
    model = Model(40_000, says="Range of input length should be [1, 20000]")
    recovered = await both(model, history(30_000, 20_000, 9_000))

    assert notices(recovered.messages) == ["call_0"]


async def test_what_is_too_large_as_a_payload_spills_as_well() -> None:
    recovered = await both(Model(40_000, says="413 Request Entity Too Large"), history(60_000))

    assert len(recovered.spilled) == 1


async def test_short_results_stay_and_the_error_comes_back_with_what_was_tried() -> None:
    model, messages = Model(10), history(60_000, 400)

    with pytest.raises(RuntimeError, match=r"prompt is too long: 1\d{2} tokens > 2 maximum") as caught:
        await recover(model.later, messages, guard=Guard(), compact=lambda messages: messages[1:], attempts=1)

    assert caught.value.__notes__ == [
        "Overspill: still too large after 1 compaction and with 1 tool result spilled."
    ]
    assert model.asked[-1][-1] == messages[-1]
    assert caught.value.__context__ is None


async def test_with_nothing_to_shorten_the_call_is_made_once() -> None:
    model = Model(10)

    with pytest.raises(RuntimeError) as caught:
        await recover(model.later, history(400), guard=Guard())
    assert len(model.asked) == 1
    assert caught.value.__notes__ == [
        "Overspill: still too large after 0 compactions and with 0 tool results spilled."
    ]


async def test_notices_and_results_of_tools_that_read_captures_stay() -> None:
    guard = Guard(policy=Policy(max_bytes=1_000))
    notice = guard.process_sync("x" * 90_000, tool="t").value
    messages = history(0, 60_000)
    messages[1]["content"] = notice
    messages.append({"role": "tool", "name": "inspect_output", "tool_call_id": "r", "content": "y" * 10_000})

    recovered = await recover(Model(40_000).later, messages, guard=guard)

    assert recovered.messages[1] is messages[1]
    assert recovered.messages[3] is messages[3]


@pytest.mark.parametrize(
    "error", [ValueError("no"), ConnectionResetError(), RuntimeError("Rate limit reached")]
)
def test_other_errors_pass_at_once(error: Exception) -> None:
    calls: list[int] = []

    def call(messages: list[Any]) -> str:
        calls.append(1)
        raise error

    with pytest.raises(type(error)) as caught:
        recover_sync(call, history(60_000), guard=Guard())
    assert caught.value is error
    assert calls == [1]
    assert not hasattr(error, "__notes__")


async def test_another_error_of_the_compaction_passes_at_once() -> None:
    def compact(messages: list[Any]) -> list[Any]:
        raise KeyError("compact")

    with pytest.raises(KeyError):
        await recover(Model(10).later, history(60_000), guard=Guard(), compact=compact)


async def test_a_recovery_can_be_cancelled() -> None:
    started = asyncio.Event()

    async def call(messages: list[Any]) -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    task = asyncio.create_task(recover(call, history(60_000), guard=Guard()))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_messages_given_are_not_changed() -> None:
    messages = history(60_000, 20_000)
    before = json.dumps(messages)
    await both(Model(30_000), messages)

    assert json.dumps(messages) == before


async def test_what_spills_can_be_read_back(service: ServiceProcess) -> None:
    messages = history(60_000, 3_000)
    async with Client(service.url) as client:
        recovered = await recover(Model(30_000).later, messages, guard=Guard(client, session="recovery read"))
        capture = str(recovered.spilled[0].capture)

        assert await client.content(capture) == messages[1]["content"].encode()
    assert capture in recovered.messages[1]["content"]


async def test_an_error_names_the_captures_of_what_was_spilled(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        guard = Guard(client, session="recovery error")
        with pytest.raises(RuntimeError) as caught:
            await recover(Model(10).later, history(60_000), guard=guard)
        produced = await guard.process(history(60_000)[1]["content"], tool="t", call_id="call_0")

    assert f"with 1 tool result spilled ({produced.capture})." in caught.value.__notes__[0]


async def test_the_histories_that_came_of_a_recovery_need_no_further_one() -> None:
    recovered = await both(Model(30_000), history(60_000, 20_000))
    again = Model(30_000)

    assert (await recover(again.later, recovered.messages, guard=Guard())).messages is recovered.messages
    assert len(again.asked) == 1


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 80_000), max_size=6),
    st.integers(1, 120_000),
    st.sampled_from(
        [NO_NUMBERS, "prompt is too long: {actual} tokens > {limit} maximum", "413 Payload Too Large"]
    ),
    st.sampled_from([None, lambda messages: messages[:-1], lambda messages: messages]),
)
def test_every_recovery_ends_soon_without_the_same_call_twice(
    sizes: list[int], limit: int, says: str, compact: Any
) -> None:
    model, messages = Model(limit, says=says), history(*sizes)
    refused: RuntimeError | None = None
    try:
        recovered = recover_sync(model, messages, guard=Guard(), compact=compact)
    except RuntimeError as error:
        refused = error

    if refused is None:
        assert extent(recovered.messages) <= limit
    else:
        left = [result.value for result in tool_results(model.asked[-1])]
        assert all(is_notice(value) or len(value) <= 2 * KEPT_CHARS for value in left)
    assert len(model.asked) <= 1 + 3 + len(sizes)


def test_both_kinds_of_code_have_the_same_options() -> None:
    assert list(inspect.signature(recover).parameters) == list(inspect.signature(recover_sync).parameters)
