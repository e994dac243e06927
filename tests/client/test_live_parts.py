"""The producer's parts that need no service: what is kept, what is masked, how events are read."""

from __future__ import annotations

import array
import asyncio
import csv
import io
import logging
import random
import shutil
import subprocess
from typing import IO, TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import Spool, SyncClient, Unreachable, wire
from overspill.live import sender
from overspill.live.files import LiveFile, text_file
from overspill.live.live_capture import LiveCapture
from overspill.live.pending_writes import PendingWrites
from overspill.live.ports import Description
from overspill.live.producer import MAX_BYTES, Producer
from overspill.live.unstored import Unstored
from overspill.redaction.redactor import Redactor
from overspill.transfer.events import EventParser, ServerSentEvent

from tests.redaction.corpus import planted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

NOWHERE = "http://127.0.0.1:1"


@given(st.lists(st.tuples(st.binary(max_size=9), st.integers(0, 80)), max_size=20))
def test_bytes_are_kept_from_the_durable_offset_on(steps: list[tuple[bytes, int]]) -> None:
    unstored, whole, start = Unstored(), b"", 0
    for data, durable in steps:
        unstored.add(data)
        whole += data
        unstored.drop_before(durable)
        start = max(start, min(durable, len(whole)))

        assert (unstored.start, unstored.end) == (start, len(whole))
        assert unstored.read(start, 100) == whole[start : start + 100]
        assert unstored.has(start)
        assert not unstored.has(start - 1)
        assert not unstored.has(len(whole) + 1)


@pytest.mark.parametrize(
    ("data", "most", "size"),
    [
        (b"one\ntwo\nthree", 10, 8),  # more follows: behind the last whole line
        (b"one\ntwo\nthree", 13, 13),  # nothing follows
        (b"one long line without an end", 10, 10),
        (b"\n" + b"x" * 100_000, 90_000, 90_000),  # the newline is too far away
    ],
)
def test_a_full_append_ends_behind_a_line(data: bytes, most: int, size: int) -> None:
    unstored = Unstored()
    unstored.add(b"durable" + data)
    unstored.drop_before(7)

    assert unstored.next_size(7, most) == size


def test_a_secret_that_two_writes_cut_never_leaves() -> None:
    random_ = random.Random(1)
    for each in planted(3)[::9]:
        pending, data = PendingWrites(Redactor()), f"before {each.text} after\n".encode()
        cut = random_.randrange(len(data))
        pending.add(data[:cut])
        sent = pending.take()
        pending.add(data[cut:])

        assert sent + pending.take() + pending.take(is_last=True) == Redactor().redact(data).text
        assert sum(pending.masked.values()) >= 1


def test_what_ends_with_a_space_or_a_line_is_sent_at_once() -> None:
    pending = PendingWrites(Redactor())
    for told in (b"$ make\n", b"password: ", b"compiling ...\r", b"done.\n"):
        pending.add(told)

        assert pending.take() == told


@given(st.data())
def test_events_are_the_same_in_any_pieces(data: st.DataObject) -> None:
    text = b": hello\n\nevent: output\r\nid: 7\r\ndata: {\r\ndata: }\r\n\r\nid: 9\ndata:x\n\nevent: end\n\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    parser = EventParser()
    found: list[object] = []
    for first, last in zip([0, *cuts], [*cuts, len(text)], strict=True):
        found += parser.feed(text[first:last])

    assert found == [ServerSentEvent("output", "7", b"{\n}"), ServerSentEvent("message", "9", b"x")]


class Lines:
    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> int:
        self.data += data
        return len(data)


def test_files_write_through_and_keep_smuggled_bytes() -> None:
    written = Lines()
    print("grün", "\udcff", file=text_file(written.write))
    with LiveFile(written.write) as file:
        file.write(memoryview(b"raw"))

    assert written.data == b"gr\xc3\xbcn \xff\nraw"
    with pytest.raises(ValueError, match="closed"):
        file.write(b"more")


