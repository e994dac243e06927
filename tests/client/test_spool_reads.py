"""Reading what waits in the spool: the same answers as the service, bounded, and never stuck."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from overspill import ByteRange, Client, SyncClient, errors, inspection_tool
from overspill.reading.split_line import MAX_HELD_BYTES
from overspill.spools.capture import LocalCapture
from overspill.spools.partition import Partition
from overspill.spools.spool import Spool

from tests.client.shell import printed_by
from tests.client.spooling import spilled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers.overspill import ServiceProcess

SESSION = "spool-reads"
LINES = 4_000
WORDS = ["alpha", "beta", "error", "Error:", "größe", "日本語", "x" * 90, "tab\tthere"]


def made(lines: int, *words: str, end: str = "\n") -> bytes:
    chosen = random.Random(7)
    return "".join(f"{n} {' '.join(chosen.choices(words, k=6))}{end}" for n in range(1, lines + 1)).encode()


CONTENTS: dict[str, bytes] = {
    "text": made(LINES, *WORDS),
    "carriage returns": made(LINES, *WORDS, end="\r\n"),
    "no last newline": made(50, *WORDS).removesuffix(b"\n"),
    "escapes": made(2_000, "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "plain", "error"),
    "not utf-8": made(2_000, *WORDS).replace("größe".encode(), b"gr\xf6\xdfe \xff"),
    "long lines": b"first\n" + b"y" * 150_000 + b" error\n" + "größe ".encode() * 30_000 + b"\nlast error\n",
    "one line": b"z" * 300_000 + b" error " + b"z" * 1_000,
    "newlines only": b"\n" * 3_000,
    "empty": b"",
}


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Spool(tmp_path / "spool").partition("http://service.example", "")


@pytest.fixture(params=CONTENTS, ids=lambda name: name.replace(" ", "-"))
def content(request: pytest.FixtureRequest) -> bytes:
    return CONTENTS[request.param]


@pytest.fixture
def local(partition: Partition, content: bytes) -> Iterator[LocalCapture]:
    with opened(partition, content) as capture:
        yield capture


@pytest.fixture(scope="module")
def reader(service: ServiceProcess) -> Iterator[SyncClient]:
    with SyncClient(service.url, session=SESSION) as client:
        yield client


@pytest.fixture(scope="module")
def stored(reader: SyncClient) -> dict[bytes, str]:
    """The capture of each content in the service."""
    return {content: reader.put(content).id for content in CONTENTS.values()}


@pytest.fixture
def remote(reader: SyncClient, stored: dict[bytes, str], content: bytes) -> Callable[..., Any]:
    """Asks the service about the same bytes: `remote("head", 5)`."""

    def ask(method: str, *args: Any, **options: Any) -> Any:
        return getattr(reader, method)(stored[content], *args, **options)

    return ask


def opened(partition: Partition, content: bytes) -> LocalCapture:
    entry = partition.keep(spilled(content, session=SESSION), "down")
    return LocalCapture(entry, partition.open(entry))


# --- the service is the oracle ---


@pytest.mark.parametrize("ansi", [False, True])
@pytest.mark.parametrize("count", [1, 50, 5_000])
@pytest.mark.parametrize("mode", ["head", "tail"])
def test_head_and_tail_answer_as_the_service_does(
    local: LocalCapture, remote: Callable[..., Any], mode: str, count: int, ansi: bool
) -> None:
    assert getattr(local, mode)("", count, ansi=ansi) == remote(mode, count, ansi=ansi)


@pytest.mark.parametrize(
    ("start", "end"), [(1, None), (2, 2), (2, 40), (3_990, None), (500, 2_500), (99_999, None)]
)
def test_lines_answer_as_the_service_does_page_by_page(
    local: LocalCapture, remote: Callable[..., Any], start: int, end: int | None
) -> None:
    place: dict[str, Any] = {"start": start, "end": end}
    for _ in range(8):
        answer = local.lines("", **place)

        assert answer == remote("lines", **place)
        if answer.next is None:
            break
        place = answer.place


SEARCHES: dict[str, dict[str, Any]] = {
    "plain": {"pattern": "error"},
    "anchors": {"pattern": r"^\d*7 .*error$"},
    "ignoring case": {"pattern": "ERROR:", "ignore_case": True},
    "umlauts ignoring case": {"pattern": "GRÖSSE|GRÖßE", "ignore_case": True},
    "fixed": {"pattern": "error Error:", "fixed": True},
    "fixed ignoring case": {"pattern": "ERROR ERROR:", "fixed": True, "ignore_case": True},
    "invert": {"pattern": "alpha|beta|error|Error", "invert": True},
    "around": {"pattern": "^[0-9]*0 .*error", "context": 2},
    "before and after": {"pattern": "größe.*größe.*größe", "before": 1, "after": 3},
    "many": {"pattern": "e", "max_matches": 1_000},
    "from the end": {"pattern": "error", "from_end": True, "max_matches": 3, "context": 1},
    "count": {"pattern": "error", "count": True},
    "count inverted": {"pattern": "error", "count": True, "invert": True},
    "nothing": {"pattern": "nowhere to be found"},
    "every line": {"pattern": "^", "max_matches": 7},
    "empty lines": {"pattern": "^$", "max_matches": 7},
    "escapes kept": {"pattern": r"\x1b\[31m", "ansi": True, "max_matches": 4},
    "words": {"pattern": r"\berror\b\s\w+", "max_matches": 9},
    "bad bytes": {"pattern": r"gr.{2}e", "max_matches": 9},
    "behind the end of a line": {"pattern": "(?:beta|error).$", "max_matches": 9},
    "a class with line ends in it": {"pattern": r"[a-z][\t-\r]", "max_matches": 9},
    "end of line": {"pattern": r"[a-z]$", "max_matches": 9},
    "classes": {"pattern": r"[[:alpha:]]{5}\W[^a-z\d]", "max_matches": 9},
    "flags inside": {"pattern": r"ALPHA|(?i)BETA ALPHA", "max_matches": 9},
    "quoted": {"pattern": r"\QError:\E [^ ]+a\b", "max_matches": 9},
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=[name.replace(" ", "-") for name in SEARCHES])
def test_grep_answers_as_the_service_does_page_by_page(
    local: LocalCapture, remote: Callable[..., Any], search: dict[str, Any]
) -> None:
    search = dict(search)
    pattern, cursor = search.pop("pattern"), None
    for _ in range(3):
        answer = local.grep("", pattern, **search, cursor=cursor)
        expected = remote("grep", pattern, **search, cursor=cursor)

        assert answer == expected
        if answer.next is None:
            break
        cursor = answer.next["cursor"]


def test_summary_says_the_same(local: LocalCapture, remote: Callable[..., Any]) -> None:
    theirs = msgspec.structs.replace(remote("summary"), content_type=local.spooled.content_type)

    assert local.summary() == theirs


def test_summary_counts_what_repeats(partition: Partition) -> None:
    with opened(partition, b"".join(b"request %d served\n" % n for n in range(500)) + b"other\n") as local:
        assert [(each.line, each.count, each.first_line) for each in local.summary().repeated] == [
            ("request 0 served", 500, 1)
        ]


@pytest.mark.parametrize(
    ("first", "last", "part"),
    [
        (0, 9, slice(0, 10)),
        (30, None, slice(30, None)),
        (None, 5, slice(-5, None)),
        (2, 10**9, slice(2, None)),
    ],
)
def test_a_range_of_bytes_is_what_it_says(
    partition: Partition, first: int | None, last: int | None, part: slice
) -> None:
    with opened(partition, CONTENTS["not utf-8"]) as local:
        assert local.content("", ByteRange(first, last)) == CONTENTS["not utf-8"][part]


# --- other oracles ---


@pytest.mark.parametrize("flags", [["-E", "^[0-9]*7 .*error"], ["-F", "-v", "error"], ["-i", "ERROR: größe"]])
def test_grep_finds_what_grep_n_finds(partition: Partition, flags: list[str]) -> None:
    options: dict[str, Any] = {"fixed": "-F" in flags, "invert": "-v" in flags, "ignore_case": "-i" in flags}
    content = CONTENTS["text"]
    told = subprocess.run(
        ["grep", "-n", *flags], input=content, capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    ).stdout.decode()
    with opened(partition, content) as local:
        found = local.grep("", flags[-1], **options, max_matches=1_000)

    assert found.matches
    assert found.content == "".join(told.splitlines(keepends=True)[: len(found.matches)])


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1",
        "a**",
        "a++",
        "(?=x)",
        "(?<!x)x",
        "(",
        ")",
        "[a",
        r"\n",
        "a{2000}",
        r"\A",
        "(?x)a",
        "*a",
        "\\",
    ],
)
def test_what_the_service_refuses_is_refused(
    partition: Partition, service: ServiceProcess, pattern: str
) -> None:
    with opened(partition, b"text\n") as local, SyncClient(service.url) as client:
        id = client.put(b"text\n").id  # noqa: A001

        with pytest.raises(errors.InvalidPattern):
            client.grep(id, pattern)
        with pytest.raises(errors.InvalidPattern):
            local.grep("", pattern)


# --- bounds ---


@pytest.mark.parametrize("hostile", ["(a+)+$", "(a|aa)+$", "^(a*)*b"])
def test_a_pattern_that_would_backtrack_for_ever_is_answered(partition: Partition, hostile: str) -> None:
    with opened(partition, b"a" * 5_000 + b"!\n") as local:
        assert local.grep("", hostile).matches == []


def test_without_re2_texts_are_found_and_the_rest_is_explained(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill.reading.patterns.Re2Pattern", None)
    monkeypatch.setattr("overspill.reading.summary.IS_ANY_PATTERN_POSSIBLE", False)
    with opened(partition, b"one\ntwo\nFATAL: three\n") as local:
        found = local.grep("", "TWO|four", ignore_case=True)
        with pytest.raises(errors.InvalidPattern, match="pip install google-re2"):
            local.grep("", "t.o")
        summary = local.summary()

    assert found.content == "2:two\n"
    assert summary.errors.line_numbers == [3]


def test_memory_stays_flat_however_large_the_capture(tmp_path: Path) -> None:
    code = f"""
