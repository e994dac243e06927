from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
from overspill.guard.counts.reporter import INTERVAL, SOON, Reporter
from overspill.guard.counts.tally import Tally
from overspill.transfer.sync import SyncClient
from overspill.wire import BATCH_MEMORY, Outcome

from tests.client.shell import run_code
from tests.clock import Clock
from tests.faults.relay import relaying
from tests.servers.overspill import ForkedService, ServiceProcess, clean_environment, running

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = "http://127.0.0.1:9"
ASKED = b"POST /v1/observations"


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that these tests share, but for those that stop it; each test has a tool of its own."""
    with running(ForkedService(tmp_path_factory.mktemp("overspill"))) as service:
        yield service


@pytest.fixture
def client(steady: ServiceProcess) -> Iterator[SyncClient]:
    with client_of(steady.url) as made:
        yield made


@pytest.fixture
def tool(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


def client_of(url: str) -> SyncClient:
    return SyncClient(url, key="", timeout=2.0, connect_timeout=1.0, retries=0)


def report(reporter: Reporter, port: int) -> None:
    """Send what is to be reported, and wait for its answer as long as a busy machine takes."""
    with SyncClient(f"http://127.0.0.1:{port}", key="", timeout=60.0, retries=0) as client:
        reporter.send(client)


def figures(service: ServiceProcess) -> dict[str, float]:
    """The samples of tool outputs, by name and labels."""
    with urlopen(f"{service.url}/metrics", timeout=10) as answer:
        lines = re.findall(r"^overspill_(tool_output\S+) (\S+)$", answer.read().decode(), re.MULTILINE)
    return {name: float(value) for name, value in lines}


def seen(service: ServiceProcess, tool: str, outcome: Outcome = Outcome.INLINE) -> float:
    """How many outputs the service has counted."""
    name = f'tool_outputs_total{{outcome="{outcome}",tenant="default",tool="{tool}"}}'
    return figures(service).get(name, 0)


def requests(service: ServiceProcess) -> float:
    """How many reports the service was sent."""
    with urlopen(f"{service.url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    counts = re.findall(r'http_requests_total\{.*route="/v1/observations".*\} (\S+)', text)
    return sum(map(float, counts))


def small_outputs(tally: Tally, tool: str, number: int) -> None:
    for _ in range(number):
        tally.inline(tool).note(300)


def test_what_was_counted_arrives_with_bytes_and_sizes(
    steady: ServiceProcess, client: SyncClient, tool: str
) -> None:
    tally = Tally()
    reporter = Reporter(tally)
    small_outputs(tally, tool, 3)
    tally.add(tool, Outcome.CAPTURED, 70_000, 2_500)
    before = figures(steady)
    reporter.send(client)

    arrived = {name: value - before.get(name, 0) for name, value in figures(steady).items()}
    labels = f'outcome="captured",tenant="default",tool="{tool}"'
    sizes = "tool_output_size_bytes"
    assert (seen(steady, tool), seen(steady, tool, Outcome.CAPTURED)) == (3, 1)
    assert arrived[f"tool_output_bytes_total{{{labels}}}"] == 70_000
    assert arrived[f"tool_output_kept_bytes_total{{{labels}}}"] == 2_500
    assert arrived[f'{sizes}_bucket{{le="256.0",tenant="default"}}'] == 0
    assert arrived[f'{sizes}_bucket{{le="1024.0",tenant="default"}}'] == 3
    assert arrived[f'{sizes}_bucket{{le="262144.0",tenant="default"}}'] == 4
    assert arrived[f'{sizes}_sum{{tenant="default"}}'] == 70_900


def test_each_report_brings_what_is_new(steady: ServiceProcess, client: SyncClient, tool: str) -> None:
    tally = Tally()
    reporter = Reporter(tally)
    for number in (3, 0, 4):
        small_outputs(tally, tool, number)
        reporter.send(client)

    assert seen(steady, tool) == 7


def test_without_anything_new_nobody_is_asked(steady: ServiceProcess, client: SyncClient, tool: str) -> None:
    tally = Tally()
    reporter = Reporter(tally)
    small_outputs(tally, tool, 3)
    reporter.send(client)
    before = requests(steady)
    reporter.send(client)

    assert requests(steady) == before > 0


def test_what_several_workers_were_told_adds_up(own_service: ServiceProcess, tool: str) -> None:
    own_service.restart(workers=2)
    for _ in range(6):
        tally = Tally()
        small_outputs(tally, tool, 2)
        with client_of(own_service.url) as client:
            Reporter(tally).send(client)

    assert seen(own_service, tool) == 12
    assert figures(own_service)['tool_output_size_bytes_count{tenant="default"}'] == 12


async def test_a_lost_answer_counts_nothing_twice(steady: ServiceProcess, tool: str) -> None:
    tally = Tally()
    reporter = Reporter(tally)
    async with relaying(port_of(steady)) as relay:
        with client_of(f"http://127.0.0.1:{relay.port}") as client:
            relay.lose_answers_to(ASKED)
            small_outputs(tally, tool, 3)
            await asyncio.to_thread(reporter.send, client)
            unheard = await asyncio.to_thread(seen, steady, tool)
            small_outputs(tally, tool, 4)
            relay.heal()
            await asyncio.to_thread(report, reporter, relay.port)

            assert (unheard, await asyncio.to_thread(seen, steady, tool)) == (3, 7)
            await asyncio.to_thread(client.close)


async def test_a_service_killed_before_its_answer_counts_nothing_twice(
    own_service: ServiceProcess, tool: str
) -> None:
    tally = Tally()
    reporter = Reporter(tally)
    async with relaying(port_of(own_service)) as relay:
        with client_of(f"http://127.0.0.1:{relay.port}") as client:
            relay.lose_answers_to(ASKED)
            small_outputs(tally, tool, 3)
            await asyncio.to_thread(reporter.send, client)
            before = await asyncio.to_thread(seen, own_service, tool)
            await asyncio.to_thread(own_service.kill)
            await asyncio.to_thread(own_service.start)
            small_outputs(tally, tool, 4)
            relay.heal()
            await asyncio.to_thread(report, reporter, relay.port)
            after = await asyncio.to_thread(seen, own_service, tool)
            await asyncio.to_thread(client.close)

    assert (before, after) == (3, 4)


async def test_a_lost_request_is_made_good(steady: ServiceProcess, tool: str) -> None:
    tally = Tally()
    reporter = Reporter(tally)
    async with relaying(port_of(steady)) as relay:
        with client_of(f"http://127.0.0.1:{relay.port}") as client:
            relay.lose_requests(ASKED)
            small_outputs(tally, tool, 3)
            await asyncio.to_thread(reporter.send, client)
            relay.heal()
            await asyncio.to_thread(report, reporter, relay.port)
            await asyncio.to_thread(client.close)

    assert await asyncio.to_thread(seen, steady, tool) == 3


def test_what_was_counted_while_the_service_was_down_arrives_later(
    own_service: ServiceProcess, tool: str
) -> None:
    tally = Tally()
    reporter = Reporter(tally)
    own_service.kill()
    with client_of(own_service.url) as client:
        for _ in range(3):
            small_outputs(tally, tool, 2)
            reporter.send(client)
        own_service.start()
        reporter.send(client)

    assert seen(own_service, tool) == 6


def test_a_stopping_and_restarted_service_gets_each_count_once(
    own_service: ServiceProcess, tool: str
) -> None:
    tally = Tally()
    reporter = Reporter(tally)
    with client_of(own_service.url) as client:
        small_outputs(tally, tool, 2)
        reporter.send(client)
        before = seen(own_service, tool)
        own_service.restart()
        small_outputs(tally, tool, 3)
        reporter.send(client)

    assert (before, seen(own_service, tool)) == (2, 3)


def test_a_report_that_is_refused_is_lost_and_holds_up_no_other(
    steady: ServiceProcess, client: SyncClient, tool: str
) -> None:
    tally = Tally()
    reporter = Reporter(tally)
    tally.add("endless", Outcome.TRUNCATED, 2**63, 1)  # more bytes than the service takes
    reporter.send(client)
    small_outputs(tally, tool, 3)
    reporter.send(client)

    assert (seen(steady, "endless", Outcome.TRUNCATED), seen(steady, tool)) == (0, 3)


def test_a_report_too_old_to_be_known_again_is_lost(
    steady: ServiceProcess, client: SyncClient, tool: str
) -> None:
    tally, clock = Tally(), Clock()
    reporter = Reporter(tally, clock=clock)
    small_outputs(tally, tool, 3)
    with client_of(NOBODY) as unreachable:
        reporter.send(unreachable)
    clock.now += BATCH_MEMORY
    small_outputs(tally, tool, 4)
    reporter.send(client)

    assert seen(steady, tool) == 4


def test_ever_new_and_endless_tool_names_arrive_in_pieces_that_the_service_takes(
    own_service: ServiceProcess,
) -> None:
    tally = Tally()
    reporter = Reporter(tally)
    for number in range(700):
        for outcome in Outcome:
            tally.add("\x00" * 10_000 + str(number), outcome, 2**40, 2**40)
    with client_of(own_service.url) as client:
        reporter.send(client)

    arrived = figures(own_service)
    assert sum(value for name, value in arrived.items() if name.startswith("tool_outputs_total")) == 2_800


def test_threads_that_report_at_once_count_nothing_twice(
    steady: ServiceProcess, client: SyncClient, tool: str
) -> None:
    tally = Tally()
    reporter = Reporter(tally)
    small_outputs(tally, tool, 5)
    threads = [threading.Thread(target=reporter.send, args=[client], kwargs={"wait": 30.0}) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seen(steady, tool) == 5


def test_a_report_is_due_after_the_interval() -> None:
    clock = Clock()
    reporter = Reporter(Tally(), clock=clock)
    clock.now += INTERVAL - 1
    early = reporter.due()
    clock.now += 1

    assert (early, reporter.due()) == (False, True)


def test_a_report_is_due_soon_where_outputs_were_spilled() -> None:
    clock, tally = Clock(), Tally()
    reporter = Reporter(tally, clock=clock)
    tally.add("grep", Outcome.CAPTURED, 70_000, 2_500)
    at_once = reporter.due()
    clock.now += SOON

    assert (at_once, reporter.due()) == (False, True)


def test_the_background_is_told_when_to_come_again(
    steady: ServiceProcess, client: SyncClient, tool: str
) -> None:
    clock, tally = Clock(), Tally()
    reporter = Reporter(tally, clock=clock)
    small_outputs(tally, tool, 3)
    clock.now += 10
    pauses = [reporter.deliver(client)]
    early = seen(steady, tool)
    tally.add(tool, Outcome.CAPTURED, 70_000, 2_500)
    clock.now += pauses[0]
    pauses.append(reporter.deliver(client))

    assert pauses == [INTERVAL - 10, INTERVAL]
    assert (early, seen(steady, tool)) == (0, 3)


def test_after_spilled_outputs_the_background_is_asked_back_soon(client: SyncClient) -> None:
    clock, tally = Clock(), Tally()
    reporter = Reporter(tally, clock=clock)
    tally.add("grep", Outcome.CAPTURED, 70_000, 2_500)

    assert reporter.deliver(client) == SOON


def test_reports_that_fail_become_rare(steady: ServiceProcess, client: SyncClient) -> None:
    clock, tally = Clock(), Tally()
    reporter = Reporter(tally, clock=clock)
    tally.add("grep", Outcome.CAPTURED, 70_000, 2_500)
    waits = []
    with client_of(NOBODY) as unreachable:
        for _ in range(6):
            reporter.send(unreachable)
            waits.append(waited(reporter, clock))
    reporter.send(client)
    waits.append(waited(reporter, clock))

    assert waits == [
        2 * INTERVAL,
        4 * INTERVAL,
        8 * INTERVAL,
        16 * INTERVAL,
        16 * INTERVAL,
        16 * INTERVAL,
        INTERVAL,
    ]


def waited(reporter: Reporter, clock: Clock) -> float:
    """Whole seconds until a report is due."""
    start = clock.now
    while not reporter.due():
        clock.now += 1
    return clock.now - start


def test_the_last_report_arrives(steady: ServiceProcess, client: SyncClient, tool: str) -> None:
    tally = Tally()
    small_outputs(tally, tool, 3)
    Reporter(tally).finish(client, within=30)

    assert seen(steady, tool) == 3


def test_the_last_report_is_not_waited_for_without_end(tool: str) -> None:
    tally = Tally()
    small_outputs(tally, tool, 3)
    reporter = Reporter(tally)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        client = SyncClient(f"http://127.0.0.1:{silent.getsockname()[1]}", key="", timeout=3_600)
        reporter.finish(client, within=0.05)

        assert reporter._sending.locked()
        client.close()


PROGRAM = """
import os, socket, sys
from overspill import SyncClient
from overspill.guard.counts.reporter import Reporter
from overspill.guard.counts.tally import Tally

