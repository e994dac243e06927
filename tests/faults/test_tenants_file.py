"""The tenants' file of a running service: a change is in use within seconds, and half a file never is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from overspill_service import access, tenants_file
from overspill_service.errors import StoreUnavailable
from overspill_service.maintenance import Maintenance
from overspill_service.settings.errors import SettingError
from overspill_service.tenants.keys import hash_key, new_key
from overspill_service.tenants_file import TenantsFile

from tests.faults.traffic import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.servers.redis import RedisServer
    from tests.web.conftest import Api


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again at once."""
    monkeypatch.setattr("overspill_service.web.open_mode.MODE_SECONDS", 0.0)
    monkeypatch.setattr(tenants_file, "POLL_SECONDS", 0.05)


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look only when a test does."""
    monkeypatch.setattr(tenants_file, "POLL_SECONDS", 3600.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tenants.toml"


def tenant(*keys: str, name: str = "a") -> str:
    lines = [f'[[tenants.keys]]\nhash = "{hash_key(key)}"\nscopes = ["read"]\n' for key in keys]
    return f'[[tenants]]\nname = "{name}"\n' + "".join(lines)


async def status(api: Api, key: str = "") -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return (await api.get("/v1/usage", headers=headers)).status


async def test_a_change_of_the_tenants_file_is_in_use_within_seconds(
    start_api: Callable[..., Any], own_redis: RedisServer, tmp_path: Path, file: Path
) -> None:
    first, second = new_key(), new_key()
    back_ends = {"store": f"file://{tmp_path}/objects", "catalog": f"{own_redis.url}?deadline=20"}
    file.write_text(tenant(first, second))
    apis: list[Api] = [await start_api(**back_ends, tenants=file) for _ in range(2)]
    assert [await status(api, key) for api in apis for key in (first, second)] == [200] * 4
    file.write_text(tenant(second))

    async def is_removed() -> bool:
        return [await status(api, key) for api in apis for key in (first, second)] == [401, 200] * 2

    await until(is_removed)


@pytest.mark.parametrize("wrong", ["[[tenants]\n", "x = " + "[" * 5000], ids=["no TOML", "nested"])
async def test_a_wrong_tenants_file_changes_nothing_and_is_reported(
    start_api: Callable[..., Any], file: Path, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    key = new_key()
    file.write_text(tenant(key))
    api: Api = await start_api(tenants=file)
    file.write_text(wrong)

    async def is_reported() -> bool:
        return "the former one stays in use" in caplog.text

    await until(is_reported)
    assert await status(api, key) == 200


@pytest.mark.usefixtures("never")
async def test_a_tenants_file_is_read_once_it_is_written(start_api: Callable[..., Any], file: Path) -> None:
    keys = [new_key(), new_key()]
    tenants = [tenant(key, name=f"t{number}") for number, key in enumerate(keys)]
    file.write_text("".join(tenants))
    api: Api = await start_api(tenants=file)
    watched = TenantsFile(api.service, access.stamp_of(file))

    async def statuses() -> list[int]:
        await watched.look_once()
        return [await status(api, key) for key in keys]

    for half in ("", tenants[0]):
        file.write_text(half)
        assert await statuses() == [200, 200]
    file.write_text("".join(tenants) + "# written\n")
    assert [await statuses(), await statuses()] == [[200, 200]] * 2
    file.write_text(tenants[1])
    assert [await statuses(), await statuses()] == [[200, 200], [401, 200]]
    file.write_text("")
    assert [await statuses(), await statuses()] == [[401, 200]] * 2


@pytest.mark.usefixtures("never")
async def test_a_tenants_file_that_never_stands_still_is_reported(
    start_api: Callable[..., Any],
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    key = new_key()
    file.write_text(tenant(key))
    api: Api = await start_api(tenants=file)
    watched = TenantsFile(api.service, access.stamp_of(file))

    async def change(number: int) -> None:
        file.write_text(tenant() + number * "#")
        await watched.look_once()

    await change(1)
    await change(2)
    assert "it is read once" not in caplog.text
    monkeypatch.setattr(tenants_file, "RESTLESS_SECONDS", 0.0)
    await change(3)

    assert "it is read once it has not changed for" in caplog.text
    assert await status(api, key) == 200


async def test_a_key_that_is_taken_out_ends_also_while_the_process_has_other_work_in_the_background(
    start_api: Callable[..., Any], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    async def long_work(_: Maintenance) -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Maintenance, "repair_once", long_work)
    key = new_key()
    file.write_text(tenant(key))
    api: Api = await start_api(tenants=file)
    await begun.wait()
    file.write_text(tenant(new_key()))

    async def is_removed() -> bool:
        return await status(api, key) == 401

    await until(is_removed)


async def test_a_change_between_reading_the_file_and_serving_is_seen(
    start_api: Callable[..., Any], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, directory_of = [new_key(), new_key()], access.directory_of
    file.write_text(tenant(*keys))

    def changed_behind_it(*words: Any) -> Any:
        directory = directory_of(*words)
        monkeypatch.undo()
        monkeypatch.setattr(tenants_file, "POLL_SECONDS", 0.05)
        file.write_text(tenant(keys[1]))
        return directory

    monkeypatch.setattr(access, "directory_of", changed_behind_it)
    api: Api = await start_api(tenants=file)

    async def is_removed() -> bool:
        return [await status(api, key) for key in keys] == [401, 200]

    await until(is_removed)


async def test_the_last_key_can_be_taken_out_of_the_tenants_file_too(
    start_api: Callable[..., Any], file: Path
) -> None:
    key = new_key()
    file.write_text(tenant(key))
    api: Api = await start_api(tenants=file, anonymous=None)
    assert await status(api, key) == 200
    file.write_text(tenant())

    async def is_removed() -> bool:
        return await status(api, key) == 401

    await until(is_removed)
    assert await status(api) == 401
    with pytest.raises(SettingError, match="nobody could use"):
        await start_api(tenants=file, anonymous=None)


async def test_a_change_of_the_tenants_file_is_in_use_once_the_store_answers_again(
    start_api: Callable[..., Any], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [new_key(), new_key()]
    file.write_text(tenant(*keys))
    api: Api = await start_api(tenants=file)
    tried = asyncio.Event()

    async def fail() -> int:
        tried.set()
        raise StoreUnavailable("down")

    with monkeypatch.context() as patch:
        patch.setattr(api.service.archive.keyring, "restore", fail)
        file.write_text(tenant(keys[0]))
        await tried.wait()
        assert await status(api, keys[1]) == 200

    async def is_removed() -> bool:
        return [await status(api, key) for key in keys] == [200, 401]

    await until(is_removed)