import resource
from pathlib import Path
from overspill.spools.folder import Folder
from overspill.spools.capture import LocalCapture
from overspill.spools.spool import Spool
from tests.client.spooling import spilled
partition = Spool({str(tmp_path / "spool")!r}).partition("http://x", "")
entry = partition.keep(spilled("small"), "down")
path = partition.folder.path / f"{{entry.id}}.bin"
with path.open("wb") as file:
    for number in range(100):
        file.write(b"x" * 1_000_000 + b" error\\n")
import msgspec
entry = msgspec.structs.replace(entry, size=path.stat().st_size, lines=100)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with LocalCapture(entry, partition.open(entry)) as local:
    local.head("", 100), local.tail("", 100), local.lines("", 50, 99), local.summary()
    assert local.grep("", "error", max_matches=1000, count=True).match_count == 100
    assert local.grep("", "error", fixed=True, count=True).match_count == 100
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""

    assert int(printed_by(code)) < 40 * 1024


@pytest.mark.parametrize("place", [12_000_000, MAX_HELD_BYTES - 3])
def test_a_line_too_long_to_hold_is_searched_in_parts(partition: Partition, place: int) -> None:
    content = b"a\n" + b"y" * place + b"needle" + b"y" * (24_000_000 - place) + b"\nb\n"
    with opened(partition, content) as local:
        found = local.grep("", "NEEDLE", ignore_case=True)
        backwards = local.grep("", "y$|b", from_end=True)

    assert found.matches
    assert "needle" in found.matches[0].line
    assert (found.matches[0].line_number, len(found.matches[0].line.encode()) < 3_000) == (2, True)
    assert [match.line_number for match in backwards.matches or []] == [3, 2]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("head", {"lines": 0}),
        ("tail", {"lines": -3}),
        ("lines", {"start": 0}),
        ("lines", {"start": 5, "end": 4}),
        ("lines", {"start": 1, "offset": 10**6}),
        ("grep", {"pattern": "x", "max_matches": 10_000}),
        ("grep", {"pattern": "x", "context": 101}),
        ("grep", {"pattern": "x", "cursor": "f99999"}),
        ("grep", {"pattern": "x", "cursor": "nonsense"}),
    ],
)
def test_arguments_out_of_bounds_are_refused_as_by_the_service(
    partition: Partition, method: str, options: dict[str, Any]
) -> None:
    named = dict(options)
    args = [named.pop("pattern")] if "pattern" in named else []
    with opened(partition, CONTENTS["text"]) as local, pytest.raises(errors.InvalidParameter):
        getattr(local, method)("", *args, **named)


