"""Whatever comes into the guard, from wherever: the agent gets a usable result; what is lost is said."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pydantic
import pytest
from overspill import Client, Guard, Policy, Spool, SyncClient
from overspill.previews.notice_forms import is_notice
from overspill.shapes.writer import as_text
from overspill.spools.flush import flush
from overspill.spools.location import fingerprint

from tests.client.shell import run_code
from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

LONG: Final = "a line of text\n" * 10_000
NAMES: Final = [
    None,
    "",
    "call_0",
    "call_0",
    "x" * 10_000,
    "../../etc/passwd\0\r\n",
    "\udc80\ud800",
    7,
    b"\xff",
    ["no hash"],
    {"no": "hash"},
]


class Hostile:
    """Nothing about it works."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no eq")

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


class Item:
    """Something that a proxy can stand for."""


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        yield listening


@pytest.fixture
def silence(silent: socket.socket) -> str:
    return f"http://127.0.0.1:{silent.getsockname()[1]}"


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:20])
def test_any_call_id_and_any_tool_are_stored(service: ServiceProcess, name: Any) -> None:
    text = f"{name!r}\n{LONG}"
    with SyncClient(service.url, session="names") as client:
        guarded = Guard(client).process_sync(text, tool=name, call_id=name, session=name, status=name)

        assert guarded.outcome == "captured", guarded.reason
        assert client.content(str(guarded.capture)) == text.encode()


def test_a_call_id_that_is_used_again_hides_no_output(service: ServiceProcess) -> None:
    with SyncClient(service.url, session="reused") as client:
        guard = Guard(client)
        guarded = [guard.process_sync(f"{number}\n{LONG}", tool="t", call_id="call_0") for number in range(3)]
        stored = [client.content(str(each.capture)) for each in guarded]

        assert stored == [f"{number}\n{LONG}".encode() for number in range(3)]
        assert client.head("call:call_0", 1).content == "2\n"


def test_names_that_cannot_even_be_printed_are_no_reason_to_fail() -> None:
    hostile: Any = Hostile()
    guarded = Guard().process_sync(LONG, tool=hostile, call_id=hostile, session=hostile, status=hostile)

    assert is_notice(guarded.value)
    assert Guard().process_sync("short", tool=hostile, call_id=hostile).value == "short"


def test_a_very_long_name_makes_no_long_notice() -> None:
    guarded = Guard().process_sync(LONG, tool="tool " * 2_000, call_id="c" * 10_000)

    assert guarded.bytes_after < 3_000


# --- results --------------------------------------------------------------------------------------


def cyclic() -> dict[str, Any]:
    found: dict[str, Any] = {"text": LONG}
    found["self"] = found
    return found


@dataclass
class Node:
    child: Any
    line: int = 1


def deep(depth: int, around: Callable[[Any], Any]) -> Any:
    found: Any = LONG
    for _ in range(depth):
        found = around(found)
    return found


RESULTS: Final[dict[str, Callable[[], Any]]] = {
    "one endless line": lambda: "x" * 10_000_000,
    "all newlines": lambda: "\n" * 3_000_000,
    "invalid UTF-8": lambda: b"\xff\xfe\x80 text \n" * 10_000,
    "surrogates": lambda: "\ud800\udc80\n" * 50_000,
    "combining characters": lambda: "e" + "\u0301" * 200_000,
    "a cyclic dict": cyclic,
    "a failing repr": lambda: [Hostile(), LONG],
    "a deep list": lambda: deep(5_000, lambda value: [value]),
    "deep dicts": lambda: deep(5_000, lambda value: {"value": value, "line": 1}),
    "dicts of some depth": lambda: deep(30, lambda value: {"value": value, "line": 1}),
    "deep tuples": lambda: deep(5_000, lambda value: (value, 1)),
    "records of some depth": lambda: deep(60, Node),
    "a syntax tree": lambda: deep(80, lambda value: {"type": "Call", "arguments": [value, {"name": "x"}]}),
    "mixed blocks": lambda: [
        {"type": "text", "text": LONG},
        7,
        None,
        Hostile(),
        "text",
        {"type": "image"},
        b"\xff",
        [{"type": "text", "text": LONG}],
    ],
    "a message of nothing known": lambda: {"content": [Hostile(), {"type": "text"}, {"text": LONG}]},
    "keys of any kind": lambda: {None: LONG, 7: 1, (1, 2): 2, b"\xff": 3},
    "two streams of bytes": lambda: (1, LONG.encode(), b"\xff" + LONG.encode()),
    "a command's text": lambda: subprocess.CompletedProcess(["make"], 1, LONG, LONG),
    "a command's bytes": lambda: subprocess.CompletedProcess(["make"], 1, LONG.encode(), b""),
    "a namespace": lambda: SimpleNamespace(text=LONG, numbers=[*range(30_000)]),
    "pairs": dict.fromkeys(range(10), LONG).items,
    "an exception without a message": lambda: ExceptionGroup("", [ValueError(), KeyError(LONG)]),
}


