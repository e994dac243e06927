"""SIGHUP takes over what needs no restart, and interrupts nothing."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest
from overspill_service.access import RELOADED
from overspill_service.tenants.keys import hash_key, new_key

from tests.faults.traffic import MIB, noise, until
from tests.web.conftest import path_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.faults.conftest import StartServices
    from tests.servers.overspill import ServiceProcess

LARGE = noise(2 * MIB)


def tenants(*keys: str, limit: int = 10**9) -> str:
    written = ", ".join(f'{{hash = "{hash_key(key)}", scopes = ["write", "read"]}}' for key in keys)
    return f'[[tenants]]\nname = "acme"\nmax_capture_size = {limit}\nkeys = [{written}]\n'


async def status_of(service: ServiceProcess, key: str, content: bytes = b"x") -> int:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.put(service.url + path_of(content), data=content) as response,
    ):
        return response.status


@pytest.mark.parametrize("workers", [1, 2])
async def test_an_edited_tenants_file_takes_effect_and_an_upload_in_flight_goes_on(
    start_services: StartServices, tmp_path: Path, workers: int
) -> None:
    file = tmp_path / "tenants.toml"
    old, new = new_key(), new_key()
    file.write_text(tenants(old))
    (service,) = await asyncio.to_thread(start_services, tenants=file, workers=workers)
    go_on = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield LARGE[:MIB]
        await go_on.wait()
        yield LARGE[MIB:]

    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {old}"}) as session:
        upload = asyncio.create_task(session.put(service.url + path_of(LARGE), data=body()))
        assert [await status_of(service, old), await status_of(service, new)] == [201, 401]
        file.write_text(tenants(new, limit=10))
        os.kill(service.pid, signal.SIGHUP)
        await until(lambda: logged(service, "reloaded", workers))

        assert [await status_of(service, new), await status_of(service, old)] == [200, 401]
        assert await status_of(service, new, b"more than ten") == 413
        go_on.set()
        async with await upload as stored:
            assert stored.status == 201


async def logged(service: ServiceProcess, words: str, times: int = 1) -> bool:
    return service.logged().count(words) == times


async def test_a_wrong_file_changes_nothing_and_says_so(
    start_services: StartServices, tmp_path: Path
) -> None:
    file, key = tmp_path / "tenants.toml", new_key()
    file.write_text(tenants(key))
    (service,) = await asyncio.to_thread(start_services, tenants=file)
    file.write_text("[[tenants]\n")
    os.kill(service.pid, signal.SIGHUP)
    await until(lambda: logged(service, "not reloaded, nothing has changed: tenants: "))

    assert await status_of(service, key) == 201


async def test_the_level_of_the_log_changes_and_what_needs_a_restart_is_named(
    start_services: StartServices, tmp_path: Path
) -> None:
    config = tmp_path / "settings.toml"
    config.write_text('log_level = "error"\n')
    (service,) = await asyncio.to_thread(start_services, config=config)
    config.write_text('log_level = "info"\nmax_uploads = 3\n')
    os.kill(service.pid, signal.SIGHUP)

    await until(lambda: logged(service, "needs_restart=max_uploads"))


def test_the_operators_page_names_the_settings_that_need_no_restart() -> None:
    text = (Path(__file__).parents[2] / "service/deploy/README.md").read_text()
    (named,) = re.findall(r"These settings take effect: (.*?)\.", text, re.DOTALL)

    assert set(re.findall(r"`(\w+)`", named)) == set(RELOADED)