@pytest.mark.parametrize("read", ["get", "content", "head", "tail", "lines", "summary", "timeline"])
def test_a_misspelt_argument_is_refused(partition: Partition, read: str) -> None:
    with opened(partition, b"a line\n") as local:
        getattr(local, read)(session="s")

        with pytest.raises(TypeError, match="sesion"):
            getattr(local, read)(sesion="s")


def test_bytes_that_are_not_what_was_captured_are_never_passed_off_as_such(partition: Partition) -> None:
    entry = partition.keep(spilled("right", session=SESSION), "down")
    (partition.folder.path / f"{entry.id}.bin").write_bytes(b"wrong")
    with LocalCapture(entry, partition.open(entry)) as local, pytest.raises(errors.CaptureDamaged):
        local.content()


# --- the tool of agents ---


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OVERSPILL_SPOOL", str(tmp_path / "spool"))
    return "http://127.0.0.1:1"


LOG = "".join(f"line {number}{' error' if number == 700 else ''}\n" for number in range(1, 1_001))


async def test_the_tool_reads_what_waits_while_the_service_is_away(nowhere: str) -> None:
    kept = Spool().partition(nowhere, "").keep(spilled(LOG, session=SESSION), "down")
    async with Client(nowhere, retries=0) as client:
        answer = await inspection_tool(client)(kept.id, "grep", pattern="ERROR", context_lines=1)

    assert answer["content"] == "699-line 699\n700:line 700 error\n701-line 701\n"
    assert (answer["capture"], answer["match_count"], answer["next"]) == (kept.id, 1, None)


