"""A key that expires soon says so: in each answer, in the client's log once, and in the list of keys."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import pytest
from overspill import Client
from overspill.wire import Header, Scope
from overspill_service.catalog.key_records import KeyRecord
from overspill_service.tenants.directory import Expiry
from overspill_service.tenants.keys import hash_key, new_key

from tests.web.conftest import Api, path_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DAY = 24 * 3600.0
NEAR = {"90 days old, 13 left": (-90, 13), "a quarter of its life": (-3.1, 0.9)}
FAR = {"90 days old, 15 left": (-90, 15), "new, for a day": (0, 1), "without an end": (-90, None)}


async def answered(api: Api, created: float, left: float | None, **kwargs: Any) -> str | None:
    key, now = new_key(), time.time()
    expires = None if left is None else now + left * DAY
    scopes = [Scope.READ, Scope.WRITE]
    made = now + created * DAY
    record = KeyRecord(hash=hash_key(key), tenant="acme", scopes=scopes, created=made, expires=expires)
    await api.service.archive.catalog.add_key(record)
    response = await api.get(kwargs.get("path", "/v1/usage"), headers={"Authorization": f"Bearer {key}"})
    return response.headers.get(Header.KEY_EXPIRES)


@pytest.mark.parametrize(("created", "left"), NEAR.values(), ids=NEAR)
async def test_answers_say_when_a_key_ends_that_ends_soon(api: Api, created: float, left: float) -> None:
    end = time.strftime("%Y-%m-%dT%H:", time.gmtime(time.time() + left * DAY))

    assert (await answered(api, created, left) or "")[: len(end)] == end
    assert await answered(api, created, left, path=path_of(b"never stored")) is not None  # a 404 too


@pytest.mark.parametrize(("created", "left"), FAR.values(), ids=FAR)
async def test_they_say_nothing_of_other_keys(api: Api, created: float, left: float | None) -> None:
    assert await answered(api, created, left) is None


async def test_of_a_key_in_the_tenants_file_two_weeks_count(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    keys = {new_key(): time.time() + days * DAY for days in (13, 15)}
    rows = ", ".join(
        f'{{hash = "{hash_key(key)}", scopes = ["read"], expires = {end}}}' for key, end in keys.items()
    )
    (tmp_path / "tenants.toml").write_text(f'[[tenants]]\nname = "acme"\nkeys = [{rows}]\n')
    api: Api = await start_api(tenants=tmp_path / "tenants.toml", anonymous=None)
    answers = [await api.get("/v1/usage", headers={"Authorization": f"Bearer {key}"}) for key in keys]

    assert [Header.KEY_EXPIRES in answer.headers for answer in answers] == [True, False]


async def test_the_client_logs_it_once(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    key, now = new_key(), time.time()
    record = KeyRecord(
        hash=hash_key(key), tenant="acme", scopes=[Scope.READ], created=now - 90 * DAY, expires=now + DAY
    )
    await api.service.archive.catalog.add_key(record)
    with caplog.at_level(logging.WARNING, logger="overspill"):
        async with Client(f"http://127.0.0.1:{api.port}", key=key) as client:
            await client.usage()
            await client.usage()

    [message] = [each for each in caplog.messages if "expires soon" in each]
    assert key not in message


def test_the_last_two_weeks_or_the_last_quarter_of_a_life_are_near() -> None:
    assert Expiry(100 * DAY, 0).is_near(86 * DAY)
    assert not Expiry(100 * DAY, 0).is_near(85.9 * DAY)
    assert Expiry(4 * DAY, 0).is_near(3 * DAY)
    assert not Expiry(4 * DAY, 0).is_near(2.9 * DAY)
