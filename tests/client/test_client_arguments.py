"""A wrong argument is an error that names it: it is never searched for, stored or ignored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from overspill import ByteRange, Guard, Policy, Spool, SyncClient, call
from overspill.wire import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

ID = "cap_aaaaaaaaaaaaaaaaaaaa"


@pytest.fixture(scope="module")
def client(service: ServiceProcess) -> Iterator[SyncClient]:
    with SyncClient(service.url, session="arguments") as client:
        yield client


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda client: client.grep(ID, None), "pattern must be text"),
        (lambda client: client.grep(ID, 5), "pattern must be text"),
        (lambda client: client.grep(ID, b"x"), "pattern must be text"),
        (lambda client: client.wait(ID, 5), "pattern must be text"),
        (lambda client: client.wait(ID, timeout="5"), "timeout must be a number of seconds"),
        (lambda client: client.wait(ID, timeout=None), "timeout must be a number of seconds"),
        (lambda client: client.live(redactor=5), "redactor must be one"),
        (lambda client: client.get(None), "a capture is named by its id"),
        (lambda client: client.get(5), "a capture is named by its id"),
        (lambda client: client.tail(b"cap_"), "a capture is named by its id"),
        (lambda client: client.content(ID, "0-5"), "a range is a ByteRange"),
        (lambda client: client.put("x", call_id=7), "call_id must be text"),
        (lambda client: client.put("x", session=7), "session must be text"),
        (lambda client: client.put("x", labels=["a"]), "labels must be a mapping"),
        (lambda client: client.put("x", labels={"a": 5}), "the label a must be text"),
        (lambda client: client.list(tool=5), "a session, a call id and a tool must be text"),
        (lambda client: client.delete_session(5), "session must be text"),
        (lambda client: client.live(spool="/tmp/folder"), "a folder is Spool\\(folder\\)"),
        (lambda _: call(None), "call_id must be text"),  # type: ignore[arg-type]
        (lambda _: SyncClient(5), "the service's URL must be text"),  # type: ignore[arg-type]
        (lambda _: SyncClient(key=5), "the key must be text"),  # type: ignore[arg-type]
        (lambda _: Guard().wrap(5), "wrap takes a function"),
    ],
)
def test_a_wrong_type_is_named(client: SyncClient, use: Callable[[Any], object], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        use(client)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda client: client.put("x", sha256=b"short"), "as 32 bytes"),
        (lambda client: client.put("x", sha256="ab" * 32), "as 32 bytes"),
        (lambda client: client.put("x", content_type="text/plain\r\nX: y"), "is not a media type"),
        (lambda client: client.live(patience=-1), "patience must be a number of seconds above 0"),
        (lambda _: SyncClient(timeout=-1), "timeout must be a number of seconds above 0"),
        (lambda _: SyncClient(connect_timeout="x"), "connect_timeout must be"),  # type: ignore[arg-type]
        (lambda _: SyncClient(retries=-1), "retries must be a whole number from 0 on"),
        (lambda _: ByteRange(5, 2), "the last byte, 2, is before the first, 5"),
        (lambda _: ByteRange(-1, 2), "counts from 0"),
        (lambda _: ByteRange(None), "needs a first or a last byte"),
        (lambda _: Policy(ttl=0), "ttl must be more than 0"),
        (lambda _: Policy(tools=["a"]), "tools must be limits by tool"),  # type: ignore[arg-type]
        (lambda _: Spool("x", max_bytes=-1), "max_bytes must be 0 or more"),
        (lambda _: Spool("x", max_bytes=float("nan")), "max_bytes must be 0 or more, not nan"),  # type: ignore[arg-type]
        (lambda _: Spool("x", max_bytes="1GiB"), "max_bytes must be 0 or more, not '1GiB'"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_value_is_named(client: SyncClient, use: Callable[[Any], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        use(client)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"exit_code": "0"}, TypeError),
        ({"exit_code": 1.5}, TypeError),
        ({"exit_code": True}, TypeError),
        ({"exit_code": 2**32}, ValueError),
        ({"exit_code": -(2**31) - 1}, ValueError),
        ({"status": 5}, TypeError),
    ],
)
def test_a_live_capture_goes_on_after_a_wrong_end(
    client: SyncClient, said: dict[str, Any], error: type[Exception]
) -> None:
    with client.live() as out:
        for end in (out.ends_with, out.complete):
            with pytest.raises(error, match=f"{next(iter(said))} must be"):
                end(**said)
        out.write("more")

    assert client.content(out.id) == b"more"
    assert client.get(out.id).state is State.COMPLETE


def test_a_number_is_not_written_as_zeros(client: SyncClient) -> None:
    with pytest.raises(TypeError, match="only text and bytes"), client.live() as out:
        out.write(5)  # type: ignore[arg-type]

    entry = client.get(out.id)
    assert (entry.state, entry.size) == (State.PARTIAL, 0)


def test_what_is_written_before_the_block_is_refused_and_not_lost(client: SyncClient) -> None:
    with pytest.raises(ValueError, match="has not begun: write to it inside its `with` block"):
        client.live().write("x")


def test_a_download_that_cannot_be_written_names_the_file_that_was_asked_for(
    client: SyncClient, tmp_path: Path
) -> None:
    missing = tmp_path / "missing" / "file"
    entry = client.put("content")

    with pytest.raises(FileNotFoundError) as raised:
        client.download(entry.id, missing)
    assert raised.value.filename == str(missing)


def test_a_time_without_a_zone_is_local_time(client: SyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    import time  # noqa: PLC0415  (its zone is changed here)

    monkeypatch.setenv("TZ", "UTC-5")
    time.tzset()
    try:
        entry = client.put("of this moment")
        before = (datetime.now(UTC) - timedelta(hours=1)).astimezone().replace(tzinfo=None)
        after = before + timedelta(hours=2)
        found = [client.list(since=since, session="arguments").captures for since in (before, after)]
    finally:
        monkeypatch.undo()
        time.tzset()

    assert entry.id in {each.id for each in found[0]}
    assert not found[1]
