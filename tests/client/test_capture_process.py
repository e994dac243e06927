"""`capture_process`: what real commands print, stored at its source."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

import pytest
from overspill import Client, Spool, SyncClient, capture_process, wire
from overspill.execution import left_output
from overspill.live import process
from overspill.spools.flush import flush

from tests.client.shell import written_to
from tests.faults.traffic import until

if TYPE_CHECKING:
    from pathlib import Path

    from overspill.live.live_capture import LiveCapture

    from tests.servers.overspill import ServiceProcess


async def captured(
    service: ServiceProcess, *words: str, encoding: str | None = None
) -> tuple[bytes, int, str]:
    """What was stored of a command, its exit code, and the status of the capture."""
    async with Client(service.url) as client:
        async with client.live() as out:
            code = await capture_process(out, words, encoding=encoding)
        return await client.content(out.id), code, (await client.get(out.id)).status


async def until_accepted(out: LiveCapture, size: int) -> None:
    async def is_accepted() -> bool:
        return out.accepted > size

    await until(is_accepted)


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
        ("größe █\n".encode("cp437"), "cp437", "größe █\n".encode()),
        ("日本語\n".encode("shift-jis"), "shift-jis", "日本語\n".encode()),
        (b"caf\xe9 \xff\n", None, b"caf\xe9 \xff\n"),
        (b"a\x81\xffb\x81", "shift-jis", "a\ufffd\ufffdb\ufffd".encode()),
        ("größe\n".encode("utf-16") + b"x", None, "größe\n\ufffd".encode()),
        ("größe 😀\n".encode("utf-32"), None, "größe 😀\n".encode()),
        (b"\x00\x00\xfe\xff" + "größe\n".encode("utf-32-be"), None, "größe\n".encode()),
        (b"\xff\xfe\x00", None, "\ufffd".encode()),
        (b"\x00\x00\xfe", None, b"\x00\x00\xfe"),
        ("größe\n".encode("utf-16-le"), "utf-16", "größe\n".encode()),
        ("größe\n".encode("utf-32-le"), "UTF32", "größe\n".encode()),
        (b"\xfe\xff" + "größe\n".encode("utf-16-be"), "u16", "größe\n".encode()),
        (b"\xff\xfe\0\0a\0", "utf-16", b"\0a"),
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


async def test_what_is_left_in_the_background_lives_on(service: ServiceProcess, tmp_path: Path) -> None:
    for name in ("go", "result"):
        os.mkfifo(tmp_path / name)
    left = f"(read go < {tmp_path}/go; echo late; echo later; echo lives > {tmp_path}/result) & echo started"
    content, code, _ = await captured(service, "sh", "-c", left)
    await asyncio.to_thread((tmp_path / "go").write_text, "\n")

    assert (content, code) == (b"started\n", 0)
    assert await asyncio.to_thread(written_to, tmp_path / "result") == "lives\n"


async def test_the_process_that_reads_on_is_not_started_by_the_loops_thread(
    service: ServiceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    starters: list[int] = []

    def drop_rest(reader: int) -> None:
        starters.append(threading.get_ident())
        left_output.drop_rest(reader)

    monkeypatch.setattr(process, "drop_rest", drop_rest)
    content, _, _ = await captured(service, "sh", "-c", "sleep 600 & echo $!")
    os.kill(int(content), 9)

    assert len(starters) == 1
    assert starters != [threading.get_ident()]


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


PUNYCODE: Final = pytest.param(
    "punycode", marks=pytest.mark.skipif(sys.version_info >= (3, 13), reason="it decodes whatever comes")
)


@pytest.mark.parametrize("encoding", ["nope", "", "rot13", "hex", "idna", PUNYCODE, "undefined"])
async def test_an_encoding_that_is_none_of_text_starts_nothing(
    service: ServiceProcess, tmp_path: Path, encoding: str
) -> None:
    with pytest.raises(LookupError):
        await captured(service, "touch", str(tmp_path / "started"), encoding=encoding)

    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("words", "error"), [("echo hi", TypeError), (b"echo hi", TypeError), ([], ValueError), ((), ValueError)]
)
async def test_words_that_are_none_are_named(
    service: ServiceProcess, words: Any, error: type[Exception]
) -> None:
    async with Client(service.url) as client, client.live() as out:
        with pytest.raises(error, match="words must"):
            await capture_process(out, words)


async def test_bytes_that_are_no_text_are_seen_as_such_and_kept(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        async with client.live() as out:
            await capture_process(out, ["printf", r"caf\351 \377\n"])

        assert (await client.tail(out.id, 1)).content == "caf\ufffd \ufffd\n"
        assert await client.content(out.id) == b"caf\xe9 \xff\n"


async def test_a_command_that_closes_its_outputs_is_waited_for(
    service: ServiceProcess, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go-on")
    script = f"echo one; exec >&- 2>&-; read answer < {tmp_path}/go-on; exit $answer"
    async with Client(service.url) as client, client.live() as out:
        running = asyncio.create_task(capture_process(out, ["sh", "-c", script]))
        await asyncio.to_thread((tmp_path / "go-on").write_text, "4\n")

        assert await running == 4


async def test_a_signal_that_ends_the_command_is_its_negative_exit_code(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        async with client.live() as out:
            code = await capture_process(out, ["sh", "-c", "echo dying; kill -KILL $$"])
        entry = await client.get(out.id)

        assert (code, entry.status, entry.labels[wire.EXIT_CODE_LABEL]) == (-9, "exit -9", "-9")
        assert await client.content(out.id) == b"dying\n"


async def test_cancelling_kills_a_command_that_will_not_end_and_leaves_a_partial_capture(
    service: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_ENDING_SECONDS", 0.1)
    os.mkfifo(tmp_path / "pid")
    script = f"trap '' TERM; echo so far; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done"
    async with Client(service.url) as client:
        out = client.live()

        async def capture() -> None:
            async with out:
                await capture_process(out, ["sh", "-c", script])

        running = asyncio.create_task(capture())
        command = int(await asyncio.to_thread((tmp_path / "pid").read_text))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        entry = await client.get(out.id)

        assert (entry.state, entry.status) == (wire.State.PARTIAL, "CancelledError")
        with pytest.raises(ProcessLookupError):
            os.kill(command, 0)


async def test_a_command_goes_on_while_its_service_is_killed_and_comes_back(
    own_service: ServiceProcess, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go-on")
    script = f"seq 100000; read answer < {tmp_path}/go-on; seq 100000; exit $answer"
    async with Client(own_service.url) as client:
        async with client.live() as out:
            running = asyncio.create_task(capture_process(out, ["sh", "-c", script]))
            await until_accepted(out, 500_000)
            own_service.kill()
            await asyncio.to_thread((tmp_path / "go-on").write_text, "3\n")
            own_service.start()
            code = await running

        assert code == 3
        assert await client.content(out.id) == 2 * b"".join(b"%d\n" % n for n in range(1, 100_001))


async def test_a_command_whose_service_is_gone_is_captured_whole_in_the_spool(
    own_service: ServiceProcess, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go-on")
    script = f"seq 100000; read answer < {tmp_path}/go-on; seq 100000; exit $answer"
    spool = Spool(tmp_path / "spool")
    async with Client(own_service.url, retries=0) as client:
        async with client.live(spool=spool, patience=0.2) as out:
            running = asyncio.create_task(capture_process(out, ["sh", "-c", script]))
            await until_accepted(out, 500_000)
            own_service.kill()
            await asyncio.to_thread((tmp_path / "go-on").write_text, "3\n")
            code = await running
        spooled = out.spooled
        own_service.start()
        with SyncClient(own_service.url) as uploads:
            flushed = flush(spool.partition(client.address.url, client.address.key), uploads)
        entry = await client.get(out.id)

        assert (code, bool(spooled), flushed.uploaded) == (3, True, 1)
        assert (entry.state, entry.status) == (wire.State.COMPLETE, "exit 3")
        assert await client.content(out.id) == 2 * b"".join(b"%d\n" % n for n in range(1, 100_001))
