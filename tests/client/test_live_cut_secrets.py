"""Secrets that the border of two writes cuts, at every byte, on each way into a live capture."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import Client, SyncClient, capture_process
from overspill.live.pending_writes import PendingWrites
from overspill.redaction.redactor import Redactor

from tests.client.shell import Shell
from tests.redaction.corpus import pem, planted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.live.sync_capture import SyncLiveCapture

    from tests.servers.overspill import ServiceProcess

TOKEN = "ghp_" + "aB3" * 12
KEY = pem(random.Random(7), lines=2)
REDACTOR = Redactor()
TEXTS = [each.text for each in planted(5)]
CUTS = [
    *((f"token {TOKEN} end\n", cut) for cut in range(len(f"token {TOKEN} end\n"))),
    *((f"key\n{KEY}\nend\n", cut) for cut in range(0, len(f"key\n{KEY}\nend\n"), 5)),
]
"""Each text comes in two writes: before the cut, and after it."""
FEW = CUTS[::3]
SAY = """
import json, os, sys, time
os.write(1, b"x\\n" * 60_000)
for text, cut in json.loads(sys.argv[1]):
    for piece in (text[:cut], text[cut:]):
        os.write(1, piece.encode())
        time.sleep(0.025)
"""
"""Prints so much that it is stored as it comes, and then them with pauses. More than one write goes together
only if it comes sooner than that."""
LONG = b"x\n" * 60_000


def masked(cuts: Sequence[tuple[str, int]]) -> bytes:
    return REDACTOR.redact("".join(text for text, _ in cuts).encode()).text


def program() -> list[str]:
    return [sys.executable, "-c", SAY, json.dumps(FEW)]


def test_what_is_masked_has_no_secret() -> None:
    content = masked(CUTS)

    assert not any(line.encode() in content for line in (TOKEN, *KEY.splitlines()))
    assert content.count(b"[REDACTED github-token]") + content.count(b"[REDACTED private-key]") == len(CUTS)


@pytest.mark.parametrize("text", [f"token {TOKEN} end\n", f"> key\n> {KEY}\n> end\n", f"key {KEY!r}\n"])
def test_a_secret_is_masked_wherever_two_writes_cut_it(text: str) -> None:
    data = text.encode()
    for cut in range(len(data) + 1):
        assert _sent([data[:cut], data[cut:]]) == REDACTOR.redact(data).text


@given(st.sampled_from(TEXTS), st.lists(st.floats(0, 1), max_size=5))
def test_secrets_of_any_kind_are_masked_in_any_writes(text: str, shares: list[float]) -> None:
    data = f"before {text} after\n".encode()
    cuts = sorted(round(share * len(data)) for share in shares)
    pieces = [data[first:last] for first, last in zip([0, *cuts], [*cuts, len(data)], strict=True)]

    assert _sent(pieces) == REDACTOR.redact(data).text


def _sent(pieces: Sequence[bytes]) -> bytes:
    """What leaves if the writer pauses after each piece."""
    pending, sent = PendingWrites(REDACTOR), b""
    for piece in pieces:
        pending.add(piece)
        sent += pending.take()
    return sent + pending.take(is_last=True)


@pytest.mark.parametrize("way", ["write", "file", "text file"])
def test_no_write_or_file_lets_half_a_secret_out(service: ServiceProcess, way: str) -> None:
    with SyncClient(service.url) as client:
        with client.live(redactor=REDACTOR) as out:
            for text, cut in CUTS:
                _write(out, way, text[:cut])
                out.flush()
                _write(out, way, text[cut:])

        assert client.content(out.id) == masked(CUTS)


def _write(out: SyncLiveCapture, way: str, text: str) -> None:
    if way == "write":
        out.write(text)
    elif way == "file":
        out.file().write(text.encode())
    else:
        print(text, end="", file=out.text_file())


async def test_a_captured_process_lets_no_half_secret_out(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        async with client.live(redactor=REDACTOR) as out:
            await capture_process(out, program())

        assert await client.content(out.id) == LONG + masked(FEW)


def test_a_command_of_run_lets_no_half_secret_out(service: ServiceProcess) -> None:
    done = Shell(service.url)("run", "--", *program())
    with SyncClient(service.url) as client:
        assert client.content(done.capture) == LONG + masked(FEW)
    assert TOKEN not in done.out


def test_a_live_put_lets_no_half_secret_out(service: ServiceProcess) -> None:
    printing = subprocess.Popen(program(), stdout=subprocess.PIPE)
    putting = Shell(service.url).start("put", "--live", stdin=printing.stdout, stdout=subprocess.PIPE)
    assert printing.stdout is not None
    printing.stdout.close()
    handle = putting.communicate(timeout=60)[0].decode().strip()
    with SyncClient(service.url) as client:
        assert client.content(handle) == LONG + masked(FEW)
    assert printing.wait() == 0
