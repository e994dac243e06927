"""`overspill put` masks the secrets of text, as `run` and `put --live` do, unless it is told to be exact."""

import random
import subprocess
from pathlib import Path

import pytest
from overspill import SyncClient, wire

from tests.client.shell import CAPTURE_ID, Shell
from tests.servers.overspill import ServiceProcess

TOKEN = b"ghp_" + b"aB3" * 12
SECRET, MASKED = b"the token " + TOKEN + b" is here\n", b"the token [REDACTED github-token] is here\n"
SAID = "overspill: secrets were masked: github-token=1; with --exact the bytes are stored as they are\n"
LINES = b"line %d\n" * 300_000 % tuple(range(300_000))


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


@pytest.mark.parametrize(("before", "after"), [(b"", b""), (LINES, LINES), (LINES, b"")])
def test_a_secret_in_a_file_is_stored_masked_and_said(
    overspill: Shell, service: ServiceProcess, tmp_path: Path, before: bytes, after: bytes
) -> None:
    (tmp_path / "log").write_bytes(before + SECRET + after)
    result = overspill("put", str(tmp_path / "log"), "--session", "a file", "--label", "own=label")
    with SyncClient(service.url) as client:
        entry, content = client.get(result.capture), client.content(result.capture)

    assert (result.code, result.err) == (0, SAID)
    assert content == before + MASKED + after
    assert entry.labels == {"own": "label", wire.REDACTED_LABEL: "github-token=1"}
    assert (tmp_path / "log").read_bytes() == before + SECRET + after


def test_a_secret_in_a_pipe_is_masked_too(overspill: Shell, service: ServiceProcess) -> None:
    result = overspill("put", stdin=SECRET)
    with SyncClient(service.url) as client:
        assert client.content(result.capture) == MASKED


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_secret_in_utf_16_with_a_byte_order_mark_is_masked_in_its_encoding(
    overspill: Shell, service: ServiceProcess, encoding: str
) -> None:
    result = overspill("put", stdin=f"\ufeff{SECRET.decode()}".encode(encoding))
    with SyncClient(service.url) as client:
        content = client.content(result.capture)

    assert content == f"\ufeff{MASKED.decode()}".encode(encoding)
    assert result.err == SAID


@pytest.mark.parametrize("words", [(), ("--live",)])
def test_who_wants_the_exact_bytes_gets_them(
    overspill: Shell, service: ServiceProcess, words: tuple[str, ...]
) -> None:
    result = overspill("put", *words, "--exact", stdin=SECRET)
    with SyncClient(service.url) as client:
        assert client.content(result.capture) == SECRET
        assert client.get(result.capture).labels == {}
    assert result.err == ""


def test_a_policy_that_masks_nothing_is_obeyed(service: ServiceProcess, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('version = 1\nredaction = "off"\n')
    shell = Shell(service.url, OVERSPILL_POLICY=str(tmp_path / "policy.toml"))
    result = shell("put", stdin=SECRET)
    with SyncClient(service.url) as client:
        assert client.content(result.capture) == SECRET


def test_what_is_no_text_stays_as_it_is(overspill: Shell, service: ServiceProcess) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(20_000) + SECRET
    result = overspill("put", stdin=picture)
    with SyncClient(service.url) as client:
        assert client.content(result.capture) == picture


def test_what_was_read_of_an_open_file_before_is_not_stored(
    overspill: Shell, service: ServiceProcess, tmp_path: Path
) -> None:
    (tmp_path / "log").write_bytes(SECRET + LINES + SECRET)
    with (tmp_path / "log").open("rb") as file:
        file.seek(len(SECRET))
        process = overspill.start("put", stdin=file, stdout=subprocess.PIPE)
        printed, _ = process.communicate(timeout=60)
    with SyncClient(service.url) as client:
        assert client.content(printed.decode().strip()) == LINES + MASKED


def test_a_secret_is_not_in_the_spool_either(tmp_path: Path, nowhere: str, overspill: Shell) -> None:
    offline = Shell(nowhere, OVERSPILL_SPOOL=str(tmp_path / "spool"))
    result = offline("put", stdin=LINES + SECRET)
    kept = offline("cat", result.capture)

    assert CAPTURE_ID.search(result.out)
    assert kept.data == LINES + MASKED
    assert not any(TOKEN in each.read_bytes() for each in (tmp_path / "spool").rglob("*") if each.is_file())