@pytest.mark.parametrize("name", RESULTS)
async def test_whatever_the_tool_returns_the_model_gets_a_bounded_stand_in(name: str) -> None:
    guarded = await Guard().process(RESULTS[name](), tool="t")

    assert guarded.outcome == "truncated"
    assert guarded.notice is not None
    assert guarded.bytes_after < 20_000
    assert len(as_text(guarded.value).encode()) < 40_000


@pytest.mark.parametrize("name", RESULTS)
def test_whatever_the_tool_returns_is_spooled_whole(name: str, tmp_path: Path) -> None:
    guarded = Guard(spool=Spool(tmp_path)).process_sync(RESULTS[name](), tool="t")
    files = list(tmp_path.rglob("*.bin"))

    assert guarded.outcome == "spooled", guarded.reason
    assert guarded.notice is not None
    assert [file.stat().st_size for file in files] == [guarded.notice.size]


@pytest.mark.parametrize("empty", ["", b"", [], {}, (), None, [{"type": "text", "text": ""}], Exception()])
def test_what_is_empty_stays_as_it_is(empty: Any) -> None:
    guarded = Guard(policy=Policy(max_bytes=1, max_lines=1)).process_sync(empty, tool="t")

    assert guarded.value is empty or guarded.bytes_before == 2  # the brackets of JSON


# --- from wherever --------------------------------------------------------------------------------


async def test_threads_and_event_loops_share_a_guard_whose_client_belongs_to_one_of_them(
    service: ServiceProcess,
) -> None:
    async with Client(service.url, session="mixed") as client:
        guard = Guard(client, spool=False)
        assert await client.healthy()  # the client is this loop's from now on

        def on_a_loop(name: str) -> Any:
            return asyncio.run(guard.process(name + LONG, tool="t"))

        def without_one(name: str) -> Any:
            return guard.process_sync(name + LONG, tool="t")

        with ThreadPoolExecutor(8) as pool:
            loop = asyncio.get_running_loop()
            elsewhere = [
                loop.run_in_executor(pool, work, f"{work.__name__} {number} ")
                for number in range(8)
                for work in (on_a_loop, without_one)
            ]
            here = [guard.process(f"here {number} {LONG}", tool="t") for number in range(8)]
            guarded = await asyncio.gather(*here, *elsewhere)

        assert [each.reason for each in guarded] == [None] * 24
        contents = [(await client.content(each.capture)).decode() for each in guarded]
        assert {content.split()[0] for content in contents} == {"here", "on_a_loop", "without_one"}
        assert guard.stats["t", guarded[0].outcome].count == 24


async def test_who_is_cancelled_half_way_leaves_nothing_behind(silence: str, tmp_path: Path) -> None:
    async with Client(silence, retries=0) as client:
        guard = Guard(client, Policy(wait=30), spool=Spool(tmp_path))
        others = asyncio.all_tasks()
        for _ in range(20):
            task = asyncio.create_task(guard.process(LONG, tool="t", call_id="c"))
            for _ in range(10):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        left = asyncio.all_tasks() - others
        guarded = await guard.process(LONG, tool="t", call_id="c", policy=Policy(wait=0.1))

    assert left == set()
    assert guarded.outcome == "spooled"
    assert [file.read_bytes() for file in tmp_path.rglob("*.bin")] == [LONG.encode()]
    assert list(tmp_path.rglob(".part-*")) == []


async def test_a_turn_goes_on_without_the_call_that_was_cancelled() -> None:
    guard = Guard()
    started = asyncio.Event()

    @guard.wrap
    async def endless() -> str:
        started.set()
        await asyncio.Event().wait()
        return LONG

    @guard.wrap
    async def short() -> str:
        return "x" * 1_000

    async with guard.turn(2_000):
        hanging = asyncio.create_task(endless())
        await started.wait()
        others = [asyncio.create_task(short()) for _ in range(2)]
        hanging.cancel()
        results = await asyncio.gather(*others)
        with pytest.raises(asyncio.CancelledError):
            await hanging

    assert results == ["x" * 1_000] * 2


def run(code: str, *arguments: object, seconds: float = 60, **environment: str) -> str:
    """What a Python program prints, which has to end by itself, and well."""
    done = run_code(
        code, *arguments, environment=clean_environment(**environment), seconds=seconds, warnings_end_it=True
    )

    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