tally = Tally()
reporter = Reporter(tally)
tally.inline("parent").note(1)
"""
LEAVING = """
silent = socket.create_server(("127.0.0.1", 0))
reporter.finish(SyncClient(f"http://127.0.0.1:{silent.getsockname()[1]}", key="", timeout=3600), within=0.05)
"""
FORKING = """
unreachable, client = SyncClient("http://127.0.0.1:9", key="", retries=0), SyncClient(sys.argv[1], key="")
reporter.send(unreachable)
unreachable.close()
reporter._sending.acquire()  # as if another thread were reporting
child = os.fork()
if child == 0:
    tally.inline("child").note(1)
    reporter.send(client)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
reporter._sending.release()
reporter.send(client)
client.close()
"""


FORKING_QUIETLY = """
from overspill import Guard
from overspill.guard.counts import report_job

report_job.LAST_REPORT = 30.0  # however busy the machine is
client = SyncClient(sys.argv[1], key="")
guard = Guard(client, spool=False)
tool = guard.wrap(str, name="quick")
tool("parent's")
child = os.fork()
tool("of both")
guard.close()
client.close()
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_the_interpreter_ends_while_a_report_is_on_its_way() -> None:
    command = [sys.executable, "-c", PROGRAM + LEAVING]

    assert subprocess.run(command, check=False, timeout=60, env=clean_environment()).returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_reports_its_own_counts_alone(steady: ServiceProcess) -> None:
    assert run_code(PROGRAM + FORKING, steady.url, environment=clean_environment()).returncode == 0

    assert (seen(steady, "parent"), seen(steady, "child")) == (1, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_reports_what_stayed_inline_as_well(steady: ServiceProcess) -> None:
    assert run_code(PROGRAM + FORKING_QUIETLY, steady.url, environment=clean_environment()).returncode == 0

    assert seen(steady, "quick") == 3


def port_of(service: ServiceProcess) -> int:
    return int(service.url.rpartition(":")[2])
