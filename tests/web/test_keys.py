"""API keys over their life: made, used, rotated, revoked, and hashed with another secret."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from overspill_service.__main__ import main
from overspill_service.settings.settings import SettingError
from overspill_service.tenants import hash_key, new_key

from tests.faults.traffic import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.web.conftest import Api


class Keys:
    """The commands `keys …` on one data directory."""

    def __init__(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._data, self._capsys = data, capsys

    async def run(self, *words: str, **settings: str) -> str:
        flags = [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", value)]
        code = await asyncio.to_thread(main, ["keys", *words, "--data", str(self._data), *flags])
        assert code == 0
        return self._capsys.readouterr().out.strip()

    async def listed(self, **settings: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (await self.run("list", **settings)).splitlines()]


@pytest.fixture(autouse=True)
def leave_logging_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the logging of the tests when a command runs in this process."""
    monkeypatch.setattr("overspill_service.telemetry.logs.configure", lambda *_: None)


@pytest.fixture
def keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Keys:
    return Keys(tmp_path, capsys)


async def status(api: Api, key: str) -> int:
    return (await api.get("/v1/usage", headers={"Authorization": f"Bearer {key}"})).status


async def test_the_list_says_when_a_key_was_last_used(
    start_api: Callable[..., Any], tmp_path: Path, keys: Keys
) -> None:
    used, unused, of_file = (
        await keys.run("create", "--tenant", "a"),
        await keys.run("create", "--tenant", "a"),
        new_key(),
    )
    file = tmp_path / "tenants.toml"
    file.write_text(
        f'[[tenants]]\nname = "b"\n[[tenants.keys]]\nhash = "{hash_key(of_file)}"\nscopes = ["read"]\n'
    )
    api: Api = await start_api(catalog="sqlite:", data=tmp_path, tenants=file)
    for key in (used, of_file):
        assert await status(api, key) == 200
    await api.stop()

    listed = {each["hash"]: each for each in await keys.listed(tenants=str(file))}
    assert listed[hash_key(unused)]["last_used"] is None
    assert listed[hash_key(used)]["last_used"] >= listed[hash_key(used)]["created"]
    assert listed[hash_key(of_file)]["last_used"] > 0
    assert [listed[hash_key(key)]["in"] for key in (used, of_file)] == ["catalog", "file"]
    assert all(each["hash"].startswith(each["id"]) for each in listed.values())


async def test_a_rotated_key_keeps_tenant_name_scopes_and_length_of_life(keys: Keys) -> None:
    await keys.run(
        "create", "--tenant", "a", "--scopes", "read,admin", "--name", "ops", "--expires-days", "9"
    )
    (old,) = await keys.listed()
    fresh = await keys.run("rotate", old["id"])
    listed = {each["hash"]: each for each in await keys.listed()}
    new = listed[hash_key(fresh)]

    assert listed.keys() == {old["hash"], new["hash"]}
    assert all(new[name] == old[name] for name in ("tenant", "name", "scopes"))
    assert new["expires"] - new["created"] == pytest.approx(9 * 86_400)
    await keys.run("revoke", old["id"])
    assert [each["id"] for each in await keys.listed()] == [new["id"]]


async def test_keys_of_two_secrets_are_valid_while_one_replaces_the_other(
    start_api: Callable[..., Any], tmp_path: Path, keys: Keys
) -> None:
    old = await keys.run("create", "--tenant", "a", key_secret="former")
    (record,) = await keys.listed()
    new = await keys.run("rotate", record["id"], key_secret="latter")
    settings = {"catalog": "sqlite:", "data": tmp_path, "key_secret": "latter"}
    both: Api = await start_api(**settings, previous_key_secret="former")
    latter: Api = await start_api(**settings)

    assert [await status(both, key) for key in (old, new, new_key())] == [200, 200, 401]
    assert [await status(latter, key) for key in (old, new)] == [401, 200]


async def test_a_key_made_while_a_service_runs_open_closes_every_process_of_it(
    start_api: Callable[..., Any], tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 0.05)
    apis: list[Api] = [await start_api(catalog="sqlite:", data=tmp_path) for _ in range(2)]
    assert [await status(api, "") for api in apis] == [200, 200]
    key = await keys.run("create", "--tenant", "a")

    async def is_closed() -> bool:
        return [await status(api, "") for api in apis] == [401, 401]

    await until(is_closed)
    assert [await status(api, key) for api in apis] == [200, 200]


async def test_keys_without_a_secret_are_refused_beyond_loopback(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "tenants.toml"
    file.write_text(
        f'[[tenants]]\nname = "b"\n[[tenants.keys]]\nhash = "{hash_key("x")}"\nscopes = ["read"]\n'
    )
    with pytest.raises(SettingError, match="OVERSPILL_KEY_SECRET"):
        await start_api(listen="0.0.0.0:0", tenants=file)

    await start_api(listen="0.0.0.0:0", tenants=file, key_secret="a secret")
