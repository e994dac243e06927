"""Both clients against the real service, method by method."""

from __future__ import annotations

import asyncio
import hashlib
import io
import random
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
from overspill import errors, wire
from overspill.transfer.client import Client, call
from overspill.transfer.sync import SyncClient
from overspill.wire import ByteRange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

LOG = "".join(
    f"{number} {'ERROR disk full' if number % 1000 == 0 else 'ok'}\n" for number in range(1, 20_001)
)


class Both:
    """Either client behind one face: its methods are awaited, whichever it is."""

    def __init__(self, client: Client | SyncClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if isinstance(self._client, Client):
            return method

        async def in_thread(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(method, *args, **kwargs)

        return in_thread

    async def all_of(self, method: str, *args: Any, **kwargs: Any) -> list[Any]:
        """Everything that an iterating method gives."""
        iterated = getattr(self._client, method)(*args, **kwargs)
        if isinstance(self._client, Client):
            return [item async for item in iterated]
        return await asyncio.to_thread(list, iterated)


@pytest.fixture(params=[Client, SyncClient])
async def overspill(request: pytest.FixtureRequest, service: ServiceProcess) -> AsyncIterator[Both]:
    """A client whose session no other test uses."""
    client: Client | SyncClient = request.param(service.url, session=f"{request.node.name} {random.random()}")
    yield Both(client)
    if isinstance(client, Client):
        await client.aclose()
    else:
        client.close()


async def test_what_is_put_comes_back_whole(overspill: Both) -> None:
    entry = await overspill.put(
        LOG, call_id="call_1", tool="run_command", status="exit 1", labels={"Team": "?", "team": "ü"}
    )

    assert await overspill.content(entry.id) == LOG.encode()
    assert (entry.size, entry.lines, entry.state) == (len(LOG), 20_000, wire.State.COMPLETE)
    assert (entry.call_id, entry.tool, entry.status) == ("call_1", "run_command", "exit 1")
    assert entry.labels == {"team": "ü"}
    assert entry.sha256 == hashlib.sha256(LOG.encode()).hexdigest()


@pytest.mark.parametrize("size", [0, 1, 4096, 512 * 1024, 512 * 1024 + 1, 5_000_000])
async def test_bytes_of_any_size_come_back_whole(overspill: Both, size: int) -> None:
    content = random.Random(size).randbytes(size)
    entry = await overspill.put(content)

    assert await overspill.content(entry.id) == content
    assert b"".join(await overspill.all_of("stream", entry.id)) == content


async def test_content_of_unknown_length_is_stored(overspill: Both) -> None:
    lines = LOG.encode().splitlines(keepends=True)
    entry = await overspill.put(iter(lines * 20))

    assert await overspill.content(entry.id) == LOG.encode() * 20


async def test_a_single_frame_is_stored_and_read_back(overspill: Both) -> None:
    entry = await overspill.put(io.BytesIO(LOG.encode()))

    assert entry.stored_size < entry.size / 5
    assert await overspill.content(entry.id) == LOG.encode()


async def test_long_content_may_travel_compressed(overspill: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overspill.transfer.address._LOCAL_HOSTS", frozenset())
    entry = await overspill.put(LOG * 20)

    assert await overspill.content(entry.id) == LOG.encode() * 20


async def test_putting_again_changes_nothing(overspill: Both) -> None:
    first = await overspill.put(LOG, call_id="call_1")

    assert await overspill.put(LOG, call_id="call_1") == first


async def test_an_id_that_holds_another_content_is_refused(overspill: Both) -> None:
    entry = await overspill.put("one")

    with pytest.raises(errors.IdConflict):
        await overspill.put("another", id=entry.id)


async def test_an_entry_is_found_by_id_and_by_call_id(overspill: Both) -> None:
    call_id = "toolu/with spaces, ünicode and %2F"
    entry = await overspill.put("found", call_id=call_id)

    assert await overspill.get(entry.id) == entry
    assert await overspill.get(call(call_id)) == entry


async def test_a_call_id_of_kilobytes_finds_its_capture(overspill: Both) -> None:
    call_id = "€" * 10_000
    entry = await overspill.put("found", call_id=call_id)

    assert await overspill.get(call(call_id)) == entry
    assert await overspill.content(call(call_id)) == b"found"


async def test_a_call_reference_stays_in_its_session(overspill: Both, service: ServiceProcess) -> None:
    mine = await overspill.put("mine", call_id="call_0")
    theirs = await overspill.put("theirs", call_id="call_0", session="another session")

    assert await overspill.get(call("call_0")) == mine
    assert await overspill.get(call("call_0"), session="another session") == theirs


async def test_a_capture_that_never_was_is_not_found(overspill: Both) -> None:
    with pytest.raises(errors.NotFound, match="request"):
        await overspill.get("cap_" + "a" * 20)
    with pytest.raises(errors.NotFound):
        await overspill.content(call("never"))


async def test_a_malformed_id_is_explained(overspill: Both) -> None:
    with pytest.raises(errors.InvalidId):
        await overspill.get("../../etc/passwd")


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        (ByteRange(0, 0), slice(0, 1)),
        (ByteRange(5, 104), slice(5, 105)),
        (ByteRange(100_000), slice(100_000, None)),
        (ByteRange(None, 7), slice(-7, None)),
        (ByteRange(0, 10**12), slice(0, None)),
    ],
)
async def test_a_range_gives_its_bytes(overspill: Both, asked: ByteRange, part: slice) -> None:
    entry = await overspill.put(LOG)

    assert await overspill.content(entry.id, asked) == LOG.encode()[part]


async def test_a_range_beyond_the_end_is_refused(overspill: Both) -> None:
    entry = await overspill.put("short")

    with pytest.raises(errors.RangeNotSatisfiable) as raised:
        await overspill.content(entry.id, ByteRange(5))
    assert raised.value.limit == 5


async def test_a_download_is_the_file(overspill: Both, tmp_path: Path) -> None:
    entry = await overspill.put(LOG)

    assert await overspill.download(entry.id, tmp_path / "out.log") == len(LOG)
    assert (tmp_path / "out.log").read_text() == LOG


async def test_head_tail_and_lines_are_those_of_the_text(overspill: Both) -> None:
    entry = await overspill.put(LOG)
    lines = LOG.splitlines(keepends=True)
    head, tail = await overspill.head(entry.id, 3), await overspill.tail(entry.id, 3)
    between = await overspill.lines(entry.id, 1000, 1002)

    assert head.content.splitlines() == [line.rstrip() for line in lines[:3]]
    assert tail.content.splitlines() == [line.rstrip() for line in lines[-3:]]
    assert between.content.splitlines() == [line.rstrip() for line in lines[999:1002]]
    assert (between.start_line, between.end_line, between.total_lines) == (1000, 1002, 20_000)


async def test_reading_goes_on_where_the_answer_says(overspill: Both) -> None:
    entry = await overspill.put(LOG)
    answer = await overspill.lines(entry.id)
    read = [answer.content]
    while answer.next is not None:
        answer = await overspill.lines(entry.id, **{name: int(value) for name, value in answer.next.items()})
        read.append(answer.content)

    assert "".join(part if part.endswith("\n") else part + "\n" for part in read) == LOG


async def test_escapes_stay_where_they_are_asked_for(overspill: Both) -> None:
    entry = await overspill.put("\x1b[31mred\x1b[0m\n")

    assert "\x1b" not in (await overspill.head(entry.id)).content
    assert "\x1b[31mred" in (await overspill.head(entry.id, ansi=True)).content


@pytest.mark.skipif(shutil.which("grep") is None, reason="needs grep")
async def test_grep_finds_what_grep_finds(overspill: Both, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    expected = subprocess.run(
        ["grep", "-n", "-E", "ERROR d.sk", tmp_path / "log"], capture_output=True, text=True, check=True
    ).stdout
    entry = await overspill.put(LOG)
    found = await overspill.grep(entry.id, "ERROR d.sk", max_matches=100)

    assert [f"{match.line_number}:{match.line}" for match in found.matches] == expected.splitlines()


async def test_grep_takes_its_options(overspill: Both) -> None:
    entry = await overspill.put(LOG)
    found = await overspill.grep(
        entry.id, "error DISK", ignore_case=True, fixed=True, before=1, after=2, max_matches=1, from_end=True
    )

    assert [match.line_number for match in found.matches] == [20_000]
    assert found.matches[0].before == ["19999 ok"]
    assert (await overspill.grep(entry.id, "ERROR", count=True)).match_count == 20


async def test_a_pattern_that_is_refused_says_why(overspill: Both) -> None:
    entry = await overspill.put(LOG)

    with pytest.raises(errors.InvalidPattern):
        await overspill.grep(entry.id, r"(a)\1")


async def test_a_summary_tells_what_a_capture_is_like(overspill: Both) -> None:
    entry = await overspill.put(LOG)
    summary = await overspill.summary(entry.id)

    assert (summary.total_lines, summary.total_bytes) == (20_000, len(LOG))
    assert summary.errors.count == 20


async def test_the_largest_captures_of_all_are_listed_alone(overspill: Both) -> None:
    largest = await overspill.put(b"%f" % random.random() * 2_000_000, session="sizes")
    await overspill.put("small", session="sizes")
    listing = await overspill.list(sort=wire.Sort.SIZE, limit=100)  # other tests store large ones too

    assert largest.id in [entry.id for entry in listing.captures]
    assert [entry.size for entry in listing.captures] == sorted(
        (entry.size for entry in listing.captures), reverse=True
    )
    assert listing.cursor is None
    with pytest.raises(errors.InvalidParameter):
        await overspill.list(sort=wire.Sort.SIZE, session="sizes")


async def test_captures_are_listed_by_what_is_known_of_them(overspill: Both) -> None:
    session = f"listed {random.random()}"
    entries = [
        await overspill.put(f"{n}", session=session, tool=f"tool{n % 2}", call_id=f"{n}") for n in range(5)
    ]
    since, until = datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC) + timedelta(hours=1)
    listing = await overspill.list(session=session, tool="tool1", since=since, until=until)

    assert {entry.id for entry in listing.captures} == {entries[1].id, entries[3].id}
    assert (await overspill.list(session=session, call_id="4")).captures == [entries[4]]
    assert (await overspill.list(session=session, state=wire.State.LIVE)).captures == []
    assert (await overspill.list(session=session, until=since)).captures == []


async def test_iterating_gives_every_page(overspill: Both) -> None:
    session = f"iterated {random.random()}"
    entries = [await overspill.put(f"{n}", session=session) for n in range(7)]
    found = await overspill.all_of("iterate", session=session, page=3)

    assert {entry.id for entry in found} == {entry.id for entry in entries}
    assert len(found) == 7


async def test_a_life_can_be_lengthened(overspill: Both) -> None:
    entry = await overspill.put("short-lived", ttl=60)
    amended = await overspill.set_ttl(entry.id, 3600)

    assert entry.expires - entry.created < timedelta(seconds=62)
    assert amended.expires - entry.expires > timedelta(seconds=3500)
    assert (await overspill.get(entry.id)).expires == amended.expires


async def test_a_life_of_nothing_is_refused(overspill: Both) -> None:
    entry = await overspill.put("kept")

    with pytest.raises(errors.InvalidBody):
        await overspill.set_ttl(entry.id, 0)


async def test_what_is_on_hold_cannot_be_deleted_before_it_is_released(overspill: Both) -> None:
    entry = await overspill.put("evidence", session="s-held", call_id="a {call} with braces")
    assert (await overspill.hold(call("a {call} with braces"), session="s-held")).held
    with pytest.raises(errors.Held, match="on hold"):
        await overspill.delete(entry.id)
    assert (await overspill.delete_session("s-held")).held == 1
    assert (await overspill.release_session("s-held")).captures == 1
    assert (await overspill.hold_session("s-held")).captures == 1
    assert not (await overspill.release(entry.id)).held
    assert (await overspill.delete(entry.id)).captures == 1


async def test_a_tenant_is_erased_if_it_is_named(overspill: Both) -> None:
    usage = await overspill.usage()
    with pytest.raises(errors.InvalidParameter, match=usage.tenant):
        await overspill.erase_tenant("another")


async def test_what_is_deleted_is_gone_and_deleting_it_again_counts_nothing(overspill: Both) -> None:
    entry = await overspill.put("to be deleted")

    first, again = [await overspill.delete(entry.id) for _ in range(2)]
    assert (first.captures, first.stored_size) == (1, entry.stored_size)
    assert (again.captures, again.stored_size) == (0, 0)
    assert wire.Remains.TOMBSTONE in [each.what for each in first.remains]
    with pytest.raises(errors.Deleted):
        await overspill.content(entry.id)


async def test_deleting_by_call_id_takes_the_newest(overspill: Both) -> None:
    older = await overspill.put("older", call_id="call_0")
    newer = await overspill.put("newer", call_id="call_0")
    await overspill.delete(call("call_0"))

    assert await overspill.get(older.id) == older
    with pytest.raises(errors.Deleted):
        await overspill.get(newer.id)


READS: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(("get", "delete", "content", "head", "tail", "lines", "summary"), ()),
    "grep": ("x",),
    "set_ttl": (60,),
}


