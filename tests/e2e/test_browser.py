"""A browser on a hostile page, beside a service that asks nobody for a key: nothing read, nothing changed.

Each attack must have reached the service, as its log says: what the browser itself held back proves nothing.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.faults.traffic import client_of
from tests.servers.browser import HOST, Name, Site, browsing, executable
from tests.waiting import until

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

SECRET: Final = b"the secret of this machine's user\n"
OBSERVATION: Final = {"observations": [{"tool": "stolen", "outcome": "inline", "count": 1}]}
EVIL: Final = "evil.example"

SCRIPT: Final = Path(__file__).with_name("hostile_page.js").read_text(encoding="utf-8")


def page(service: str, site: Site, capture: str, attack: str) -> str:
    values = {
        "service": service,
        "site": f"http://{EVIL}:{site.port}",
        "capture": capture,
        "observation": OBSERVATION,
    }
    constants = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items())
    run = f"{attack}().finally(() => report(found));"
    return f"<!doctype html><body><script>\n{constants}{SCRIPT}{run}\n</script></body>"


async def stored(service: ServiceProcess) -> str:
    """The id of a capture that was stored just now. The service has logged that by then."""
    async with client_of(service) as client:
        capture = (await client.put(SECRET, call_id="call_0")).id
    assert await asyncio.to_thread(until, lambda: answers(service))
    return capture


async def unchanged(service: ServiceProcess, capture: str) -> None:
    async with client_of(service) as client:
        assert (await client.usage()).captures == 1
        assert (await client.head(capture)).content == SECRET.decode()


def answers(service: ServiceProcess) -> list[tuple[str, int]]:
    """What was asked of the service since its start, and the status of each answer."""
    lines = [json.loads(line) for line in service.logged().splitlines() if line.startswith("{")]
    return [(line["message"], line["status"]) for line in lines if line["logger"].endswith("access")]


@pytest.mark.parametrize("host", [HOST, "localhost"])
async def test_a_page_of_another_site_reads_and_changes_nothing(
    own_service: ServiceProcess, host: str
) -> None:
    executable()
    await asyncio.to_thread(own_service.restart, log_format="json")
    capture, before = await stored(own_service), len(answers(own_service))
    async with Site() as site:
        url = own_service.url.replace(HOST, host)
        site.page = page(url, site, capture, "attack")
        async with browsing(f"http://{EVIL}:{site.port}/", {EVIL: HOST}):
            report = await site.report()

    asked = answers(own_service)[before:]
    assert report == {"read": []}
    assert {status for _, status in asked} == {403}, asked
    assert {message.split()[0] for message, _ in asked} >= {"GET", "POST", "OPTIONS"}
    assert len(asked) >= 15
    await unchanged(own_service, capture)


async def test_a_name_that_is_rebound_to_this_machine_reads_and_changes_nothing(
    own_service: ServiceProcess,
) -> None:
    executable()
    await asyncio.to_thread(own_service.restart, log_format="json")
    capture, before = await stored(own_service), len(answers(own_service))
    async with Site() as site, Name(site.port) as name:
        own = f"http://rebound.example:{name.port}"
        site.page = page(own, site, capture, "rebound")
        async with browsing(own, {EVIL: HOST, "rebound.example": HOST}):
            assert await site.report() == "loaded"
            name.leads_to = int(own_service.url.rpartition(":")[2])
            report: Any = await site.report()

    asked = answers(own_service)[before:]
    assert report == {"read": []}
    assert {status for _, status in asked} == {403}, asked
    assert {message.split()[0] for message, _ in asked} >= {"GET", "PUT", "PATCH", "DELETE", "POST"}
    await unchanged(own_service, capture)
