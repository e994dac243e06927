"""Every benchmark runs, at sizes that take seconds: rows and exact counts, never times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench import fetched, table, texts
from tests.bench.__main__ import BENCHMARKS, main
from tests.bench.scale import Scale
from tests.bench.servers import Servers, Unavailable
from tests.servers.overspill import ForkedService

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.overspill import ServiceProcess
    from tests.servers.redis import RedisServer
    from tests.servers.swift import S3Server

QUICK = Scale(rounds=1, is_quick=True)


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory,
    s3_server: S3Server,
    redis_server: RedisServer,
    service: ServiceProcess,
) -> Iterator[Servers]:
    """Those that run for other tests anyway, emptied, and what benchmarks start besides."""
    redis_server.command("FLUSHALL")
    with Servers(tmp_path_factory.mktemp("bench"), ForkedService) as shared:
        shared.s3, shared.redis, shared.embedded = s3_server, redis_server, service
        yield shared


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name != "fetched"])
def test_a_benchmark_measures_something_for_each_of_its_goals(servers: Servers, name: str) -> None:
    try:
        rows = list(BENCHMARKS[name](servers, QUICK))
    except Unavailable as reason:
        pytest.skip(str(reason))

    assert rows
    assert all(row.goal is not None for row in rows)


def test_a_small_read_is_one_request_and_of_one_frame_among_many(servers: Servers) -> None:
    rows = {row.what: row for row in fetched.measure(servers, QUICK)}

    assert [row.value for what, row in rows.items() if "warm" in what] == [1, 1]
    assert all(row.value <= 2 for what, row in rows.items() if "cold" in what)
    assert all(row.value < 1 / 4 for what, row in rows.items() if "bytes fetched" in what)


def test_figures_come_as_a_table_in_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--quick", "--rounds=1", "redaction"])
    lines = capsys.readouterr().out.splitlines()

    assert lines[2].startswith("| benchmark | what | measured | goal | beaten |")
    assert [line.split(" | ")[0] for line in lines[4:6]] == ["| redaction", "| redaction"]


def test_a_cell_cannot_end_early() -> None:
    assert table.line(["a|b", "c"]) == r"| a\|b | c |"


@pytest.mark.parametrize("kind", texts.KINDS)
def test_a_text_has_the_size_asked_for_and_is_of_whole_characters(kind: str) -> None:
    text = texts.text(kind, 50_000)

    assert len(text) == 50_000
    assert len(text.decode(errors="ignore").encode()) > len(text) - 3