@pytest.mark.parametrize("method", READS)
async def test_an_empty_call_id_names_nothing_and_nothing_is_removed(overspill: Both, method: str) -> None:
    unrelated = await overspill.put("of no call")

    with pytest.raises(errors.InvalidId, match="names no tool call"):
        await getattr(overspill, method)(call(""), *READS[method])
    assert await overspill.get(unrelated.id) == unrelated


async def test_an_empty_session_or_call_id_selects_nothing(overspill: Both) -> None:
    with pytest.raises(errors.InvalidParameter, match="session's name is empty"):
        await overspill.delete_session("")
    with pytest.raises(errors.InvalidParameter, match="call_id"):
        await overspill.list(call_id="")


@pytest.mark.parametrize(
    "session", ["plain", "with/slash and spaces", "..", ".", "ünïcode?#%", '{"a": {}}', "x" * 5000]
)
async def test_a_session_of_any_name_can_be_erased(overspill: Both, session: str) -> None:
    for number in range(3):
        await overspill.put(f"{number}", session=session, call_id=f"{random.random()}")

    assert (await overspill.delete_session(session)).captures == 3
    assert (await overspill.list(session=session)).captures == []


async def test_observations_count_once(overspill: Both) -> None:
    seen = wire.Observation(
        tool="run", outcome=wire.Outcome.CAPTURED, count=2, bytes_before=10, bytes_after=5
    )
    batch = wire.Observations(batch=f"batch-{random.getrandbits(64)}", observations=[seen])

    assert (await overspill.observe(batch)).counted
    assert not (await overspill.observe(batch)).counted


