"""The guard against the real service."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from overspill import Client, SyncClient
from overspill.guard import pipeline
from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.shapes import writer
from overspill.wire import Outcome

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

LOG = "".join(f"2026-11-01 12:00:00 request {number} served\n" for number in range(50_000))


async def test_what_spills_can_be_read_by_the_id_in_its_notice(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        guarded = await Guard(client, session="read").process(LOG, tool="run_command", call_id="call_1")

        assert guarded.outcome is Outcome.CAPTURED
        assert guarded.value.startswith("[overspill] Output of run_command (call_1) too long")
        assert str(guarded.capture) in guarded.value
        assert await client.content(str(guarded.capture)) == LOG.encode()


async def test_the_service_knows_whose_output_it_is(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        guard = Guard(client, Policy(ttl=600), session="whose")
        guarded = await guard.process(LOG, tool="run_command", call_id="call_1", status="error")
        entry = await client.get(str(guarded.capture))

    assert (entry.session, entry.call_id, entry.tool, entry.status) == (
        "whose",
        "call_1",
        "run_command",
        "error",
    )
    assert (entry.size, entry.lines) == (guarded.bytes_before, guarded.lines)
    assert f"until {entry.expires.day} {entry.expires:%b %H:%M} UTC." in guarded.value


async def test_guarding_the_same_output_again_gives_the_same_bytes(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        guard = Guard(client, session="again")
        first = await guard.process(LOG, tool="t", call_id="call_1")
        second = await guard.process(LOG, tool="t", call_id="call_1")

    assert first.value == second.value


def test_without_an_event_loop_outputs_are_stored_too(service: ServiceProcess) -> None:
    with SyncClient(service.url) as client:
        guarded = Guard(client, session="sync").process_sync(LOG, tool="t")

        assert client.content(str(guarded.capture)) == LOG.encode()


async def test_either_client_serves_both_kinds_of_code(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        assert Guard(client, session="either").process_sync(LOG, tool="a").outcome is Outcome.CAPTURED
    with SyncClient(service.url) as client:
        assert (await Guard(client, session="either").process(LOG, tool="b")).outcome is Outcome.CAPTURED


@pytest.mark.parametrize("count", [2_000, 20_000])
async def test_data_is_written_as_json_in_another_thread_than_the_event_loops(
    service: ServiceProcess, count: int
) -> None:
    rows = {"rows": [{"id": number, "name": f"customer {number}"} for number in range(count)]}
    here: set[str] = set()
    async with Client(service.url) as client:
        guard = Guard(client, session="dict")
        sys.setprofile(lambda frame, *_: here.add(frame.f_code.co_filename))
        try:
            guarded = await guard.process(rows, tool="query")
        finally:
            sys.setprofile(None)

    assert guarded.outcome is Outcome.CAPTURED
    assert pipeline.__file__ in here
    assert writer.__file__ not in here


async def test_a_dict_is_stored_as_indented_json(service: ServiceProcess) -> None:
    rows = {"rows": [{"number": number} for number in range(10_000)]}
    async with Client(service.url) as client:
        guarded = await Guard(client, session="json").process(rows, tool="query")
        entry = await client.get(str(guarded.capture))
        stored = await client.content(str(guarded.capture))

    assert stored.decode() == json.dumps(rows, indent=2)
    assert entry.content_type == "application/json"
    assert guarded.value["rows"][:2] == rows["rows"][:2]
    assert guarded.value["rows"][-1]["overspill"] == str(guarded.notice)


async def test_an_empty_and_a_very_long_call_id_are_stored_under_ids_of_their_own(
    service: ServiceProcess,
) -> None:
    async with Client(service.url) as client:
        guard = Guard(client, session="ids")
        captures = {
            (await guard.process(LOG, tool="t", call_id=call_id)).capture for call_id in ("", "x" * 10_000)
        }

        assert len(captures) == 2
        assert {entry.id for entry in (await client.list(session="ids")).captures} == captures
