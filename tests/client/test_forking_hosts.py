"""Host processes that fork while the guard works: what the children hold, and what they do themselves."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from overspill import Guard
from overspill.errors import ClientClosed
from overspill.execution import calls
from overspill.execution.loop_thread import LoopThread
from overspill.guard.counts import report_job, reporter
from overspill.shapes.examination import examine
from overspill.spools import flush, own_directory
from overspill.spools.draft import Draft
from overspill.spools.partition import Partition
from overspill.spools.spool import Spool
from overspill.transfer.sync import SyncClient

from tests.client.scripted import scripted_in_thread, silence
from tests.client.spooling import spilled
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers.overspill import ServiceProcess

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]
LOG: Final = "".join(f"request {number} served\n" for number in range(3_000))
PATIENCE: Final = 30.0
_IS_LISTED: Final = Path("/proc/self/fd").is_dir()


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spool:
    monkeypatch.setenv("OVERSPILL_SPOOL", str(tmp_path / "spool"))
    return Spool()


def in_a_child(work: Callable[[], bool]) -> bool:
    """What `work` returns in a forked child."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


def opened_below(path: Path) -> list[str]:
    """The files below `path` that this process has open."""
    names = os.listdir("/proc/self/fd")  # noqa: PTH208  (the directory is open only while it is listed)
    found = [os.readlink(link) for name in names if os.path.islink(link := f"/proc/self/fd/{name}")]  # noqa: PTH114, PTH115
    return [file for file in found if file.startswith(str(path))]


def flushed_until_closed(partition: Partition, client: SyncClient) -> None:
    with suppress(RuntimeError, ClientClosed):
        flush.flush(partition, client)


@pytest.mark.skipif(not _IS_LISTED, reason="this system does not list the files that a process has open")
def test_a_child_forked_during_an_upload_has_nothing_of_the_spool_open(spool: Spool) -> None:
    with scripted_in_thread(silence) as service, SyncClient(service.url, retries=0) as client:
        partition = spool.partition(service.url, "")
        partition.keep(spilled(LOG), "down")
        uploading = threading.Thread(target=flushed_until_closed, args=[partition, client])
        uploading.start()
        assert until(lambda: service.received)
        mine = opened_below(spool.path)
        is_free = in_a_child(lambda: not opened_below(spool.path))
        client.close()
        uploading.join(PATIENCE)

    assert (len(mine), is_free) == (1, True)


def test_what_a_parent_uploads_can_be_uploaded_by_others_once_it_stops_while_its_children_live(
    spool: Spool,
) -> None:
    partition = spool.partition("http://service.example", "")
    kept = partition.keep(spilled(LOG), "down")
    first = partition.claim_upload(kept)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(read, 1)
        os._exit(0)
    assert first is not None
    first.close()
    second = partition.claim_upload(kept)
    os.write(write, b".")
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)

    assert second is not None
    second.close()


def test_a_child_forked_while_a_draft_is_written_lets_go_of_it(spool: Spool) -> None:
    partition = spool.partition("http://service.example", "")
    partition.keep(spilled(LOG), "down")
    with Draft(partition.folder.path, {".bin": 3, ".json": 2}, mode=0o600) as draft:
        descriptors = draft.descriptors
        is_closed = in_a_child(lambda: not draft.descriptors and all(map(_is_closed, descriptors)))
        draft.discard()

    assert is_closed


def test_a_child_forked_while_a_flush_has_its_turn_does_not_keep_it(spool: Spool) -> None:
    spool.make()
    with own_directory.locked(spool.path / ".flush") as descriptor:
        is_closed = in_a_child(lambda: _is_closed(descriptor))

    assert is_closed


def _is_closed(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False


def test_a_child_does_not_wait_for_what_its_parent_has_open(
    service: ServiceProcess, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[object] = []
    for module in (report_job, reporter):
        monkeypatch.setattr(module, "SOON", 0.0)

    def dropped() -> bool:
        guards.pop().close()
        gc.collect()
        return not waits

    with SyncClient(service.url) as client:
        guards = [Guard(client, spool=spool)]
        guards[0].process_sync(LOG, tool="t")
        background = guards[0]._storage.uploads.background
        assert background is not None
        assert until(lambda: background._client is not None and background._client._calls is not None)
        monkeypatch.setattr(calls, "wait_blocking", lambda *wait: waits.append(wait))
        monkeypatch.setattr(LoopThread, "end", waits.append)
        is_free = in_a_child(dropped)
        monkeypatch.undo()
        guards[0].close()

    assert is_free


class Slow:
    """Takes its time to say what it is."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __str__(self) -> str:
        self.begun.set()
        self.go_on.wait(PATIENCE)
        return LOG


@pytest.fixture
def written() -> Iterator[Callable[[], Any]]:
    """The text of an output, in the midst of another thread's work on such an output."""
    slow = Slow()
    thread = threading.Thread(target=text_of, args=([slow],))
    thread.start()
    slow.begun.wait(PATIENCE)
    yield lambda: text_of([LOG])
    slow.go_on.set()
    thread.join()


def text_of(result: Any) -> Any:
    shape = examine(result)
    return shape and shape.body


def test_a_child_forked_while_another_thread_looks_at_an_output_looks_at_its_own(
    written: Callable[[], Any],
) -> None:
    def work() -> bool:
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        return bool(written())

    assert in_a_child(work)


def test_a_tool_that_prints_slowly_holds_up_no_other(written: Callable[[], Any]) -> None:
    with ThreadPoolExecutor() as pool:
        assert pool.submit(written).result(PATIENCE / 3)


def test_a_live_capture_belongs_to_the_process_that_began_it(service: ServiceProcess) -> None:
    with SyncClient(service.url) as client, client.live() as out:
        out.write("parent\n")

        def is_refused(call: Callable[[], object]) -> bool:
            try:
                call()
            except RuntimeError as error:
                return "forked" in str(error)
            return False

        def is_left_alone() -> bool:
            signal.alarm(int(PATIENCE))
            refused = [is_refused(call) for call in (lambda: print("child", file=out.text_file()), out.flush)]
            out.__exit__(SystemExit, SystemExit(), None)
            return all(refused)

        assert in_a_child(is_left_alone)
        out.write("parent again\n")
        entry = out.complete()

    assert entry is not None
    with SyncClient(service.url) as client:
        assert client.content(entry.id) == b"parent\nparent again\n"


def test_a_forked_child_does_not_wait_for_what_its_parent_follows(service: ServiceProcess) -> None:
    with SyncClient(service.url) as client, client.live() as out:
        out.write("one\n")
        with client.follow(out.id) as following:

            def is_refused() -> bool:
                signal.alarm(int(PATIENCE))
                with following, suppress(RuntimeError):
                    next(following)
                return True

            assert next(following).content == "one\n"
            assert in_a_child(is_refused)
            out.write("two\n")

            assert next(following).content == "two\n"