async def test_usage_grows_with_what_is_stored(overspill: Both) -> None:
    before = await overspill.usage()
    await overspill.put("more", call_id=f"{random.random()}")
    after = await overspill.usage()

    assert after.captures == before.captures + 1
    assert after.size == before.size + 4


async def test_statistics_are_sums_by_time_tool_and_outcome(overspill: Both) -> None:
    tool = f"tool {random.getrandbits(64)}"
    for outcome, count in ((wire.Outcome.INLINE, 3), (wire.Outcome.CAPTURED, 2)):
        seen = wire.Observation(tool=tool, outcome=outcome, count=count, bytes_before=10, bytes_after=5)
        batch = wire.Observations(batch=f"batch-{random.getrandbits(64)}", observations=[seen])
        await overspill.observe(batch)
    since = datetime.now(UTC) - timedelta(minutes=30)
    by_time = await overspill.stats(since=since, step=60)
    total = await overspill.stats(since=since, total=True)
    own = {row.outcome: row.figures["tool_outputs"] for row in total.rows if row.tool == tool}

    assert own == {"inline": 3, "captured": 2}
    assert {row.start.second for row in by_time.rows} == {0}
    assert sum(row.figures["tool_outputs"] for row in by_time.rows if row.tool == tool) == 5
    assert {row.tool for row in (await overspill.fleet_stats(total=True)).rows} <= {""}


