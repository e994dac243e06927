"""The client's page says which call does what: each row of that table, and the exact text that a model sees.

Ids of captures are numbered in the order of their appearance; instants and the ports of services vary.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import secrets
import socket
from typing import TYPE_CHECKING, Any, Final

import pytest
from overspill import (
    Band,
    Client,
    Guard,
    Holdout,
    Policy,
    Spool,
    SyncClient,
    Workspace,
    calling,
    clamp_messages,
    compare_arms,
    defuse,
    for_display,
    inspection_tool,
    is_notice,
    is_overflow,
    recover_sync,
    spill_messages_sync,
    system_prompt,
)
from overspill.advice.usual import MAX_BYTES, TOOL_BYTES
from overspill.guard.policy_defaults import (
    CAPPED_BYTES,
    CLAMP_BYTES,
    CONTEXT_SHARE,
    CONTEXT_TOKENS,
    INLINE_CHARS,
    INLINE_LINES,
    MAX_LINES,
    PREVIEW_BYTES,
    SHARE_CEILING,
    SHARE_FLOOR,
)
from overspill.histories.recovery import MAX_COMPACTIONS
from overspill.previews.cut import PREVIEW
from overspill.shapes.display import MAX_CHARS, MAX_ERROR_CHARS
from overspill.wire import DEFAULT_TTL, Outcome
from prometheus_client import CollectorRegistry

from tests.client.test_client_readme import page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess
    from tests.servers.tracing import Tracing

LINES: Final = "".join(f"line {number}\n" for number in range(1, 10_001))
BRIEF: Final = Policy(preview_bytes=256, lost_preview_bytes=256)
CALL: Final = 'inspect_output("cap_1")'
READ: Final = f"{CALL}; modes: tail, range, grep, summary"
AGAIN_NOT: Final = "Do not rerun."
SIZES: Final = "98894 bytes, 10000 lines, about 44000 tokens"
GAP: Final = (
    f"{LINES[: LINES.index('line 15')]}"
    "… [9,976 lines, 98,690 bytes not shown] …\n"
    f"{LINES[LINES.index('line 9991') :]}"
)
STORED: Final = (
    f"[overspill] Output of run_command (toolu_1) too long: {SIZES}. "
    "Stored whole until then.\n"
    f"Read more: {READ}. {AGAIN_NOT}\n"
    "--- preview ---\n"
    f"{GAP}"
    "[/overspill]"
)
NOWHERE: Final = "It could NOT be stored: no Overspill service is configured."
AGAIN: Final = "If you need it, run the tool again with a narrower question (a filter, a range, fewer files)."

_shown: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {}


def shows(title: str, *defaults: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The test of the row with this title, whose last column names these defaults."""

    def noted(test: Callable[..., Any]) -> Callable[..., Any]:
        assert title not in _shown
        _shown[title] = test, tuple(f"{number:,g}" if number < 1 else f"{number:,}" for number in defaults)
        return test

    return noted


def stable(value: Any) -> str:
    """The text that a model sees, without what varies."""
    ids: list[str] = []

    def numbered(found: re.Match[str]) -> str:
        if found[0] not in ids:
            ids.append(found[0])
        return f"cap_{ids.index(found[0]) + 1}"

    text = re.sub(r"cap_[a-z2-7]{20}", numbered, str(value))
    text = re.sub(r"http://127\.0\.0\.1:\d+", "http://service", text)
    text = re.sub(r"(?<=[\w.]) \d{12}(?=\])", "", text)
    return re.sub(r"\d{1,2} [A-Z][a-z]{2} \d\d:\d\d UTC", "then", text)


@pytest.fixture
def client(service: ServiceProcess, request: pytest.FixtureRequest) -> Iterator[SyncClient]:
    with SyncClient(service.url, session=request.node.name) as client:
        yield client


