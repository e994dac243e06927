"""Captures as files: fsspec's own functions, against the real service."""

from __future__ import annotations

import csv
import io
import pickle
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec
import pytest
from overspill import Guard, SyncClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.overspill import ServiceProcess

PAGE = Path(__file__).parents[2] / "client" / "docs" / "integrations" / "fsspec.md"
ROWS = "".join(f"{number},name {number}\n" for number in range(100_000))
TABLE = f"id,name\n{ROWS}"


@pytest.fixture
def client(service: ServiceProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[SyncClient]:
    monkeypatch.setenv("OVERSPILL_URL", service.url)
    monkeypatch.setenv("OVERSPILL_SESSION", "files")
    with SyncClient(service.url, session="files") as made:
        yield made


@pytest.fixture
def capture(client: SyncClient) -> str:
    return client.put(TABLE, call_id="call_table", tool="query").id


@pytest.fixture
def files(client: SyncClient) -> Any:
    return fsspec.filesystem("overspill", url=client.address.url, skip_instance_cache=True)


def test_a_url_opens_a_capture_by_its_id_and_by_its_call(capture: str) -> None:
    for url in (f"overspill://{capture}", "overspill://call:call_table"):
        with fsspec.open(url, "rt") as file:
            rows = list(csv.reader(file))

        assert rows[0] == ["id", "name"]
        assert rows[-1] == ["99999", "name 99999"]


def test_its_page_is_right(client: SyncClient, capsys: pytest.CaptureFixture[str]) -> None:
    client.put(TABLE, call_id="call_table", tool="query")
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(example, {})

    assert capsys.readouterr().out == f"id,name\n{len(TABLE)}\n"


def test_it_can_be_read_in_any_order(files: Any, capture: str) -> None:
    whole = TABLE.encode()
    with files.open(capture, block_size=1000) as file, io.BytesIO(whole) as expected:
        for move in ((500, 0), (-20, 2), (10, 0), (1_000_000, 0), (-300, 1), (99_999_999, 0)):
            assert file.seek(*move) == expected.seek(*move)
            assert file.read(700) == expected.read(700)


@pytest.mark.parametrize(
    ("start", "end"), [(None, None), (0, 1), (5, 5), (-9, None), (-9, -3), (10**9, None), (0, 10**9), (7, 3)]
)
def test_ranges_are_those_of_a_slice(files: Any, capture: str, start: int | None, end: int | None) -> None:
    assert files.cat_file(capture, start, end) == TABLE.encode()[start:end]


def test_it_lists_what_is_stored(files: Any, client: SyncClient, capture: str) -> None:
    other = client.put("other", call_id="call_other", session="elsewhere").id
    narrowed = fsspec.filesystem("overspill", url=client.address.url, session="elsewhere")

    assert {capture, other} <= set(files.ls("overspill://", detail=False))
    assert narrowed.ls("", detail=False) == [other]
    assert files.ls(capture)[0]["size"] == len(TABLE)
    assert files.info(capture)["tool"] == "query"
    assert capture in files.glob("cap_*")
    assert files.exists(capture)
    assert files.isfile(capture)
    assert files.isdir("")
    assert files.size("call:call_table") == len(TABLE)


def test_it_is_downloaded(files: Any, capture: str, tmp_path: Path) -> None:
    files.get(capture, str(tmp_path / "table.csv"))

    assert (tmp_path / "table.csv").read_text() == TABLE


def test_an_empty_capture_is_an_empty_file(files: Any, client: SyncClient) -> None:
    empty = client.put(b"", call_id="call_empty").id

    assert files.cat_file(empty) == b""
    with files.open(empty) as file:
        assert file.read() == b""


def test_what_is_not_there_is_no_file(files: Any, client: SyncClient) -> None:
    gone = client.put("gone", call_id="call_gone").id
    client.delete(gone)
    for path in ("cap_" + "a" * 20, "nonsense", gone, "call:unknown", "../etc/passwd", "a/b"):
        assert not files.exists(path)
        with pytest.raises(FileNotFoundError):
            files.open(path)


def test_nothing_can_be_written(files: Any, capture: str) -> None:
    with pytest.raises(OSError, match="never change"):
        files.open(capture, "wb")


def test_a_service_that_is_away_is_a_connection_error(nowhere: str) -> None:
    away = fsspec.filesystem("overspill", url=nowhere, skip_instance_cache=True)
    with pytest.raises(ConnectionError):
        away.cat_file("cap_" + "a" * 20)


def test_it_can_be_sent_to_another_process(files: Any, capture: str) -> None:
    copy = pickle.loads(pickle.dumps(files))

    assert copy.cat_file(capture, 0, 7) == b"id,name"


def test_what_waits_on_this_machine_can_be_read(
    nowhere: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OVERSPILL_SPOOL", str(tmp_path / "spool"))
    with SyncClient(nowhere, retries=0, connect_timeout=0.2) as client, Guard(client) as guard:
        spilled = guard.process_sync(TABLE, tool="query", call_id="call_1")
        files = fsspec.filesystem("overspill", url=nowhere, skip_instance_cache=True)

        assert files.cat_file(spilled.capture, 0, 7) == b"id,name"