async def test_a_step_that_nobody_keeps_is_refused(overspill: Both) -> None:
    with pytest.raises(errors.InvalidParameter, match="step must be one of 60, 900, 86400 seconds"):
        await overspill.stats(step=61)


async def test_a_sweep_says_what_it_removed(overspill: Both) -> None:
    assert isinstance(await overspill.sweep(), wire.Removed)


async def test_a_service_that_runs_is_healthy_and_ready(overspill: Both) -> None:
    assert await overspill.healthy()
    assert await overspill.ready()


@pytest.fixture
def limited(own_service: ServiceProcess) -> ServiceProcess:
    own_service.restart(max_capture_size=100_000)
    return own_service


async def test_a_capture_over_the_limit_is_refused_with_the_limit(limited: ServiceProcess) -> None:
    async with Client(limited.url) as overspill:
        for content in (random.randbytes(100_001), bytes(100_001), iter([bytes(1_000_000)] * 50)):
            with pytest.raises(errors.CaptureTooLarge) as raised:
                await overspill.put(content)
            assert raised.value.limit == 100_000


async def test_a_client_outlives_a_restart_of_the_service(own_service: ServiceProcess) -> None:
    async with Client(own_service.url) as overspill:
        entry = await overspill.put(LOG)
        own_service.kill()
        own_service.start()

        assert await overspill.content(entry.id) == LOG.encode()


async def test_a_call_waits_for_a_service_that_is_just_starting(own_service: ServiceProcess) -> None:
    own_service.stop()
    async with Client(own_service.url, retries=100) as overspill:
        waiting = asyncio.create_task(overspill.put(LOG))
        await asyncio.to_thread(own_service.start)

        assert (await waiting).size == len(LOG)