@pytest.mark.parametrize("wrong", [5, "text", None, [1, 2]])
def test_a_binary_file_takes_bytes_alone(wrong: Any) -> None:
    written = Lines()

    with pytest.raises(TypeError, match="bytes-like"):
        LiveFile(written.write).write(wrong)

    assert not written.data


def test_a_file_says_as_others_do_what_it_cannot() -> None:
    file = LiveFile(Lines().write)
    cannots: list[Callable[[], object]] = [file.read, file.readline, file.readall, file.tell, file.__next__]
    for cannot in (*cannots, file.truncate):
        with pytest.raises(io.UnsupportedOperation):
            cannot()
    file.close()

    for use in (file.writable, file.flush, lambda: file.writelines([b"x"])):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_what_writes_to_files_writes_to_them() -> None:
    written = Lines()
    table = csv.writer(text_file(written.write))
    table.writerows([["name", "größe"], ["a\nb", 1]])
    handler = logging.StreamHandler(text_file(written.write))
    handler.emit(logging.makeLogRecord({"msg": "logged"}))
    shutil.copyfileobj(io.BytesIO(b"copied\n" * 50_000), LiveFile(written.write))
    with io.BufferedWriter(LiveFile(written.write)) as buffered:
        buffered.writelines([b"buf", b"fered\n"])
    LiveFile(written.write).write(array.array("i", [7]))

    lines = 'name,größe\r\n"a\nb",1\r\nlogged\n'.encode()
    assert written.data == lines + b"copied\n" * 50_000 + b"buffered\n" + array.array("i", [7]).tobytes()


@pytest.mark.parametrize("file", [LiveFile, text_file])
def test_a_child_process_cannot_have_them_and_is_told_what_to_do(
    file: Callable[[Callable[[bytes], int]], IO[bytes]],
) -> None:
    with pytest.raises(io.UnsupportedOperation, match="capture_process"):
        subprocess.run(["true"], stdout=file(Lines().write), check=True)