@pytest.mark.parametrize("mode", ["head", "tail", "range", "grep", "summary"])
async def test_every_mode_answers_the_same_from_the_spool_and_from_the_service(
    service: ServiceProcess, nowhere: str, mode: Any
) -> None:
    spill = spilled(LOG, session=SESSION)
    Spool().partition(nowhere, "").keep(spill, "down")
    async with Client(service.url) as there, Client(nowhere) as here:
        await there.put(
            cast("bytes", spill.body),
            id=spill.id,
            session=SESSION,
            call_id="call_1",
            content_type="text/plain; charset=utf-8",
        )
        theirs = await inspection_tool(there)(spill.id, mode, pattern="e")
        mine = await inspection_tool(here)(spill.id, mode, pattern="e")

    assert mine == theirs


def test_a_synchronous_tool_reads_it_by_its_call_too(nowhere: str) -> None:
    Spool().partition(nowhere, "").keep(spilled(LOG, "call_9", session=SESSION), "down")
    with SyncClient(nowhere, session=SESSION, retries=0) as client:
        answer = inspection_tool(client)("call:call_9", "tail", lines=1)

    assert answer["content"] == "line 1000\n"


def test_without_any_client_a_given_spool_is_read(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    kept = spool.partition("", "").keep(spilled(LOG), "no service is configured")
    inspect_output = inspection_tool(None, spool=spool)

    assert inspect_output(kept.id, "head", lines=1)["content"] == "line 1\n"
    assert inspect_output("cap_" + "a" * 20, "head")["code"] == "not_found"


async def test_another_tenants_spooled_capture_is_not_read(nowhere: str) -> None:
    kept = Spool().partition(nowhere, "key-of-a").keep(spilled(LOG), "down")
    async with Client(nowhere, "key-of-b", retries=0) as client:
        answer = await inspection_tool(client)(kept.id, "head")

    assert answer["code"] == "unreachable"


async def test_what_was_dropped_is_said_to_be_dropped_and_why(nowhere: str, service: ServiceProcess) -> None:
    for url in (nowhere, service.url):
        partition = Spool().partition(url, "")
        kept = partition.keep(spilled(LOG, "dropped"), "down")
        partition.drop([kept.id], "the spool was full and it was the oldest")
        async with Client(url, retries=0) as client:
            answer = await inspection_tool(client)(kept.id, "head")

        assert answer["code"] == "not_found"
        assert answer["error"].startswith(
            f"{kept.id} was dropped from the local spool before it could be uploaded, because "
            "the spool was full and it was the oldest. Its content is gone"
        )


async def test_of_two_captures_of_one_call_the_newer_is_read_wherever_it_is(
    service: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERSPILL_SPOOL", str(tmp_path / "spool"))
    session = "newer-wins"
    async with Client(service.url, session=session) as client:
        inspect_output = inspection_tool(client)
        await client.put("in the service\n", call_id="call_0")
        Spool().partition(service.url, "").keep(
            spilled("on this machine\n", "call_0", session=session), "down"
        )
        first = await inspect_output("call:call_0", "head")
        await client.put("in the service again\n", call_id="call_0")
        second = await inspect_output("call:call_0", "head")

    assert (first["content"], second["content"]) == ("on this machine\n", "in the service again\n")


def test_a_synchronous_tool_reads_the_newer_of_two_captures_too(
    service: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERSPILL_SPOOL", str(tmp_path / "spool"))
    session = "newer-wins-sync"
    with SyncClient(service.url, session=session) as client:
        inspect_output = inspection_tool(client)
        Spool().partition(service.url, "").keep(
            spilled("on this machine\n", "call_0", session=session), "down"
        )
        first = inspect_output("call:call_0", "head")
        client.put("in the service\n", call_id="call_0")
        second = inspect_output("call:call_0", "head")

    assert (first["content"], second["content"]) == ("on this machine\n", "in the service\n")
