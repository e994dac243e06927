"""Scripted agents in two arms: what they count themselves is what the service says of each arm."""

from __future__ import annotations

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from overspill import Guard, Holdout, Policy, compare_arms
from overspill.guard.bursts import MIN_CALLS
from overspill.transfer.sync import SyncClient
from overspill.wire import NOTED, Arm, CohortSums

if TYPE_CHECKING:
    from pathlib import Path

    from overspill.advice.comparison import ExperimentReport

    from tests.faults.conftest import StartServices
    from tests.servers.redis import RedisServer

HOLDOUT = Holdout(name="load", share=0.4)
FIGURES = (*CohortSums.__struct_fields__, *NOTED)
KEEPS = {"tokens_kept_out"}
"""An estimate, which the agents do not make."""
LINE = "a line of the output of a tool\n"

Counts = dict[Arm, Counter[str]]


class Agent:
    """One session. It runs tools, reads what was cut, and counts what it does."""

    def __init__(self, number: int, holdout: Holdout, url: str) -> None:
        self._dice = random.Random(number)
        self._url = url
        self.session = f"agent {number}"
        arm = holdout.arm(self.session)
        assert arm is not None
        self.arm = arm
        self.done: Counter[str] = Counter(sessions=1)
        self._earlier: set[str] = set()

    def run(self, guard: Guard) -> None:
        for call in range(6):
            self._short(guard, call)
        for call in range(1 + MIN_CALLS):
            self._long(guard, call)
        self.done["bursts"] += 1
        self._burst(guard)

    def _short(self, guard: Guard, call: int) -> None:
        self._output(guard, "ls", LINE * self._dice.randrange(1, 50), f"short {call}")

    def _long(self, guard: Guard, call: int) -> None:
        """Run a tool whose output is too long, the same one now and then; read some of it."""
        lines = self._dice.choice([1_700, 1_800, 1_900, 9_000])
        text = f"{self.session}\n" + LINE * lines
        capture = self._output(guard, "make", text, f"long {call}")
        self.done["oversized"] += 1
        self.done["identical"] += text in self._earlier
        self._earlier.add(text)
        for number in range(self._dice.choice([0, 1, 2]) if capture else 0):
            with SyncClient(self._url) as client:
                self.done["read_bytes"] += len(client.head(str(capture), 5).content)
            self.done["reads"] += 1
            self.done["captures_read"] += number == 0

    def _burst(self, guard: Guard) -> None:
        """Run another tool again and again after it has returned too much."""
        self._output(guard, "test", f"{self.session} test\n" + LINE * 2_000, "first")
        self.done["oversized"] += 1
        for call in range(MIN_CALLS + 1):
            self._output(guard, "test", LINE, f"again {call}")
        self.done["bursts"] += 1

    def _output(self, guard: Guard, tool: str, text: str, call: str) -> str | None:
        made = guard.process_sync(text, tool=tool, session=self.session, call_id=f"{self.session} {call}")
        self.done["outputs"] += 1
        self.done["bytes_before"] += len(text)
        self.done["bytes_after"] += len(str(made.value).encode())
        self.done["spilled"] += made.notice is not None
        self.done["captures"] += made.capture is not None
        return made.capture


def under_load(urls: list[str], agents: range) -> Counts:
    """Run agents, several in each of a few processes' guards. Return what they have done, by arm."""
    crews = [agents[start::4] for start in range(4)]

    def work(number: int) -> list[Agent]:
        url = urls[number % len(urls)]
        crew = [Agent(each, HOLDOUT, url) for each in crews[number]]
        with SyncClient(url) as client, Guard(client, holdout=HOLDOUT) as guard:
            for agent in crew:
                agent.run(guard)
        return crew

    done: Counts = {arm: Counter() for arm in Arm}
    with ThreadPoolExecutor(4) as pool:
        for crew in pool.map(work, range(4)):
            for agent in crew:
                done[agent.arm] += agent.done
    return done


def counted(url: str) -> Counts:
    """The same by the service."""
    found: Counts = {arm: Counter() for arm in Arm}
    with SyncClient(url) as client:
        for row in client.experiments().rows:
            assert set(row.figures) <= set(FIGURES)
            found[row.arm].update({name: row.figures[name] for name in set(row.figures) - KEEPS})
    return found


def settled(url: str, expected: Counts) -> Counts:
    """What the service says, once captures and reads have followed: they take a few seconds."""
    until = time.monotonic() + 30
    while counted(url) != expected and time.monotonic() < until:
        time.sleep(0.5)
    return counted(url)


def test_each_arm_has_exactly_what_its_agents_did(
    start_services: StartServices, own_redis: RedisServer, tmp_path: Path
) -> None:
    replicas = start_services(2, store=f"file://{tmp_path}/objects", catalog=own_redis.url, workers=2)
    urls = [each.url for each in replicas]
    first = under_load(urls, range(8))
    assert settled(urls[1], first) == first
    for each in replicas:
        each.stop()
    for each in replicas:
        each.start()
    second = under_load(urls, range(8, 16))
    both = {arm: first[arm] + second[arm] for arm in Arm}

    assert settled(urls[0], both) == both
    assert all(both[arm]["sessions"] > 3 for arm in Arm)


def report_of(url: str, name: str) -> ExperimentReport:
    with SyncClient(url) as client:
        [report] = compare_arms(client.experiments(), name)
    return report


def test_a_preview_that_makes_agents_read_more_is_found_out(start_services: StartServices) -> None:
    """Agents read on in two of ten captures with one preview, and in six of ten with the other."""
    [service] = start_services(1, workers=2)
    small = Policy(max_bytes=2_000, preview_bytes=400)
    holdout = Holdout(name="previews", share=0.5, policy=replace(small, strategy="TAIL"))
    dice = random.Random(3)
    with SyncClient(service.url) as client, Guard(client, small, holdout=holdout) as guard:
        for number in range(230):
            session = f"agent {number}"
            rate = 0.2 if holdout.arm(session) is Arm.USUAL else 0.6
            text = f"{number}\n" + LINE * 100
            made = guard.process_sync(text, tool="make", session=session, call_id=str(number))
            if dice.random() < rate:
                client.head(str(made.capture), 5)
    service.stop()
    service.start()
    comparisons = {each.measure: each for each in report_of(service.url, "previews").comparisons}
    found = comparisons["captures read, per 100 oversized outputs"]

    assert found.verdict == "higher"
    assert found.usual is not None
    assert found.holdout is not None
    assert not found.usual.excludes(20)
    assert not found.holdout.excludes(60)
    assert comparisons["outputs per session"].verdict == "no difference shown"