@pytest.fixture
def down() -> Iterator[SyncClient]:
    """A client of a service that is not there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with SyncClient(f"http://127.0.0.1:{taken.getsockname()[1]}", retries=0) as client:
            yield client


# --- an output guard ------------------------------------------------------------------------------


@shows("limits per tool, in bytes", *TOOL_BYTES.values(), MAX_BYTES)
def test_strictly_more_than_the_bytes_of_its_tool_spills() -> None:
    guard = Guard(policy=Policy(tools={"build": 1_000}, lost_preview_bytes=260))

    assert guard.process_sync("é" * 500, tool="build").value == "é" * 500
    assert stable(guard.process_sync("é" * 500 + "x", tool="build").value) == (
        "[overspill NOT STORED] Output of build too long: 1001 bytes, 1 line, "
        f"about 320 tokens. {NOWHERE}\n"
        f"What the preview leaves out is lost. {AGAIN}\n"
        "--- preview ---\n"
        f"{'é' * 53}\n… [788 bytes of this line not shown] …\n{'é' * 53}x\n"
        "[/overspill]"
    )
    for tool, size in {**TOOL_BYTES, "any other": MAX_BYTES}.items():
        assert guard.process_sync("x" * size, tool=tool).outcome == "inline"
        assert guard.process_sync("x" * size + "x", tool=tool).outcome == "truncated"


@shows("the notice: what happened, where the output is, how to read it, and a preview", PREVIEW_BYTES)
def test_the_whole_is_stored_under_the_id_of_its_call_and_a_notice_says_so(client: SyncClient) -> None:
    guarded = Guard(client, BRIEF).process_sync(LINES, tool="run_command", call_id="toolu_1")
    answer: Any = inspection_tool(client)("call:toolu_1", "grep", pattern="LINE 5000$", context_lines=0)

    assert stable(guarded.value) == STORED
    assert answer["content"] == "5000:line 5000\n"
    assert client.get(str(guarded.capture)).call_id == "toolu_1"


@shows("the same in the words of a known output guard", PREVIEW_BYTES)
def test_an_output_guards_own_words_say_where_its_first_bytes_come_from(client: SyncClient) -> None:
    guard = Guard(client, Policy.persisted())

    assert stable(guard.process_sync(LINES, tool="run_command").value) == (
        "Output too large (96.6 KB). Full output saved to: cap_1\n"
        "\n"
        f"Use {READ}\n"
        "\n"
        "Preview (first 2048 bytes):\n"
        f"{LINES[:2048]}\n"
        "...\n"
        f"[overspill: all 98,894 bytes, 10,000 lines are stored until then. {AGAIN_NOT}]"
    )


@shows("the preview and the reason if storing failed", 4 * PREVIEW_BYTES)
def test_where_nothing_could_be_stored_the_notice_says_why_and_shows_what_there_is(
    down: SyncClient,
) -> None:
    guarded = Guard(down, BRIEF, spool=False).process_sync(LINES, tool="run_command")

    assert stable(guarded.value) == (
        f"[overspill NOT STORED] Output of run_command too long: {SIZES}. It could NOT be "
        "stored: http://service cannot be reached: connection refused.\n"
        f"What the preview leaves out is lost. {AGAIN}\n"
        "--- preview ---\n"
        f"{GAP}"
        "[/overspill]"
    )
    assert guarded.capture is None
    assert stable(guarded.reason) == "http://service cannot be reached: connection refused"


@shows("short outputs, values without text and messages that are not a tool's pass untouched")
def test_small_outputs_images_and_messages_of_people_are_the_same_objects() -> None:
    image = [{"type": "image", "data": "aGk=" * 100_000, "mimeType": "image/png"}]
    person = {"role": "user", "content": LINES}

    results: list[Any] = ["short", image, person, None, 7, {"rows": []}]
    for result in results:
        assert Guard().process_sync(result, tool="run_command").value is result


@shows("the store is a file in the agent's workspace")
def test_a_workspace_has_the_file_that_the_notice_names(tmp_path: Path) -> None:
    guarded = Guard(policy=BRIEF, spool=Workspace(tmp_path)).process_sync(LINES, tool="run_command")

    assert stable(guarded.value) == (
        f"[overspill] Output of run_command too long: {SIZES}. "
        "Stored whole in the file .overspill/cap_1.txt until then.\n"
        "Read more: read parts of .overspill/cap_1.txt with your file-reading tool, or grep it. "
        f"{AGAIN_NOT}\n"
        "--- preview ---\n"
        f"{GAP}"
        "[/overspill]"
    )
    assert (tmp_path / f".overspill/{guarded.capture}.txt").read_text() == LINES


# --- a hard clamp, and recovery -------------------------------------------------------------------

SUFFIX: Final = (
    "\n\n[tool output truncated: exceeded 50KB or 2000 lines; "
    "request smaller chunks (offset/limit) or specific sections]"
)


@shows("one clamp for all tools, lines first", CLAMP_BYTES, MAX_LINES)
def test_a_clamp_keeps_the_beginning_within_bytes_and_lines() -> None:
    guard = Guard(policy=Policy.clamped())
    lines = "".join(f"line {number}\r\n" for number in range(1, 2_101))

    assert guard.process_sync(lines[: lines.index("line 2001")], tool="t").outcome == "inline"
    assert guard.process_sync(lines, tool="t").value == lines[: lines.index("\r\nline 1999")] + SUFFIX
    assert guard.process_sync("漢" * 20_000, tool="read_file").value == "漢" * 17_028 + SUFFIX


@shows("a suffix that says what was exceeded and how to get more")
def test_the_suffix_of_a_clamp_is_short_and_followed_by_the_handle(client: SyncClient) -> None:
    text = Guard(client, Policy.clamped()).process_sync(LINES, tool="run_command").value

    assert stable(text[text.index("line 1997") :]) == (
        f"line 1997{SUFFIX}\n"
        "[overspill: all 98,894 bytes, 10,000 lines are stored until then. "
        f"Read more: {READ}. {AGAIN_NOT}]"
    )
    assert len(text.encode()) <= CLAMP_BYTES
    assert SUFFIX.isascii()


@shows("updates while the tool runs", MAX_BYTES, MAX_LINES)
def test_an_update_keeps_its_head_and_tail_and_is_not_stored() -> None:
    guard = Guard(policy=Policy(tools={"build": 300}))

    assert guard.partial(LINES, tool="build") == (
        f"{LINES[: LINES.index('line 15')]}"
        "... [98,690 bytes, 9,976 lines cut: over 300 bytes or 2,000 lines; the result follows] ...\n"
        f"{LINES[LINES.index('line 9991') :]}"
    )
    assert guard.partial("short", tool="build") == "short"
    assert guard.stats == {}


@shows("what a tool raises", MAX_BYTES)
def test_an_exception_keeps_its_type_and_has_the_notice_for_a_message(client: SyncClient) -> None:
    @Guard(client, Policy(preview_bytes=300)).wrap
    def run_tests() -> str:
        raise LookupError(LINES + "no such table: users")

    with calling("toolu_1"), pytest.raises(LookupError) as raised:
        run_tests()
    head, _, preview = stable(raised.value).partition("--- preview ---\n")

    assert re.sub(r"99\d{3} bytes", "99000 bytes", head) == (
        "[overspill] Output of run_tests (toolu_1, failed) too long: 99000 bytes, "
        "10004 lines, about 44000 tokens. Stored whole until then.\n"
        f"Read more: {READ}. {AGAIN_NOT}\n"
    )
    assert stable(preview).endswith("line 10000\nno such table: users\n[/overspill]")
    assert client.head("call:toolu_1", 1).content == "Traceback (most recent call last):\n"


@shows("a result of blocks keeps its shape")
def test_blocks_share_one_budget_and_what_is_no_text_stays() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    texts = [{"type": "text", "text": f"{letter}\n" * 3_000} for letter in "ab"]
    result = {"content": [texts[0], image, texts[1], {"type": "text", "text": "exit 1"}], "isError": True}

    value = Guard().process_sync(result, tool="mcp__build").value
    value["content"][0]["text"] = stable(value["content"][0]["text"])

    assert value == {
        "content": [
            {
                "type": "text",
                "text": "[overspill NOT STORED] Output of mcp__build (failed) too long: "
                f"12000 bytes, 6000 lines, about 7600 tokens. {NOWHERE}\n"
                f"What the preview leaves out is lost. {AGAIN}\n"
                "--- preview ---\n"
                "a\n"
                "… [5,998 lines, 11,996 bytes not shown] …\n"
                "b\n"
                "[/overspill]",
            },
            image,
            {"type": "text", "text": "[overspill: 6,000 bytes of text, not stored]"},
            {"type": "text", "text": "exit 1"},
        ],
        "isError": True,
    }


HISTORY: Final[list[Any]] = [
    {"role": "user", "content": LINES},
    {
        "role": "assistant",
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "run_command"}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": LINES},
]


@shows("a history is cut again before it is saved", MAX_BYTES)
def test_a_history_keeps_all_but_the_long_results_of_tools(client: SyncClient) -> None:
    cut = clamp_messages(HISTORY, BRIEF)
    stored = spill_messages_sync(HISTORY, Guard(client, BRIEF))

    assert cut[:2] == stored[:2] == HISTORY[:2]
    assert stable(cut[2]["content"]) == (
        f"[overspill NOT STORED] Output of run_command (call_1) too long: {SIZES}. "
        "It could NOT be stored: the history was cut before it was saved, with no store at hand.\n"
        f"What the preview leaves out is lost. {AGAIN}\n"
        "--- preview ---\n"
        f"{GAP}"
        "[/overspill]"
    )
    assert stable(stored[2]["content"]) == STORED.replace("toolu_1", "call_1")
    assert clamp_messages(stored, BRIEF) is stored


@shows("a call that is too large: compaction, then spilling, then again", MAX_COMPACTIONS)
def test_a_call_that_is_too_large_is_made_again_with_the_largest_result_spilled(client: SyncClient) -> None:
    compactions: list[int] = []

    def call(messages: list[Any]) -> str:
        size = sum(len(str(message)) for message in messages)
        if size > 5_000:
            raise RuntimeError(f"prompt is too long: {size // 4} tokens > 1250 maximum")
        return "answered"

    def compact(messages: list[Any]) -> list[Any]:
        compactions.append(len(messages))
        return [messages[0] | {"content": "x" * (3_000 - len(compactions))}, *messages[1:]]

    messages = [{"role": "user", "content": "x" * 4_000}, *HISTORY[1:]]
    recovered = recover_sync(call, messages, guard=Guard(client, BRIEF), compact=compact)

    assert is_overflow(RuntimeError("prompt is too long: 2 tokens > 1 maximum"))
    assert (recovered.value, recovered.compactions, compactions) == ("answered", 3, [3, 3, 3])
    assert stable(recovered.messages[2]["content"]) == STORED.replace("toolu_1", "call_1")


@shows("a share of the context window", CONTEXT_SHARE, SHARE_FLOOR, SHARE_CEILING)
def test_a_share_of_the_window_is_kept_of_the_beginning() -> None:
    guard = Guard(policy=Policy.clamped_to_share(8_000, context_share=0.3))
    suffix = (
        "\n\n⚠️ [Content truncated — original was too large for the model's context window. "
        "The content above is a partial view. If you need more, request specific sections or use "
        "offset/limit parameters to read smaller chunks.]"
    )

    assert guard.process_sync(LINES, tool="t").value == LINES[: LINES.index("\nline 1050\n")] + suffix
    assert guard.process_sync("x" * 9_600, tool="t").outcome == "inline"


@shows("what a user interface shows", MAX_CHARS, MAX_ERROR_CHARS)
def test_a_user_interface_gets_less_than_the_model() -> None:
    shown = for_display(LINES)
    image = [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]

    assert len(shown) <= MAX_CHARS
    assert shown[5_301:5_364] == "line 602\n… [90,933 characters not shown] …\nline 9736\nline 9737\n"
    assert for_display(ValueError("no such table: users\n" + LINES)) == (
        "ValueError: no such table: users … [98,894 characters not shown]"
    )
    assert for_display(image) == [{"type": "image", "mimeType": "image/png", "bytes": 2, "omitted": True}]


# --- a limit in tokens ----------------------------------------------------------------------------


@shows("a limit in tokens", CONTEXT_TOKENS, int(CONTEXT_TOKENS * CONTEXT_SHARE))
def test_of_too_many_tokens_the_first_four_fifths_of_the_limit_stay() -> None:
    words = "word " * 5_000
    counted = Guard(policy=Policy.token_limited(1_000, tokenizer=str.split))
    failing = Guard(policy=Policy.token_limited(1_000, tokenizer=lambda _: 1 / 0))

    assert counted.process_sync(words, tool="t").value == (
        f"{'word ' * 240}\n\n"
        "⚠️ [Output truncated: 5000 tokens exceeds limit of 300. Showing first 240 tokens. "
        "Use pagination or filters to get specific data.]"
    )
    assert failing.process_sync(words, tool="t").value == (
        f"{'word ' * 192}\n\n"
        "⚠️ [Output truncated: ~6250 tokens exceeds limit of 300. Showing first 240 tokens. "
        "Use pagination or filters to get specific data.]"
    )


# --- file-based output management -----------------------------------------------------------------


@shows(
    "an output as separate fields: content, handle, totals, kind",
    INLINE_CHARS,
    INLINE_LINES,
    DEFAULT_TTL // 3600,
)
def test_an_output_comes_in_parts(client: SyncClient) -> None:
    output = Guard(client, BRIEF).capture_output_sync(LINES, "run_command")
    short = Guard(client).capture_output_sync("{}", "run_command", inline_threshold=2)
    entry = client.get(str(output.capture))

    assert stable(output.notice) == STORED.replace(" (toolu_1)", "")
    assert (output.content, output.truncated, output.total_lines) == (GAP, True, 10_000)
    assert (output.total_bytes, output.content_type) == (98_894, "text")
    assert (short.content, short.truncated, short.content_type, short.capture) == ("{}", False, "json", None)
    assert (entry.expires - entry.created).total_seconds() == pytest.approx(DEFAULT_TTL, abs=2)


@shows("any response wrapped, with its status")
def test_a_response_is_wrapped_and_says_whether_it_is_whole(client: SyncClient) -> None:
    rows = {"rows": [{"id": number} for number in range(5_000)]}
    small = {"rows": [1]}
    guard = Guard(client, Policy(preview_bytes=256))

    assert guard.process_sync(small, tool="query").as_response() == {"status": "inline", "result": small}
    made = guard.process_sync(rows, tool="query").as_response()
    assert re.fullmatch(r"\d{12}", made.pop("mark"))
    assert stable(json.dumps(made, ensure_ascii=False)) == (
        json.dumps(
            {
                "notice": "[overspill] Output of query too long: 148908 bytes, "
                "15004 lines, about 52000 tokens. Stored whole until then.\n"
                f"Read more: {READ}. {AGAIN_NOT}",
                "status": "captured",
                "capture": "cap_1",
                "total_bytes": 148_908,
                "total_lines": 15_004,
                "read_more": CALL,
                "preview": '{\n  "rows": [\n'
                + "".join(f'    {{\n      "id": {number}\n    }},\n' for number in range(3))
                + "    {\n… [14,980 lines, 148,706 bytes not shown] …\n    },\n"
                + ",\n".join(f'    {{\n      "id": {number}\n    }}' for number in range(4_997, 5_000))
                + "\n  ]\n}",
            },
            ensure_ascii=False,
        )
    )


# --- a registry's ceiling -------------------------------------------------------------------------


@shows("one ceiling in bytes, head and tail kept", CAPPED_BYTES)
def test_a_ceiling_keeps_head_and_tail_around_a_count() -> None:
    guard = Guard(policy=Policy.capped(120))

    assert guard.process_sync(LINES, tool="t").value == (
        "line 1\nline 2\nline 3\nline 4\nline 5\n"
        "\n... [98825 bytes truncated; head + tail kept] ...\n"
        "97\nline 9998\nline 9999\nline 10000\n"
    )
    assert guard.process_sync("漢" * 41, tool="t").value == (
        "漢" * 12 + "\n... [54 bytes truncated; head + tail kept] ...\n" + "漢" * 11
    )
    assert Guard(policy=Policy.capped()).process_sync("x" * CAPPED_BYTES, tool="t").outcome == "inline"


@shows("what a tool itself left out, separate from what the guard cut")
def test_matches_that_were_dropped_and_bytes_before_the_cut_are_two_figures() -> None:
    guarded = Guard(policy=Policy.capped(120)).process_sync(LINES, tool="grep_search", matches_dropped=7)

    assert (guarded.matches_dropped, guarded.bytes_before, guarded.bytes_after) == (7, 98_894, 120)
    assert "98825 bytes truncated" in guarded.value


@shows("errors, and tools without limits of their own, are guarded too")
def test_errors_of_unknown_tools_are_cut_like_results() -> None:
    guard = Guard(policy=Policy.capped(120))
    guarded = guard.process_sync(KeyError(LINES), tool="no such tool", status="error")

    assert isinstance(guarded.value, KeyError)
    assert str(guarded.value) == (
        "'line 1\\nline 2\\nline 3\\nline 4\\nl"
        "\n... [108828 bytes truncated; head + tail kept] ...\n"
        "ine 9998\\nline 9999\\nline 10000\\n'"
    )
    assert list(guard.stats) == [("no such tool", "truncated")]


# --- beyond all of them ---------------------------------------------------------------------------


@shows("the service is down: the spool")
def test_what_the_service_does_not_take_waits_on_this_machine(down: SyncClient, tmp_path: Path) -> None:
    guard = Guard(down, BRIEF, spool=Spool(tmp_path / "spool"))
    guarded = guard.process_sync(LINES, tool="run_command", call_id="toolu_1")

    assert stable(guarded.value) == STORED.replace(
        "Stored whole until then.",
        "Stored whole on this machine until then; the service could not take it (http://service cannot "
        "be reached: connection refused); it waits to be uploaded.",
    )
    assert [file.read_bytes() for file in (tmp_path / "spool").rglob("*.bin")] == [LINES.encode()]


@shows("destinations by size")
def test_bands_say_by_size_where_an_output_goes(client: SyncClient) -> None:
    bands = (Band(), Band(above=80_000, destinations=()))
    guard = Guard(client, Policy(lost_preview_bytes=256, bands=bands))

    assert guard.process_sync("x" * 80_000, tool="t").outcome == "captured"
    assert stable(guard.process_sync(LINES, tool="t").value) == (
        f"[overspill NOT STORED] Output of t too long: {SIZES}. It could NOT be stored: "
        "outputs of this size are not to be stored.\n"
        f"What the preview leaves out is lost. {AGAIN}\n"
        "--- preview ---\n"
        f"{GAP}"
        "[/overspill]"
    )


@shows("one budget for the results of a turn")
async def test_of_the_results_of_a_turn_the_largest_spills(service: ServiceProcess) -> None:
    async with Client(service.url, session="a turn") as client:
        guard = Guard(client, BRIEF)
        async with guard.turn(30_000):
            results = await asyncio.gather(
                *(
                    guard.process(LINES[:size], tool="read_file", call_id=f"toolu_{size}")
                    for size in (8_000, 13_893, 9_000)
                )
            )

    assert [guarded.outcome for guarded in results] == ["inline", "captured", "inline"]
    assert stable(results[1].value) == (
        "[overspill] Output of read_file (toolu_13893) too long beside the other results of "
        "this turn: 13893 bytes, 1500 lines, about 6200 tokens. Stored whole until then.\n"
        f"Read more: {READ}. {AGAIN_NOT}\n"
        "--- preview ---\n"
        f"{LINES[: LINES.index('line 15')]}"
        "… [1,476 lines, 13,690 bytes not shown] …\n"
        f"{LINES[LINES.index('line 1491') : 13_893]}"
        "[/overspill]"
    )


@shows("notices that keep a prompt cache warm")
def test_the_same_output_of_the_same_call_has_the_same_notice_to_the_byte(client: SyncClient) -> None:
    first, second = (
        Guard(client, BRIEF).process_sync(LINES, tool="run_command", call_id="call_0") for _ in range(2)
    )

    assert first.value == second.value
    assert stable(first.value) == STORED.replace("toolu_1", "call_0")
    assert Guard(client, BRIEF).process_sync(first.value, tool="run_command").value is first.value


@shows("previews that show the error in the middle")
def test_a_preview_shows_what_stands_out_in_the_middle() -> None:
    log = "".join(f"[{number}/4000] compiled src/module_{number}.c\n" for number in range(1, 4_001))
    log = log.replace("[2345/4000] compiled", "src/module_2345.c:17:9: error: 'count' undeclared in")
    text = Guard(policy=Policy(strategy=PREVIEW, lost_preview_bytes=600)).process_sync(log, tool="t").value

    assert stable(text[text.index("--- preview ---") :]) == (
        "--- preview ---\n"
        f"{log[: log.index('[4/4000]')]}"
        "… [3,989 lines, 153,407 bytes not shown but for lines that stand out:] …\n"
        "line 2,345: src/module_2345.c:17:9: error: 'count' undeclared in src/module_2345.c\n"
        "…\n"
        f"{log[log.index('[3993/4000]') :]}"
        "[/overspill]"
    )


@shows("counts of all outputs")
def test_every_output_is_counted_by_tool_and_outcome() -> None:
    guard, registry = Guard(policy=BRIEF), CollectorRegistry()
    guard.export(registry)
    for text in ("short", "é", LINES):
        after = guard.process_sync(text, tool="run_command").bytes_after
    counts = {
        outcome: (count.count, count.bytes_before, count.bytes_after)
        for (_, outcome), count in guard.stats.items()
    }

    assert counts == {"inline": (2, 7, 7), "truncated": (1, 98_894, after)}
    assert (
        registry.get_sample_value(
            "overspill_client_tool_outputs_total", {"tool": "run_command", "outcome": "inline"}
        )
        == 2
    )


@shows("spans in an agent's trace, down to the service")
async def test_a_spill_and_its_request_are_spans_of_the_agents_trace(
    client: SyncClient, tracing: Tracing
) -> None:
    with tracing.tracer.start_as_current_span("execute_tool build"):
        await Guard(client, BRIEF).process("short", tool="build")
        await Guard(client, BRIEF).process(LINES, tool="build")

    assert [span.name for span in tracing.ended()] == [
        "PUT /v1/captures/{ref}",
        "spill build",
        "execute_tool build",
    ]


@shows("statistics of all agents' outputs over time")
def test_the_service_sums_up_what_every_guard_reports(client: SyncClient) -> None:
    tool = f"tool-{secrets.token_hex(4)}"
    for _ in range(2):
        with Guard(client, BRIEF) as guard:
            for text in ("short", LINES):
                guard.process_sync(text, tool=tool)
    counts = {
        row.outcome: row.figures.get("tool_outputs")
        for row in client.stats(total=True).rows
        if row.tool == tool and row.outcome in [*Outcome]
    }

    assert counts == {"inline": 2, "captured": 2}
    assert {row.tool for row in client.fleet_stats(total=True).rows} <= {""}


@shows("whether a policy helps: an experiment on a share of sessions")
def test_a_share_of_sessions_keeps_outputs_whole_and_is_compared(client: SyncClient) -> None:
    holdout = Holdout(name=f"e-{secrets.token_hex(4)}")
    sessions = [f"agent {number}" for number in range(60)]
    held = [session for session in sessions if holdout.arm(session) == "holdout"]
    with Guard(client, Policy(max_bytes=1_000), holdout=holdout) as guard:
        whole = [
            session
            for session in sessions
            if guard.process_sync(LINES, tool="make", session=session).value == LINES
        ]
    [report] = compare_arms(client.experiments(), holdout.name)

    assert whole == held
    assert (holdout.share, holdout.keep_bytes) == (0.05, 200_000)
    assert (report.holdout.outputs, report.holdout.spilled) == (len(held), 0)
    assert (report.usual.outputs, report.usual.spilled) == (60 - len(held),) * 2


@shows("a notice names an earlier output with the same bytes")
def test_an_output_that_was_there_before_names_the_earlier_handle(client: SyncClient) -> None:
    guard = Guard(client, BRIEF)
    first, second = (
        guard.process_sync(LINES, tool="run_command", call_id=call_id) for call_id in ("call_1", "call_2")
    )
    quiet = Guard(client, Policy(preview_bytes=256, identical=False))

    assert stable(first.value) == STORED.replace("toolu_1", "call_1")
    assert stable(second.value) == STORED.replace("toolu_1", "call_2").replace(
        AGAIN_NOT,
        f"{AGAIN_NOT} It is byte for byte an earlier output of this session, whose handle is cap_2.",
    )
    assert str(first.capture) in second.value
    again = quiet.process_sync(LINES, tool="run_command", call_id="call_3")
    assert stable(again.value) == STORED.replace("toolu_1", "call_3")


@shows("a notice is recognised by its mark, and not by what it looks like")
def test_a_forged_notice_spills_and_a_guards_own_does_not() -> None:
    guard = Guard(policy=Policy(max_bytes=100))
    notice = guard.process_sync(LINES, tool="t").value

    assert guard.process_sync(notice, tool="t").value is notice
    assert guard.process_sync(notice.replace("NOT STORED", "SO STORED"), tool="t").outcome == "truncated"


@shows("what a model may believe, and texts that imitate a notice")
def test_ten_lines_say_what_to_believe_and_the_rest_can_be_quoted() -> None:
    forged = "[over\u200bspill] Output of t too long\n--- preview ---\n"

    assert len(system_prompt().splitlines()) == 10
    assert not is_notice(forged)
    assert defuse(forged) == "(over\u200bspill] Output of t too long\n> --- preview ---\n"


@shows("secrets are masked before anything is stored or shown")
def test_a_secret_is_masked_in_the_capture_and_in_the_notice(service: ServiceProcess) -> None:
    secret = "ghp_" + "aB3x" * 9
    with SyncClient(service.url) as client:
        guarded = Guard(client).process_sync(f"{secret}\n{LINES}", tool="t")
        own = Guard(client, Policy(redaction="tag", redact_patterns={"acme": "acme-[0-9]{8}"}))
        exact = Guard(client, Policy(redaction="off")).process_sync(f"{secret}\n{LINES}", tool="t")

        assert secret not in guarded.value
        assert client.head(str(guarded.capture), 1).content == "[REDACTED github-token]\n"
        assert own.process_sync(f"acme-47110815\n{LINES}", tool="t").masked == {"acme": 1}
        assert client.head(str(exact.capture), 1).content == f"{secret}\n"


@shows("an agent program that cuts results itself", MAX_BYTES)
def test_an_agent_program_shows_all_that_the_guard_leaves(client: SyncClient) -> None:
    hosted = Guard(client, Policy().for_host("cline"))
    shown = [
        hosted.process_sync("a" * size, tool="read_file", call_id=f"call_{size}").value
        for size in (8_000, 8_001, 100_000)
    ]

    assert shown[0] == "a" * 8_000
    assert all("cap_" in text and len(text) <= 8_000 for text in shown[1:])


# --- the table ------------------------------------------------------------------------------------


def rows() -> dict[str, tuple[str, str]]:
    """The call and the default of each row, by its title."""
    cells = re.findall(r"^\| (.+?) \| (.+?) \| (.*?) ?\|$", page("features"), re.MULTILINE)
    return {title: (call, default) for title, call, default in cells[1:]}


def test_the_table_has_the_rows_that_are_tested_and_no_others() -> None:
    assert list(rows()) == list(_shown)


@pytest.mark.parametrize("title", _shown)
def test_the_test_of_a_row_makes_the_calls_that_the_row_names(title: str) -> None:
    test, defaults = _shown[title]
    call, default = rows()[title]
    source = inspect.getsource(test)
    codes = " ".join(re.findall(r"`(.+?)`", call))
    names = set(re.findall(r"(?<=\.)\w+|\w+(?=[(=])|\b[A-Z_]{2,}\b", codes))

    assert names
    assert [name for name in names if not re.search(rf"\b{name}(?:_sync)?\b", source)] == []
    assert all(number in default for number in defaults)
