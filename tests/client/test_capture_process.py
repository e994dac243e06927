"""`capture_process`: what real commands print, stored at its source."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import pytest
from overspill import Client, capture_process

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess


async def captured(
    service: ServiceProcess, *words: str, encoding: str | None = None
) -> tuple[bytes, int, str]:
    """What was stored of a command, its exit code, and the status of the capture."""
    async with Client(service.url) as client:
        async with client.live() as out:
            code = await capture_process(out, words, encoding=encoding)
        return await client.content(out.id), code, (await client.get(out.id)).status


async def test_both_outputs_are_stored_in_their_order_with_the_exit_code(service: ServiceProcess) -> None:
    script = "for n in 1 2 3; do echo out $n; echo err $n >&2; done; exit 3"
    content, code, status = await captured(service, "sh", "-c", script)

    assert content.decode() == "".join(f"out {n}\nerr {n}\n" for n in (1, 2, 3))
    assert (code, status) == (3, "exit 3")


async def test_a_long_output_is_stored_whole(service: ServiceProcess) -> None:
    content, code, _ = await captured(service, "seq", "1", "300000")

    assert (content, code) == (b"".join(b"%d\n" % n for n in range(1, 300_001)), 0)


@pytest.mark.parametrize(
    ("printed", "encoding", "stored"),
    [
        ("größe\n".encode(), None, "größe\n".encode()),
        ("größe\n".encode("utf-16"), None, "größe\n".encode()),
        (b"\xfe\xff" + "größe\n".encode("utf-16-be"), None, "größe\n".encode()),
        ("größe\n".encode("cp1252"), None, "größe\n".encode("cp1252")),
        ("größe\n".encode("cp1252"), "cp1252", "größe\n".encode()),
        (b"x", None, b"x"),
        (b"", None, b""),
    ],
)
async def test_only_what_says_its_encoding_is_decoded(
    service: ServiceProcess, printed: bytes, encoding: str | None, stored: bytes
) -> None:
    program = f"import os\nfor byte in {printed!r}: os.write(1, bytes([byte]))"

    assert (await captured(service, sys.executable, "-c", program, encoding=encoding))[0] == stored


async def test_what_is_left_in_the_background_is_not_waited_for(service: ServiceProcess) -> None:
    content, code, _ = await captured(service, "sh", "-c", "sleep 600 & echo $!")
    os.kill(int(content), 9)

    assert code == 0


async def test_a_cancelled_call_ends_its_command(service: ServiceProcess, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    async with Client(service.url) as client, client.live() as out:
        script = f"echo $$ > {tmp_path}/pid; exec sleep 600"
        running = asyncio.create_task(capture_process(out, ["sh", "-c", script]))
        process = int(await asyncio.to_thread((tmp_path / "pid").read_text))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


async def test_a_command_that_there_is_not_raises(service: ServiceProcess) -> None:
    with pytest.raises(FileNotFoundError):
        await captured(service, "no-such-command")
