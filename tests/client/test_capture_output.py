"""File-based output management, and responses wrapped: what callers get, against the real service."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pydantic
import pytest
from overspill import Band, CapturedOutput, Client, Guard, Policy, Spool, SyncClient
from overspill.previews.notice_forms import is_notice
from overspill.reading.content_kind import HEAD_BYTES, detect
from overspill.shapes.captured import kind_of
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

LONG = "".join(f"line {number}\n" for number in range(1, 10_001))
ROWS = {"rows": [{"id": number, "name": f"row {number}"} for number in range(5_000)]}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


class Block(pydantic.BaseModel):
    type: str
    text: str | None = None
    data: str | None = None


class Result(pydantic.BaseModel):
    content: list[Block]
    structuredContent: dict[str, Any] | None = None  # noqa: N815  (as MCP spells it)
    isError: bool = False  # noqa: N815


@pytest.fixture(scope="module")
def client(service: ServiceProcess) -> Iterator[SyncClient]:
    with SyncClient(service.url, session="outputs") as opened:
        yield opened


@pytest.fixture
def guard(client: SyncClient) -> Guard:
    return Guard(client)


# --- capture_output -------------------------------------------------------------------------------


def test_a_small_output_is_handed_on_whole(guard: Guard) -> None:
    text = "three\nlines\nhere"

    assert guard.capture_output_sync(text, "ls") == CapturedOutput(
        content=text, total_lines=3, total_bytes=16, content_type="text"
    )


def test_a_large_one_is_cut_and_its_handle_leads_to_all_of_it(client: SyncClient, guard: Guard) -> None:
    output = guard.capture_output_sync(LONG, "pytest")

    assert (output.truncated, output.total_lines, output.total_bytes) == (True, 10_000, len(LONG))
    assert output.content.startswith("line 1\nline 2\n")
    assert len(output.content.encode()) <= 2_048
    assert client.content(str(output.capture)).decode() == LONG


def test_the_notice_names_source_handle_and_call(guard: Guard) -> None:
    output = guard.capture_output_sync(LONG, "pytest")

    assert is_notice(output.notice)
    assert str(output.notice).startswith("[overspill] Output of pytest too long")
    assert f'inspect_output("{output.capture}")' in str(output.notice)
    assert output.content in str(output.notice)


@pytest.mark.parametrize(
    ("text", "truncated"),
    [
        ("x" * 5_000, False),
        ("x" * 5_001, True),
        ("漢" * 5_000, False),
        ("x\n" * 100, False),
        ("x\n" * 101, True),
    ],
)
def test_five_thousand_characters_and_a_hundred_lines_stay(guard: Guard, text: str, truncated: bool) -> None:
    assert guard.capture_output_sync(text, "t").truncated is truncated


def test_the_inline_threshold_can_be_another(guard: Guard) -> None:
    assert guard.capture_output_sync("x" * 11, "t", inline_threshold=10).truncated
    assert not guard.capture_output_sync(
        "x\n" * 3_000, "t", inline_threshold=10_000, inline_lines=3_000
    ).truncated


def test_a_limit_below_zero_is_a_mistake_of_the_caller(guard: Guard) -> None:
    with pytest.raises(ValueError, match="inline_threshold must be 0 or more, not -1"):
        guard.capture_output_sync("x", "t", inline_threshold=-1)


def test_it_is_kept_for_a_day(client: SyncClient, guard: Guard) -> None:
    before = datetime.now(UTC)
    entry = client.get(str(guard.capture_output_sync(LONG, "t", call_id="call_day").capture))

    assert timedelta(hours=24) <= entry.expires - before < timedelta(hours=24, minutes=2)
    assert (entry.tool, entry.session, entry.call_id) == ("t", "outputs", "call_day")
    assert entry.stored_size < entry.size / 2


def test_the_policys_own_retention_goes_before_a_day(client: SyncClient) -> None:
    output = Guard(client, Policy(ttl=600)).capture_output_sync(LONG, "t", call_id="call_ttl")
    entry = client.get(str(output.capture))

    assert entry.expires - entry.created <= timedelta(seconds=602)


async def test_with_an_event_loop_it_is_the_same(service: ServiceProcess, guard: Guard) -> None:
    async with Client(service.url, session="outputs") as client:
        asynchronous = Guard(client)
        for content in ("small", LONG, "x" * 200_000):
            found = await asynchronous.capture_output(content, "t", call_id="call_same")

            assert found == guard.capture_output_sync(content, "t", call_id="call_same")


def test_without_a_service_the_cut_has_no_handle_and_the_notice_says_why() -> None:
    output = Guard().capture_output_sync(LONG, "t")

    assert (output.capture, output.truncated) == (None, True)
    assert output.reason == "no Overspill service is configured"
    assert "It could NOT be stored: no Overspill service is configured." in str(output.notice)


def test_every_output_is_counted_where_it_belongs(client: SyncClient) -> None:
    guard = Guard(client)
    guard.capture_output_sync("small", "t")
    guard.capture_output_sync(LONG, "t")

    assert {outcome: count.count for (_, outcome), count in guard.stats.items()} == {
        Outcome.INLINE: 1,
        Outcome.CAPTURED: 1,
    }


def test_what_resists_being_looked_at_is_handed_on() -> None:
    class Broken(dict[str, int]):
        def get(self, *_: Any) -> Any:
            raise RuntimeError("no")

    broken = Broken(a=1)

    assert Guard().capture_output_sync(broken, "t").content is broken


@pytest.mark.parametrize(
    ("content", "kind", "lines"),
    [
        (ROWS, "json", 20_004),
        ({"a": 1}, "json", 3),
        (json.dumps(ROWS), "json", 1),
        (b"plain bytes", "text", 1),
        (b"\x89PNG\r\n\x1a\n\xff\x00", "unknown", 3),
        (None, "unknown", 0),
        ([{"type": "text", "text": "2026-11-01 12:00:00 started\n"}, IMAGE], "log", 1),
    ],
)
def test_outputs_of_any_shape_have_a_kind_and_totals(
    guard: Guard, content: Any, kind: str, lines: int
) -> None:
    output = guard.capture_output_sync(content, "t")

    assert (output.content_type, output.total_lines) == (kind, lines)
    assert output.truncated or output.content is content


SAMPLES = {
    "prose": ("It was a dark night.\nNothing moved.\n", "text"),
    "code": ("def f() -> int:\n    return 1\n", "text"),
    "object": ('{"a": [1, 2, {"b": null}]}', "json"),
    "array": ("[1, 2, 3]\n", "json"),
    "cut json": ('[{"name": "' + "x" * 20_000 + '"}]', "json"),
    "json lines": ('{"a": 1}\n{"a": 2}\n', "json"),
    "brackets": ("[INFO] one\n[INFO] two\n", "log"),
    "braces": ("{not json}", "text"),
    "iso": ("2026-11-21T23:12:01Z one\n2026-11-21 23:12:02,123 two\n", "log"),
    "levels": ("ERROR boom\nWARNING hm\nnothing\n", "log"),
    "access": ('127.0.0.1 - - [21/Nov/2026:23:12:01 +0000] "GET / HTTP/1.1" 200\n', "log"),
    "syslog": ("Nov 21 23:12:01 host sshd[1]: closed\n", "log"),
    "logfmt": ("ts=1 level=info msg=hi\n", "log"),
    "coloured": ("\x1b[32m2026-11-21 23:12:01\x1b[0m INFO up\n", "log"),
    "empty": ("", "unknown"),
    "nul": ("a\0b", "unknown"),
    "digits": ("1\n2\n3\n", "text"),
    "wide": ("漢" * 10_000, "text"),
}


@pytest.mark.parametrize("name", list(SAMPLES))
def test_the_kind_is_told_from_text_and_from_bytes(name: str) -> None:
    text, kind = SAMPLES[name]

    assert (kind_of(text), kind_of(text.encode())) == (kind, kind)


@pytest.mark.parametrize("name", list(SAMPLES))
def test_the_kind_is_the_one_that_the_service_finds(name: str) -> None:
    text, kind = SAMPLES[name]

    assert detect(text.encode()[:HEAD_BYTES], None).replace("binary", "unknown") == kind


# --- responses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "response",
    [
        {"rows": [1, 2]},
        [1, 2],
        {"content": [{"type": "text", "text": "ok"}], "structuredContent": {"a": 1}, "isError": False},
        Result(content=[Block(type="text", text="ok")], isError=True),
    ],
    ids=["dict", "list", "result", "object"],
)
def test_a_small_response_is_inline_and_untouched(guard: Guard, response: Any) -> None:
    guarded = guard.process_sync(response, tool="mcp")

    assert guarded.value is response
    assert guarded.as_response() == {"status": "inline", "result": response}
    assert guarded.as_response()["result"] is response


@pytest.mark.parametrize("response", [ROWS, ROWS["rows"]], ids=["dict", "list"])
def test_a_large_response_is_captured_as_indented_json(
    client: SyncClient, guard: Guard, response: Any
) -> None:
    guarded = guard.process_sync(response, tool="mcp")
    wrapped = guarded.as_response()

    text = json.dumps(response, indent=2)
    assert type(guarded.value) is type(response)
    assert (wrapped["status"], wrapped["capture"]) == ("captured", guarded.capture)
    assert (wrapped["total_bytes"], wrapped["total_lines"]) == (len(text), text.count("\n") + 1)
    assert text[:500] in wrapped["preview"]
    assert wrapped["read_more"].startswith(f'inspect_output("{guarded.capture}")')
    assert client.content(wrapped["capture"]).decode() == text


def test_a_wrapped_response_is_small_json_and_not_wrapped_again(guard: Guard) -> None:
    wrapped = guard.process_sync(ROWS, tool="mcp").as_response()

    assert len(json.dumps(wrapped)) < 5_000
    assert guard.process_sync(wrapped, tool="mcp", policy=Policy(max_bytes=100)).value is wrapped


def test_a_large_mcp_result_keeps_its_shape_its_image_and_its_error(guard: Guard) -> None:
    result = {"content": [{"type": "text", "text": LONG}, IMAGE], "isError": True, "_meta": {"k": 1}}
    guarded = guard.process_sync(result, tool="mcp")

    assert guarded.value == {
        "content": [{"type": "text", "text": str(guarded.notice)}, IMAGE],
        "isError": True,
        "_meta": {"k": 1},
    }
    assert guarded.as_response()["isError"] is True


def test_a_large_mcp_object_keeps_its_class(guard: Guard) -> None:
    result = Result(content=[Block(type="text", text=LONG), Block(type="image", data="aGk=")], isError=True)
    guarded = guard.process_sync(result, tool="mcp")

    assert guarded.value == Result(
        content=[Block(type="text", text=str(guarded.notice)), Block(type="image", data="aGk=")], isError=True
    )
    assert guarded.as_response()["isError"] is True


def test_structured_content_that_repeats_the_text_is_captured_once(client: SyncClient, guard: Guard) -> None:
    text = json.dumps(ROWS)
    guarded = guard.process_sync(
        {"content": [{"type": "text", "text": text}], "structuredContent": ROWS}, tool="mcp"
    )

    assert guarded.value["content"] == [{"type": "text", "text": str(guarded.notice)}]
    assert len(json.dumps(guarded.value["structuredContent"])) < 1_000
    assert client.content(str(guarded.capture)).decode() == text


def test_structured_content_alone_has_the_notice_in_it(client: SyncClient, guard: Guard) -> None:
    guarded = guard.process_sync({"content": [], "structuredContent": ROWS, "isError": False}, tool="mcp")

    rows = guarded.value["structuredContent"]["rows"]
    assert (guarded.value["content"], guarded.value["isError"]) == ([], False)
    assert rows[0] == ROWS["rows"][0]
    assert rows[-1]["name"] == str(guarded.notice)
    assert json.loads(client.content(str(guarded.capture))) == ROWS


def test_a_response_that_could_not_be_stored_says_so() -> None:
    wrapped = Guard().process_sync(ROWS, tool="mcp").as_response()

    assert (wrapped["status"], "read_more" in wrapped) == ("truncated", False)
    assert "It could NOT be stored: no Overspill service is configured." in wrapped["notice"]


def test_a_short_stream_is_handed_on_joined() -> None:
    output = Guard().capture_output_sync(iter(["a\n", "b\n"]), "t")

    assert (output.content, output.total_lines, output.truncated) == ("a\nb\n", 2, False)


async def test_a_short_asynchronous_stream_is_handed_on_joined() -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"a\n"
        yield b"b\n"

    assert (await Guard().capture_output(source(), "t")).content == b"a\nb\n"


@pytest.mark.parametrize("chunks", [["a\n", "b\n"], [{"a": 1}, {"b": 2}]], ids=["text", "data"])
async def test_a_stream_that_fails_is_handed_on_as_far_as_it_came_with_the_reason(chunks: list[Any]) -> None:
    def failing() -> Iterator[Any]:
        yield from chunks
        raise ValueError("boom")

    async def failing_async() -> AsyncIterator[Any]:
        for chunk in chunks:
            yield chunk
        raise ValueError("boom")

    guard = Guard()
    outputs = [
        guard.capture_output_sync(failing(), "t"),
        await guard.capture_output(failing(), "t"),
        await guard.capture_output(failing_async(), "t"),
    ]

    for output in outputs:
        content = output.content if isinstance(output.content, str) else list(output.content)
        assert content == ("a\nb\n" if chunks[0] == "a\n" else chunks)
        assert output.reason == "the stream failed: ValueError: boom"


def test_a_long_stream_that_fails_is_handed_on_with_its_notice() -> None:
    def failing() -> Iterator[str]:
        yield LONG
        raise ValueError("boom")

    output = Guard().capture_output_sync(failing(), "t")

    assert output.truncated
    assert output.notice is not None


def endless() -> Iterator[bytes]:
    while True:
        yield b"x" * 65_535 + b"\n"


def test_an_endless_stream_ends_where_the_policy_says(tmp_path: Path) -> None:
    guard = Guard(policy=Policy(max_stream_bytes=3_000_000), spool=Spool(tmp_path))
    guarded = guard.process_sync(endless(), tool="t")

    assert guarded.outcome is Outcome.SPOOLED
    assert guarded.bytes_before < 3_100_000


def test_an_endless_stream_ends_where_the_only_spool_could_not_keep_it(tmp_path: Path) -> None:
    guarded = Guard(spool=Spool(tmp_path, max_bytes=2_000_000)).process_sync(endless(), tool="t")

    assert guarded.outcome is Outcome.SPOOLED
    assert guarded.bytes_before < 2_000_000


@pytest.mark.parametrize(
    "bands", [(Band(),), (Band(destinations=()),), (Band(), Band(above=2_000_000, destinations=()))]
)
def test_an_endless_stream_that_nothing_could_store_is_not_read_for_gigabytes(
    bands: tuple[Band, ...],
) -> None:
    guarded = Guard(policy=Policy(bands=bands)).process_sync(endless(), tool="t")

    assert guarded.outcome is Outcome.TRUNCATED
    assert guarded.bytes_before < 65 * 1024 * 1024
    assert b"too long: at least " in guarded.value


@pytest.mark.parametrize("policy", [Policy(), Policy.persisted(), Policy.clamped(), Policy(style="TERSE")])
def test_of_a_stream_that_was_ended_no_notice_says_that_it_is_whole(tmp_path: Path, policy: Policy) -> None:
    policy = replace(policy, max_stream_bytes=3_000_000)
    said = str(Guard(policy=policy, spool=Spool(tmp_path)).process_sync(endless(), tool="t").value)

    assert "beginning" in said or "the first " in said
    assert "whole" not in said
    assert "Full output" not in said
    assert "overspill: all" not in said
