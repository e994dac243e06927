"""API keys over their life: made, used, rotated, revoked, and hashed with another secret."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp.test_utils import make_mocked_request
from overspill.wire import Scope
from overspill_service.command_line import main
from overspill_service.errors import CatalogUnavailable, KeyRefused
from overspill_service.settings.errors import SettingError
from overspill_service.tenants.keys import hash_key, is_key, new_key

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


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def status(api: Api, key: str) -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return (await api.get("/v1/usage", headers=headers)).status


class Nobody:
    """A catalog that must not be asked."""

    def __getattr__(self, name: str) -> None:
        raise AssertionError(f"{name} was asked for")


async def test_a_key_that_was_just_checked_is_checked_again_by_one_hash_and_no_question(
    start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "overspill_service.web.authentication.KEY_CACHE_SECONDS", 3600.0
    )  # a test may be slow
    api: Api = await start_api(anonymous=False)
    now, checked = api.service.archive.clock(), []
    issued = await api.service.issuer.issue("own", [Scope.READ], now=now)
    assert await status(api, issued.key) == 200
    authenticator = api.service.authenticator
    for part in (authenticator, authenticator._mode):
        monkeypatch.setattr(part, "_catalog", Nobody())

    def hashed(key: str, secret: str = "") -> str:
        checked.append(key)
        return hash_key(key, secret)

    monkeypatch.setattr("overspill_service.web.authentication.hash_key", hashed)
    request = make_mocked_request("GET", "/v1/usage", headers={"Authorization": f"Bearer {issued.key}"})
    found = [await authenticator.principal(request, "127.0.0.1") for _ in range(100)]

    assert {each.key_id for each in found} == {issued.record.id}
    assert checked == [issued.key] * 100


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
    api: Api = await start_api(store="", catalog="sqlite:", data=tmp_path, tenants=file)
    for key in (used, of_file):
        assert await status(api, key) == 200
    await api.stop()

    listed = {each["hash"]: each for each in await keys.listed(tenants=str(file))}
    assert listed[hash_key(unused)]["last_used"] is None
    assert moment(listed[hash_key(used)]["last_used"]) >= moment(listed[hash_key(used)]["created"])
    assert moment(listed[hash_key(of_file)]["last_used"])
    assert [listed[hash_key(key)]["in"] for key in (used, of_file)] == ["catalog", "file"]
    assert all(each["hash"].startswith(each["id"]) for each in listed.values())
    assert {each["expires_soon"] for each in listed.values()} == {False}


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
    life = moment(new["expires"]) - moment(new["created"])
    assert life.total_seconds() == pytest.approx(9 * 86_400)
    await keys.run("revoke", old["id"])
    assert [each["id"] for each in await keys.listed()] == [new["id"]]


async def test_a_key_of_the_former_secret_works_on_without_it_once_it_was_used(
    start_api: Callable[..., Any], tmp_path: Path, keys: Keys
) -> None:
    used, unused = [await keys.run("create", "--tenant", "a", key_secret="former") for _ in range(2)]
    new = await keys.run("create", "--tenant", "a", key_secret="latter")
    settings = {"store": "", "catalog": "sqlite:", "data": tmp_path, "key_secret": "latter"}
    latter: Api = await start_api(**settings)
    assert [await status(latter, key) for key in (used, unused, new)] == [401, 401, 200]
    both: Api = await start_api(**settings, previous_key_secret="former")
    assert [await status(both, key) for key in (used, new, new_key())] == [200, 200, 401]

    assert [await status(latter, key) for key in (used, unused, new)] == [200, 401, 200]
    (first, second) = [each for each in await keys.listed() if each["id"] == hash_key(used, "former")[:12]]
    assert {first["hash"], second["hash"]} == {hash_key(used, "former"), hash_key(used, "latter")}
    await keys.run("revoke", first["id"])
    assert await status(both, used) == 200  # for some seconds more
    both.service.authenticator._cache.clear()
    assert await status(both, used) == 401


async def test_a_key_made_while_a_service_runs_open_closes_every_process_of_it(
    start_api: Callable[..., Any], tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.web.open_mode.MODE_SECONDS", 0.05)
    apis: list[Api] = [await start_api(store="", catalog="sqlite:", data=tmp_path) for _ in range(2)]
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


async def test_who_has_to_make_a_first_key_is_told_to_choose_its_secret_before(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    beyond = {"store": "", "catalog": "sqlite:", "data": tmp_path, "listen": "0.0.0.0:0", "anonymous": None}
    empty = tmp_path / "tenants.toml"
    empty.write_text('[[tenants]]\nname = "b"\n')

    with pytest.raises(SettingError, match=r"no keys: set OVERSPILL_KEY_SECRET .*, create one with"):
        await start_api(**beyond)
    with pytest.raises(SettingError, match=r"no keys: create one with"):
        await start_api(**beyond, key_secret="a secret")
    with pytest.raises(SettingError, match=r"; set OVERSPILL_KEY_SECRET .*, make one with"):
        await start_api(**beyond, tenants=empty)


# --- over HTTP ------------------------------------------------------------------------------------


class Admin:
    """An admin key of a tenant, and requests with it."""

    def __init__(self, api: Api, key: str) -> None:
        self._api, self._headers = api, {"Authorization": f"Bearer {key}"}

    async def __call__(self, method: str, path: str, **body: object) -> tuple[int, Any]:
        answer = await self._api.send(
            method, path, headers=self._headers, **({"json": body} if method == "POST" else {})
        )
        return answer.status, await answer.json()


async def admin_of(api: Api, tenant: str) -> Admin:
    now = api.service.archive.clock()
    return Admin(api, (await api.service.issuer.issue(tenant, [Scope.ADMIN], now=now)).key)


async def test_the_last_use_of_a_key_is_recorded_once_the_catalog_answers_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_uses: object) -> None:
        raise CatalogUnavailable("Redis is not reachable")

    admin, authenticator = await admin_of(api, "acme"), api.service.authenticator
    await admin("GET", "/v1/keys")
    with monkeypatch.context() as patch:
        patch.setattr(api.service.archive.catalog, "note_uses", refuse)
        with pytest.raises(CatalogUnavailable):
            await authenticator.uses.report()
    await authenticator.uses.report()
    _, listed = await admin("GET", "/v1/keys")

    assert listed["keys"][0]["last_used"] is not None


async def test_an_admin_makes_lists_rotates_and_revokes_keys_of_its_tenant(api: Api) -> None:
    admin = await admin_of(api, "acme")
    code, made = await admin("POST", "/v1/keys", scopes=["read"], name="agent", session="s", ttl=60)
    assert (code, made["about"]["session"]) == (201, "s")
    assert is_key(made["key"])
    assert (await api.get("/v1/captures", headers={"Authorization": f"Bearer {made['key']}"})).status == 200

    await api.service.authenticator.uses.report()
    _, listed = await admin("GET", "/v1/keys")
    assert [each["name"] for each in listed["keys"]] == ["", "agent"]
    assert made["key"] not in json.dumps(listed)
    assert listed["keys"][1]["last_used"] is not None
    code, second = await admin("POST", f"/v1/keys/{made['about']['id']}/rotate", ttl=60)
    assert (code, second["about"]["session"]) == (201, "s")
    assert (await admin("POST", f"/v1/keys/{made['about']['id']}/rotate"))[0] == 409
    code, gone = await admin("DELETE", f"/v1/keys/{made['about']['id']}")
    assert (code, gone["id"]) == (200, made["about"]["id"])
    assert (await admin("DELETE", f"/v1/keys/{made['about']['id']}"))[0] == 404


async def test_an_admin_sees_and_changes_no_key_of_another_tenant(api: Api) -> None:
    ours, theirs = await admin_of(api, "acme"), await admin_of(api, "globex")
    (foreign,) = (await theirs("GET", "/v1/keys"))[1]["keys"]

    assert foreign["id"] not in json.dumps((await ours("GET", "/v1/keys"))[1])
    for method, path in (
        ("DELETE", f"/v1/keys/{foreign['id']}"),
        ("POST", f"/v1/keys/{foreign['id']}/rotate"),
    ):
        code, found = await ours(method, path)
        assert (code, found["code"]) == (404, "key_not_found")
    assert (await theirs("GET", "/v1/keys"))[0] == 200


async def test_an_admin_of_one_tenant_makes_no_key_that_sees_all(api: Api) -> None:
    admin = await admin_of(api, "acme")

    assert (await admin("POST", "/v1/keys", scopes=["fleet"]))[0] == 403
    assert (await admin("POST", "/v1/keys", scopes=["admin"], session="s"))[0] == 409
    assert (await admin("POST", "/v1/keys", scopes=["read"], is_prefix=True))[0] == 409
    assert (await admin("POST", "/v1/keys", scopes=["read"], session="", is_prefix=True))[0] == 409
    wrong_bodies: list[dict[str, object]] = [
        {"scopes": []},
        {"scopes": ["all"]},
        {"scopes": ["read"], "ttl": 0},
        {"scopes": ["read"], "ttl": 10**15},
        {"scopes": ["read"] * 100},
        {"scopes": ["read"], "session": "s" * 2049},
        {},
    ]
    for wrong in wrong_bodies:
        assert (await admin("POST", "/v1/keys", **wrong))[0] == 422
    with pytest.raises(KeyRefused, match="36500 days"):
        await api.service.issuer.issue("acme", [Scope.READ], now=0, life=1e18)
    assert (await admin("GET", "/v1/keys"))[0] == 200


async def test_keys_that_have_expired_fill_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overspill_service.archive.key_issuing.MAX_KEYS", 4)
    issuer, now = api.service.issuer, api.service.archive.clock()
    kept = (await issuer.issue("acme", [Scope.READ], now=now, name="kept")).record
    other = (await issuer.issue("globex", [Scope.READ], now=now - 100, life=1)).record
    for number in range(10):
        await issuer.issue("acme", [Scope.READ], now=now - 100 + number, life=1, name=str(number))
    known = await api.service.archive.keyring.keys()
    names = [each.name for each in known if each.tenant == "acme"]

    assert sorted(names) == ["7", "8", "9", "kept"]
    assert {kept.hash, other.hash} <= {each.hash for each in known}
    for _ in range(3):
        await issuer.issue("acme", [Scope.READ], now=now)
    with pytest.raises(KeyRefused, match="4 keys"):
        await issuer.issue("acme", [Scope.READ], now=now)


async def test_the_keys_of_an_erased_tenant_do_not_come_back_with_the_catalog(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--data", str(tmp_path)]
    for words in (["rebuild"], ["keys", "create", "--tenant", "acme"], ["erase", "--tenant", "acme"]):
        assert await asyncio.to_thread(main, [*words, *common]) == 0
    receipt = json.loads(capsys.readouterr().out.splitlines()[-1])
    for file in tmp_path.glob("catalog*"):
        file.unlink()
    for words in (["rebuild"], ["keys", "list"]):
        assert await asyncio.to_thread(main, [*words, *common]) == 0

    assert (receipt["keys"], receipt["captures"]) == (1, 0)
    assert "acme" not in capsys.readouterr().out


@pytest.mark.parametrize("tenant", ["", "Acme", "a b", "../acme", "-acme"])
def test_a_tenant_that_cannot_be_is_no_tenant_to_erase(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tenant: str
) -> None:
    assert main(["erase", f"--tenant={tenant}", "--data", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"overspill-service: --tenant {tenant!r} must be 1 to 63 of")


async def test_the_list_has_instants_as_all_answers_have_them(keys: Keys) -> None:
    await keys.run("create", "--tenant", "a")
    (listed,) = await keys.listed()

    assert (listed["created"][-1], listed["expires"][-1], listed["last_used"]) == ("Z", "Z", None)
    assert moment(listed["created"]) < moment(listed["expires"])
