"""The same output of a call gets the same notice to the byte, whatever the service does meanwhile."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from overspill import Guard, SyncClient
from overspill.guard.decisions import Decision, Decisions, Earlier
from overspill.guard.policy import Policy
from overspill.previews.notice_facts import StoreResult
from overspill.wire import Outcome

from tests.client.spooling import NOON, Clock
from tests.client.test_spool_service import KEY, tenants_file
from tests.notice_marks import bare

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

LOG = "".join(f"request {number} served\n" for number in range(3_000))
SPOOLED = StoreResult(
    outcome=Outcome.SPOOLED, expires=datetime.fromtimestamp(NOON + 60, UTC), reason="connection refused"
)
LATER = replace(SPOOLED, expires=datetime.fromtimestamp(NOON + 90, UTC), reason="it keeps failing")
CAPTURED = StoreResult(outcome=Outcome.CAPTURED, expires=datetime.fromtimestamp(NOON + 90, UTC))
LOST = StoreResult(outcome=Outcome.TRUNCATED, reason="connection refused")


def test_the_first_decision_on_a_capture_stands() -> None:
    decisions = Decisions(clock=Clock())
    first = decisions.first("cap_1", Decision(SPOOLED, Earlier("cap_0", 0)))

    assert decisions.first("cap_1", Decision(LATER)) == first == Decision(SPOOLED, Earlier("cap_0", 0))
    assert decisions.first("cap_1", Decision(CAPTURED)) == first
    assert decisions.first("cap_1", Decision(LOST)) == first
    assert decisions.first("cap_2", Decision(CAPTURED)) == Decision(CAPTURED)


def test_a_decision_that_stored_nothing_gives_way_to_one_that_did() -> None:
    decisions = Decisions(clock=Clock())
    decisions.first("cap_1", Decision(LOST))

    assert decisions.first("cap_1", Decision(replace(LOST, reason="it keeps failing"))) == Decision(LOST)
    assert decisions.first("cap_1", Decision(CAPTURED)) == Decision(CAPTURED)


def test_a_decision_is_forgotten_once_it_has_expired() -> None:
    clock = Clock()
    decisions = Decisions(clock=clock)
    decisions.first("cap_1", Decision(SPOOLED))
    clock.now += 60

    assert decisions.first("cap_1", Decision(CAPTURED)) == Decision(CAPTURED)


def test_only_so_many_decisions_are_remembered_and_none_without_an_id() -> None:
    decisions = Decisions(limit=1, clock=Clock())
    decisions.first("cap_1", Decision(SPOOLED))
    decisions.first("cap_2", Decision(SPOOLED))
    decisions.first("", Decision(SPOOLED))

    assert decisions.first("cap_1", Decision(CAPTURED)) == Decision(CAPTURED)
    assert decisions.first("", Decision(LOST)) == Decision(LOST)


def test_a_replay_after_the_service_came_back_keeps_its_first_bytes(own_service: ServiceProcess) -> None:
    own_service.stop()
    with SyncClient(own_service.url, retries=0) as client, Guard(client, Policy(wait=1.0)) as guard:
        spooled = [guard.process_sync(LOG, tool="run_command", call_id="call_1") for _ in range(2)]
        own_service.start()
        assert guard._storage.health is not None
        guard._storage.health.answered()  # as whoever asks next would find
        with Guard(client, Policy(wait=60.0)) as fresh:
            stored = fresh.process_sync(LOG, tool="run_command", call_id="call_1")
        replayed = guard.process_sync(LOG, tool="run_command", call_id="call_1")

        assert "Stored whole on this machine until" in spooled[0].value
        assert stored.outcome is Outcome.CAPTURED
        assert spooled[1].value == replayed.value == spooled[0].value
        assert client.content(str(replayed.capture)) == LOG.encode()


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_refusal_is_no_promise_and_brings_no_status_into_the_text(
    own_service: ServiceProcess, tmp_path: Path, is_kept: bool
) -> None:
    path = tenants_file(tmp_path, KEY)
    path.write_text(path.read_text().replace('"write", "read"', '"read"'))
    own_service.restart(tenants=path)
    with SyncClient(own_service.url, KEY) as client, Guard(client, spool=is_kept) as guard:
        guarded = guard.process_sync(LOG, tool="run_command")

    assert guarded.outcome is (Outcome.SPOOLED if is_kept else Outcome.TRUNCATED)
    assert "will be uploaded" not in guarded.value
    assert "HTTP" not in guarded.value
    assert "403" not in bare(guarded.value)  # a mark may have these digits
    assert "request " not in guarded.value.partition("--- preview ---")[0]
    assert ("on this machine alone" in guarded.value) is is_kept