def test_without_the_service_the_stream_is_kept_under_its_own_handle(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    with (
        SyncClient(NOWHERE, retries=0) as client,
        client.live(tool="make", session="s", call_id="c1", spool=spool) as out,
    ):
        handle = out.id
        for number in range(120_000):
            out.write(f"line {number}\n")
        out.ends_with(status="exit 2", exit_code=2)

    partition = spool.partition(NOWHERE, "")
    entry = partition.find(handle)
    assert entry is not None
    assert (out.id, entry.tool, entry.status, entry.lines) == (handle, "make", "exit 2", 120_000)
    assert entry.labels == {"overspill.exit_code": "2"}
    assert "cannot be reached" in out.spooled
    with partition.open(entry) as file:
        assert file.read() == b"".join(b"line %d\n" % number for number in range(120_000))


def test_without_the_service_and_a_spool_entering_raises() -> None:
    with (
        SyncClient(NOWHERE, retries=0) as client,
        pytest.raises(Unreachable, match="cannot be reached"),
        client.live(tool="make"),
    ):
        raise AssertionError("nothing runs")


def test_secrets_are_masked_before_anything_is_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    with (
        SyncClient(NOWHERE, retries=0) as client,
        client.live(redactor=Redactor(), spool=spool) as out,
    ):
        out.write("token ghp_" + "aB3" * 6)
        out.write("aB3" * 6 + "\n")

    entry = spool.partition(NOWHERE, "").find(out.id)
    assert entry is not None
    with spool.partition(NOWHERE, "").open(entry) as file:
        assert file.read() == b"token [REDACTED github-token]\n"
    assert out.masked == {"github-token": 1}


def test_an_ended_capture_takes_nothing_more(tmp_path: Path) -> None:
    with SyncClient(NOWHERE, retries=0) as client, client.live(spool=Spool(tmp_path)) as out:
        out.complete()
        with pytest.raises(ValueError, match="has ended"):
            out.write("more")


class AwayService:
    """A service that nobody reaches. Once it was asked, `on_asked` is called."""

    producer = "nobody else"

    def __init__(self) -> None:
        self.asked = 0
        self.on_asked: Callable[[], object] = int

    async def begin(self) -> wire.LiveStatus:
        self.asked += 1
        self.on_asked()
        raise Unreachable("it is away")

    async def append(
        self,
        offset: int,
        pieces: Sequence[bytes],
        *,
        is_last: bool = False,
        on_sent: Callable[[], object] | None = None,
    ) -> wire.LiveStatus:
        raise AssertionError

    async def complete(self, completion: wire.Completion) -> wire.Entry:
        raise AssertionError


async def test_a_stream_that_ends_before_the_service_knew_of_it_waits_for_the_service_no_more() -> None:
    service, pending = AwayService(), PendingWrites(None)
    producer = Producer(service, pending, patience=3600)
    pending.add(b"all of it")
    service.on_asked = producer.end

    await producer.run()

    assert service.asked == 1
    assert isinstance(producer.sender.failure, Unreachable)


async def test_what_exists_already_waits_for_room_no_more_if_the_service_knows_nothing_of_it() -> None:
    service, pending = AwayService(), PendingWrites(None)
    producer = Producer(service, pending, patience=3600)
    pending.add(bytes(MAX_BYTES))
    had_room = producer.has_room
    service.on_asked = producer.sender.source_ended.set

    await producer.run()
    await producer.until_room()

    assert (had_room, service.asked, producer.has_given_up) == (False, 1, True)


async def test_a_service_that_takes_a_request_and_never_answers_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender, "_ANSWER_SECONDS", 0.01)

    class SilentService(AwayService):
        async def begin(self) -> wire.LiveStatus:
            self.asked += 1
            await asyncio.Event().wait()
            raise AssertionError

    service, pending = SilentService(), PendingWrites(None)
    producer = Producer(service, pending, patience=0.02)
    pending.add(b"one line\n")
    producer.end()

    await producer.run()

    assert (service.asked, str(producer.sender.failure)) == (1, "the service did not answer within 0.02 s")
    assert producer.sender.may_be_known


async def test_a_capture_whose_beginning_is_cancelled_is_not_left_live() -> None:
    class SlowService(AwayService):
        told: wire.Completion | None = None

        async def begin(self) -> wire.LiveStatus:
            self.on_asked()
            await asyncio.Event().wait()
            raise AssertionError

        async def complete(self, completion: wire.Completion) -> wire.Entry:
            self.told = completion
            raise Unreachable("its answer is lost")

    service = SlowService()
    beginning = asyncio.create_task(LiveCapture(service, Description(id="cap_x", session="")).begin())
    service.on_asked = beginning.cancel
    with pytest.raises(asyncio.CancelledError):
        await beginning

    assert service.told is not None
    assert (service.told.offset, service.told.state, service.told.status) == (0, "partial", "CancelledError")


class BrokenCopy:
    missing = ""

    def keep(self, data: bytes, *, is_masked: bool) -> None:
        raise RuntimeError("can't start new thread")


async def test_a_writer_does_not_wait_for_one_that_has_broken_down() -> None:
    description = Description(id="cap_x", session="")
    out = LiveCapture(AwayService(), description, copy=BrokenCopy(), patience=3600)
    out.start()
    async with asyncio.timeout(60):
        with pytest.raises(RuntimeError, match="new thread"):
            await out.write(bytes(2 * MAX_BYTES))
        with pytest.raises(RuntimeError, match="new thread"):
            await out.flush()
    with pytest.raises(RuntimeError, match="new thread"):
        await out.complete()


async def test_a_copy_that_has_not_got_the_last_bytes_is_not_called_whole() -> None:
    out = LiveCapture(AwayService(), Description(id="cap_x", session=""), copy=BrokenCopy(), patience=3600)
    out.start()
    await out.write(b"the last bytes\n")
    out.producer.end()
    with pytest.raises(RuntimeError, match="new thread"):
        await out.complete()

    assert not out.is_copied