FORKING: Final = """
import asyncio, logging, os, sys, warnings
from overspill import Guard, Spool, SyncClient
logging.getLogger("overspill").addHandler(logging.NullHandler())
warnings.simplefilter("ignore", DeprecationWarning)  # a process with threads forks
LONG = "a line of text\\n" * 10_000

client = SyncClient(sys.argv[1], session="fork", retries=0)
guard = Guard(client, spool=Spool(sys.argv[2]))
print("parent", guard.process_sync("parent" + LONG, tool="t", call_id="p").outcome, flush=True)
print("short", guard.process_sync("short", tool="t").outcome, flush=True)
child = os.fork()
if child == 0:
    print("counts", guard.stats, flush=True)
    print("child", guard.process_sync("child" + LONG, tool="t", call_id="c").outcome, flush=True)
    print("loop", asyncio.run(guard.process("loop" + LONG, tool="t", call_id="l")).outcome, flush=True)
    print("child's", sum(count.count for count in guard.stats.values()), flush=True)
    guard.close()
    client.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("again", guard.process_sync("again" + LONG, tool="t", call_id="a").outcome)
print("parent's", sum(count.count for count in guard.stats.values()))
guard.close()
client.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_stores_and_counts_for_itself(service: ServiceProcess, tmp_path: Path) -> None:
    assert run(FORKING, service.url, tmp_path).splitlines() == [
        "parent captured",
        "short inline",
        "counts {}",
        "child captured",
        "loop captured",
        "child's 2",
        "again captured",
        "parent's 3",
    ]
    with SyncClient(service.url, session="fork") as client:
        assert client.head("call:l", 1).content == "loopa line of text\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_spools_where_its_parent_does(nowhere: str, tmp_path: Path) -> None:
    assert run(FORKING, nowhere, tmp_path).splitlines() == [
        "parent spooled",
        "short inline",
        "counts {}",
        "child spooled",
        "loop spooled",
        "child's 2",
        "again spooled",
        "parent's 3",
    ]
    stored = sorted(file.read_text()[:5] for file in tmp_path.rglob("*.bin"))
    assert stored == ["again", "child", "loopa", "paren"]


ENDS_AT_ONCE: Final = 120
"""Seconds that a loaded machine may take. What is waited for in vain would last ten minutes."""
EXITING: Final = """
import asyncio, logging, sys
from overspill import Client, Guard, Policy, Spool
LONG = "a line of text\\n" * 10_000
logging.getLogger("overspill").addHandler(logging.NullHandler())

async def main():
    client = Client(sys.argv[1], session="exit", retries=0, timeout=600)
    guard = Guard(client, Policy(wait=float(sys.argv[3])), spool=Spool(sys.argv[2]))
    guarded = [await guard.process(f"{number} {LONG}", tool="t") for number in range(5)]
    print(*{str(each.outcome) for each in guarded}, *(each.capture for each in guarded))
    if sys.argv[4] == "abandoned":
        asyncio.get_running_loop().create_task(guard.process(LONG, tool="t", policy=Policy(wait=600)))
        await asyncio.sleep(0)
    await client.aclose()
    if sys.argv[4] == "closed":
        await guard.aclose()
    if sys.argv[4] == "told":
        sys.stdout.flush()
        input()

asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["closed", "open", "abandoned"])
def test_the_interpreter_ends_at_once_whatever_waits(
    silence: str, own_service: ServiceProcess, tmp_path: Path, how: str
) -> None:
    outcome, *ids = run(EXITING, silence, tmp_path / "spool", 2, how, seconds=ENDS_AT_ONCE).split()

    assert outcome == "spooled"
    assert_uploaded(ids, tmp_path / "spool", silence, own_service.url)


