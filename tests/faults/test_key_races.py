"""A key that is revoked at one replica while another one changes it stays revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overspill_service.archive.keyring import Keyring
    from overspill_service.catalog.key_records import KeyRecord

    from tests.web.conftest import Api


@pytest.fixture
async def api(start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)
    started: Api = await start_api()
    return started


@pytest.fixture
async def key(api: Api) -> KeyRecord:
    return (await api.service.issuer.issue("acme", [], now=api.service.archive.clock())).record


@pytest.fixture
def first(api: Api, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Something happens just before a step of a back end, once."""

    def before(step: str, what: Callable[[], Awaitable[Any]]) -> None:
        port, _, name = step.partition(" ")
        owner: Any = getattr(api.service.archive, port)
        method = getattr(owner, name)

        async def step_after_that(*given: Any) -> Any:
            monkeypatch.setattr(owner, name, method)
            await what()
            return await method(*given)

        monkeypatch.setattr(owner, name, step_after_that)

    return before


async def known(ring: Keyring, key: KeyRecord) -> tuple[list[KeyRecord], bool]:
    """What the catalog knows of all keys, and whether the object store has this one."""
    return await ring.keys(), await ring.has(key.hash)


@pytest.mark.parametrize("step", ["store put", "catalog add_key", "store delete"])
async def test_a_change_does_not_bring_back_a_key_that_is_revoked_meanwhile(
    api: Api, key: KeyRecord, first: Callable[..., None], step: str
) -> None:
    ring = api.service.archive.keyring
    first(step, lambda: ring.revoke(key.hash))
    await ring.change(replace(key, expires=api.service.archive.clock() + 3600))

    assert await known(ring, key) == ([], False)


@pytest.mark.parametrize("step", ["store delete", "catalog revoke_key"])
async def test_a_key_that_is_changed_while_it_is_revoked_is_revoked(
    api: Api, key: KeyRecord, first: Callable[..., None], step: str
) -> None:
    ring = api.service.archive.keyring
    changed = replace(key, expires=api.service.archive.clock() + 3600)
    first(step, lambda: ring.change(changed))

    assert await ring.revoke(key.hash)
    assert await known(ring, key) == ([], False)


async def test_a_key_that_is_rotated_while_it_is_revoked_is_revoked(
    api: Api, key: KeyRecord, first: Callable[..., None]
) -> None:
    issuer, ring, now = api.service.issuer, api.service.archive.keyring, api.service.archive.clock()
    first("catalog revoke_key", lambda: issuer.rotate(key, now=now, life=None))
    await issuer.revoke(key.id)

    assert [each.replaces for each in await ring.keys()] == [key.id]
    assert not await ring.has(key.hash)


async def test_of_two_changes_at_once_the_later_one_stays(
    api: Api, key: KeyRecord, first: Callable[..., None]
) -> None:
    ring = api.service.archive.keyring
    sooner, later = (replace(key, expires=api.service.archive.clock() + after) for after in (60, 3600))
    first("catalog add_key", lambda: ring.change(later))
    await ring.change(sooner)

    assert await ring.stored(key.hash) == later
    assert await ring.keys() == [later]