def test_the_interpreter_ends_at_once_in_the_middle_of_an_upload(
    silent: socket.socket, own_service: ServiceProcess, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", EXITING, url, str(tmp_path / "spool"), "2", "told"],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        attempts = [silent.accept()[0] for _ in ("the agent's", "the spool's")]
        printed, errors = process.communicate("end\n", timeout=ENDS_AT_ONCE)
    for attempt in attempts:
        attempt.close()

    assert (process.returncode, errors) == (0, "")
    assert_uploaded(printed.split()[1:], tmp_path / "spool", url, own_service.url)


def assert_uploaded(ids: list[str], spool: Path, url: str, by: str) -> None:
    """All of `EXITING` are whole in the spool, and the next process uploads them."""
    kept = {file.stem for file in spool.rglob("cap_*.bin")}
    with SyncClient(by) as client:
        (spool / fingerprint(url, "")).rename(spool / fingerprint(by, ""))
        flushed = flush(Spool(spool).partition(by, ""), client)
        stored = [client.content(each) for each in ids]

    assert set(ids) <= kept
    assert (flushed.uploaded, flushed.failure) == (len(kept), None)
    assert stored == [f"{number} {LONG}".encode() for number in range(5)]


HUGE: Final = """
import asyncio, resource, sys
from overspill import Guard, Spool
from overspill.shapes import writer
from overspill.text import hashing

writer._MEMORY_BYTES //= 8  # what is shorter may be in memory twice: an eighth says the same
hashing._IN_MEMORY_CHARS //= 8

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

text = "a line of an enormous text, which is {0} long\\n".format("very") * (64 * 1024 * 1024 // 49)
guard = Guard(spool=Spool(sys.argv[1]))
Guard().process_sync("x" * 60_000, tool="warm")
before = peak()
if sys.argv[2] == "chunks":
    size = len(text)
    guarded = guard.process_sync((text[at : at + 65536] for at in range(0, size, 65536)), tool="t")
elif sys.argv[2] == "dict":
    guarded = guard.process_sync({"log": text}, tool="t")
elif sys.argv[2] == "loop":
    guarded = asyncio.run(guard.process(text, tool="t"))
else:
    guarded = guard.process_sync(text, tool="t")
assert guarded.bytes_before >= len(text), guarded
print(guarded.outcome, guarded.bytes_after < 5_000, peak() - before < 45_000_000, peak() - before)
"""


@pytest.mark.parametrize("how", ["text", "loop", "chunks", "dict"])
def test_a_text_of_64_mebibytes_takes_no_second_one_of_memory(tmp_path: Path, how: str) -> None:
    assert run(HUGE, tmp_path, how).split()[:3] == ["spooled", "True", "True"]
    [file] = tmp_path.rglob("*.bin")
    assert file.stat().st_size > 64_000_000


@pytest.mark.parametrize(
    "result",
    [
        {"k" * 60_000: 1, "j" * 60_000: 2},
        {LONG: 1},
        {"k" * 60_000: LONG},
        {(LONG, 1): [1, 2]},
        {f"{number}" * 1_500: number for number in range(10, 50)},
        [{"k" * 60_000: number} for number in range(10)],
        {"a": {"b": {"k" * 60_000: "x"}}},
        {"rows": [{"k" * 60_000: LONG}]},
    ],
    ids=range(8),
)
def test_long_names_of_entries_do_not_stay_beside_the_notice(result: Any) -> None:
    guarded = Guard().process_sync(result, tool="query")

    assert type(guarded.value) is type(result)
    assert len(as_text(guarded.value)) < 10_000


class Showing(pydantic.BaseModel):
    """Shows a text that is in none of its fields."""

    id: str
    _hidden: str = pydantic.PrivateAttr(default=LONG)

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def shown(self) -> str:
        return self._hidden


@pytest.mark.parametrize("within", [lambda value: value, lambda value: {"result": value}], ids=range(2))
def test_an_object_that_shows_its_text_all_the_same_is_left_whole_with_a_reason(within: Any) -> None:
    result = within(Showing(id="7"))

    guarded = Guard().process_sync(result, tool="query")

    assert guarded.value is result
    assert guarded.reason is not None
    assert "Showing" in guarded.reason or "dict" in guarded.reason


async def test_a_proxy_of_an_object_is_no_stream(tmp_path: Path) -> None:
    item = Item()
    result = weakref.proxy(item)
    guard = Guard(spool=Spool(tmp_path))

    assert guard.process_sync(result, tool="look_up").value is result
    assert (await guard.process(result, tool="look_up")).value is result
    assert guard.wrap(lambda: result)() is result


def test_a_proxy_of_a_generator_is_a_stream(tmp_path: Path) -> None:
    lines = (LONG for _ in range(2))

    guarded = Guard(spool=Spool(tmp_path)).process_sync(weakref.proxy(lines), tool="look_up")

    assert guarded.bytes_before == 2 * len(LONG)


STARVED: Final = """
import resource, sys, threading
from overspill import Guard, Spool
long = "a line of text\\n" * 10_000
guard = Guard(spool=Spool(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_NOFILE, (30, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = []
try:
    while True:
        held.append(open("/dev/null"))
except OSError:
    pass
made = [guard.process_sync(long, tool="t"), guard.process_sync((long for _ in range(9)), tool="t")]
del held
print([(each.outcome.value, len(each.value) < 10_000) for each in made])
"""


def test_a_process_that_can_open_no_more_files_gets_its_notices(tmp_path: Path) -> None:
    program = [sys.executable, "-c", STARVED, str(tmp_path / "spool")]  # it has imported nothing beforehand
    finished = subprocess.run(program, capture_output=True, text=True, check=False)

    assert finished.stdout.strip() == "[('truncated', True), ('truncated', True)]", finished.stderr
