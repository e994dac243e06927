"""Whether requests need a key is chosen and remembered, whatever is lost; keys outlive the catalog."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from overspill import Client, SyncClient, wire
from overspill.errors import Unauthorized
from overspill.wire import Scope
from overspill_service.archive.key_issuing import DAY, KeyIssuer
from overspill_service.archive.keyring import Keyring
from overspill_service.archive.recovery.rebuild import rebuild
from overspill_service.catalog.key_records import AccessMode, KeyRecord
from overspill_service.command_line import main
from overspill_service.errors import CatalogUnavailable, KeyRefused
from overspill_service.settings.errors import SettingError
from overspill_service.store_format import object_keys
from overspill_service.tenants.keys import hash_key, is_key, new_key

from tests.faults.traffic import until
from tests.servers.overspill import ForkedService, running, service_command

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.servers.redis import RedisServer
    from tests.web.conftest import Api


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ask again at once, and leave the key file of the person who runs the tests alone."""
    monkeypatch.setattr("overspill_service.web.open_mode.MODE_SECONDS", 0.0)
    monkeypatch.setattr("overspill_service.web.authentication.KEY_CACHE_SECONDS", 0.0)
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 0.05)
    monkeypatch.setenv("OVERSPILL_KEY_FILE", str(tmp_path / "settings" / "local-key"))


async def status(api: Api, key: str = "") -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return (await api.get("/v1/usage", headers=headers)).status


async def issue(api: Api, **facts: Any) -> str:
    issued = await api.service.issuer.issue("acme", ["read"], now=api.service.archive.clock(), **facts)  # type: ignore[list-item]
    return issued.key


@pytest.fixture
def on_redis(own_redis: RedisServer, tmp_path: Path) -> dict[str, Any]:
    return {"store": f"file://{tmp_path}/objects", "catalog": f"{own_redis.url}?deadline=20"}


async def test_the_last_key_gone_opens_nothing_for_old_and_new_processes(
    start_api: Callable[..., Any], on_redis: dict[str, Any]
) -> None:
    old: Api = await start_api(**on_redis)
    key = await issue(old)
    await old.service.issuer.revoke(hash_key(key))
    new: Api = await start_api(**on_redis)
    plain: Api = await start_api(**on_redis, anonymous=None)

    assert [await status(api) for api in (old, new, plain)] == [401, 401, 401]
    assert [await status(api, key) for api in (old, new, plain)] == [401, 401, 401]


async def test_the_loss_of_redis_opens_nothing_and_loses_no_key(
    start_api: Callable[..., Any], on_redis: dict[str, Any], own_redis: RedisServer
) -> None:
    old: Api = await start_api(**on_redis)
    key = await issue(old)
    own_redis.command("FLUSHALL")
    new: Api = await start_api(**on_redis)

    assert [await status(api) for api in (old, new)] == [401, 401]
    assert await status(new, key) == 200
    own_redis.command("FLUSHALL")
    assert [await status(api) for api in (old, new)] == [401, 401]
    assert {await status(api, key) for api in (old, new)} <= {200, 503}

    async def is_back() -> bool:
        return [await status(api, key) for api in (old, new)] == [200, 200]

    await until(is_back)


async def test_a_rebuilt_catalog_has_the_keys_too(
    start_api: Callable[..., Any],
    on_redis: dict[str, Any],
    own_redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whenever it was lost: a complete catalog without its keys would refuse them for good."""
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)
    api: Api = await start_api(**on_redis)
    key = await issue(api)
    await until(api.service.archive.catalog.is_complete)
    own_redis.command("FLUSHALL")
    await rebuild(api.service.archive)

    assert await status(api, key) == 200


async def test_open_access_survives_the_loss_of_redis_too(
    start_api: Callable[..., Any], on_redis: dict[str, Any], own_redis: RedisServer
) -> None:
    chosen: Api = await start_api(**on_redis)
    own_redis.command("FLUSHALL")
    other: Api = await start_api(**on_redis, anonymous=None)

    assert [await status(api) for api in (chosen, other)] == [200, 200]
    await start_api(**on_redis, anonymous=False)
    assert [await status(api) for api in (chosen, other)] == [401, 401]


async def test_an_older_catalog_brings_no_revoked_key_back(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    settings = {"store": f"file://{tmp_path}/objects", "catalog": f"sqlite://{tmp_path}/catalog.sqlite"}
    first: Api = await start_api(**settings)
    kept, revoked = await issue(first), await issue(first)
    await first.stop()
    older = {file: file.read_bytes() for file in tmp_path.glob("catalog.sqlite*")}
    second: Api = await start_api(**settings)
    await second.service.issuer.revoke(hash_key(revoked))
    late = await issue(second)
    await second.stop()
    for file in tmp_path.glob("catalog.sqlite*"):
        file.unlink()
    for file, content in older.items():
        file.write_bytes(content)
    third: Api = await start_api(**settings)

    assert [await status(third, key) for key in (kept, revoked, late, "")] == [200, 401, 200, 401]


async def test_redis_that_went_back_brings_no_revoked_key_back_before_its_rebuild_either(
    start_api: Callable[..., Any],
    on_redis: dict[str, Any],
    own_redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)
    api: Api = await start_api(**on_redis)
    await until(api.service.archive.catalog.is_complete)
    kept, shorter, revoked = [await issue(api) for _ in range(3)]
    own_redis.command("SAVE")
    ring = api.service.archive.keyring
    await ring.revoke(hash_key(revoked))
    for record in [each for each in await ring.keys() if each.hash == hash_key(shorter)]:
        await ring.change(msgspec.structs.replace(record, expires=1.0))
    await asyncio.to_thread(own_redis.restart)

    assert not await api.service.archive.catalog.is_complete()
    assert [await status(api, key) for key in (kept, shorter, revoked)] == [200, 503, 503]


async def test_a_key_that_is_rotated_while_the_catalog_gets_its_keys_back_ends_when_it_should(
    start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    api: Api = await start_api()
    key = await issue(api)
    ring, catalog = api.service.archive.keyring, api.service.archive.catalog
    await catalog.revoke_key(hash_key(key))
    add = catalog.add_key

    async def rotated_first(record: KeyRecord) -> None:
        monkeypatch.setattr(catalog, "add_key", add)
        await ring.change(msgspec.structs.replace(record, expires=1.0))
        await add(record)

    monkeypatch.setattr(catalog, "add_key", rotated_first)
    await ring.restore()

    assert [each.expires for each in await ring.keys()] == [1.0]


async def test_a_session_is_not_told_that_it_has_ended_while_nobody_knows(
    start_api: Callable[..., Any],
    on_redis: dict[str, Any],
    own_redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)
    api: Api = await start_api(**on_redis)
    signed_in = await api.send("POST", wire.Path.PAGE_SESSION, json={"key": await issue(api)})
    own_redis.command("FLUSHALL")
    headers = {"Cookie": f"overspill_page={signed_in.cookies['overspill_page'].value}"}

    assert (await api.get("/v1/usage", headers=headers)).status == 503


async def test_only_the_choice_opens_what_has_had_keys(
    start_api: Callable[..., Any], on_redis: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    api: Api = await start_api(**on_redis)
    key = await issue(api)
    words = ["--store", on_redis["store"], "--catalog", on_redis["catalog"]]

    def access(*mode: str) -> dict[str, Any]:
        done = service_command("access", *mode, *words)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    assert access() == {"access": "closed", "until_key": False}
    assert access("open")["access"] == "open"
    assert [await status(api), await status(api, key), await status(api, new_key())] == [200, 200, 401]
    await issue(api)
    assert await status(api) == 200
    assert access("closed")["access"] == "closed"
    assert await status(api) == 401


async def test_keys_of_a_tenants_file_end_open_access_for_good(
    start_api: Callable[..., Any], on_redis: dict[str, Any], tmp_path: Path
) -> None:
    api: Api = await start_api(**on_redis)
    file = tmp_path / "tenants.toml"
    file.write_text(f'[[tenants]]\nname = "a"\nkeys = [{{hash = "{hash_key("x")}", scopes = ["read"]}}]\n')
    assert await status(api) == 200
    await start_api(**on_redis, tenants=file)
    without: Api = await start_api(**on_redis)

    assert [await status(each) for each in (api, without)] == [401, 401]


async def test_a_first_key_that_is_made_while_a_service_chooses_to_need_none_closes_it(
    start_api: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other: Api = await start_api(store=f"file://{tmp_path}/objects", anonymous=False)
    for name in [each.key async for each in other.service.archive.store.list(object_keys.ACCESS)]:
        await other.service.archive.store.delete([name])
    keys = Keyring.keys

    async def first_key(ring: Keyring) -> list[KeyRecord]:
        monkeypatch.setattr(Keyring, "keys", keys)
        none = await keys(ring)
        await issue(other)
        return none

    monkeypatch.setattr(Keyring, "keys", first_key)
    api: Api = await start_api(store=f"file://{tmp_path}/objects")

    assert await api.service.archive.keyring.mode() is AccessMode.CLOSED
    assert await status(api) == 401


async def test_a_service_that_chooses_to_need_no_key_while_the_first_one_is_stored_is_closed(
    start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    api: Api = await start_api()
    ring, store = api.service.archive.keyring, api.service.archive.store
    put = store.put

    async def chosen_first(name: str, pieces: Any) -> Any:
        if not name.startswith(object_keys.ACCESS):
            monkeypatch.setattr(store, "put", put)
            await ring.choose(AccessMode.UNTIL_KEY)
        return await put(name, pieces)

    monkeypatch.setattr(store, "put", chosen_first)
    await issue(api)

    assert await ring.mode() is AccessMode.CLOSED
    assert await status(api) == 401


async def test_beyond_loopback_open_access_must_be_said_again(
    start_api: Callable[..., Any], on_redis: dict[str, Any]
) -> None:
    await start_api(**on_redis)

    with pytest.raises(SettingError, match="opened to all"):
        await start_api(**on_redis, anonymous=None, listen="0.0.0.0:0")
    assert await status(await start_api(**on_redis, listen="0.0.0.0:0")) == 200


async def test_of_a_rotated_key_two_are_alive_for_a_while_and_never_three(
    start_api: Callable[..., Any],
) -> None:
    api: Api = await start_api()
    issuer: KeyIssuer = api.service.issuer
    now = api.service.archive.clock()
    old = await issuer.issue("acme", [], now=now, session="s-", is_prefix=True, name="ci")
    new = await issuer.rotate(old.record, now=now, life=DAY)
    (old_record,) = await issuer.named(old.record.id)

    assert old_record.expires == now + 7 * DAY
    assert (new.record.session, new.record.is_prefix, new.record.name) == ("s-", True, "ci")
    with pytest.raises(KeyRefused, match="two at once"):
        await issuer.rotate(old_record, now=now, life=DAY)
    await issuer.revoke(new.record.id)
    await issuer.rotate(old_record, now=now, life=DAY)


@pytest.mark.parametrize("step", ["add", "change"])
@pytest.mark.parametrize(
    "ended", [CatalogUnavailable("down"), asyncio.CancelledError()], ids=["fails", "given up"]
)
async def test_a_rotation_that_nobody_is_told_of_leaves_no_key(
    start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, step: str, ended: BaseException
) -> None:
    api: Api = await start_api()
    issuer, keyring, now = api.service.issuer, api.service.archive.keyring, api.service.archive.clock()
    old = await issuer.issue("acme", [Scope.READ], now=now)
    method = getattr(keyring, step)

    async def end_after(record: KeyRecord) -> None:
        await method(record)
        raise ended

    with monkeypatch.context() as patch:
        patch.setattr(keyring, step, end_after)
        with pytest.raises(type(ended)):
            await issuer.rotate(old.record, now=now, life=DAY)

    assert [each.id for each in await keyring.keys()] == [old.record.id]
    assert (await issuer.rotate(old.record, now=now, life=DAY)).record.replaces == old.record.id


async def test_of_rotations_at_once_one_or_none_makes_a_successor(start_api: Callable[..., Any]) -> None:
    api: Api = await start_api()
    issuer: KeyIssuer = api.service.issuer
    now = api.service.archive.clock()
    old = await issuer.issue("acme", [Scope.READ], now=now)
    rotations = [issuer.rotate(old.record, now=now, life=DAY) for _ in range(8)]
    ended = await asyncio.gather(*rotations, return_exceptions=True)

    made = [each.record.id for each in ended if not isinstance(each, BaseException)]
    assert all(isinstance(each, KeyRefused) for each in ended if isinstance(each, BaseException))
    assert len(made) <= 1
    assert [each.id for each in await api.service.archive.keyring.keys() if each.replaces] == made


async def test_a_rotated_key_ends_whichever_secret_it_was_hashed_with(start_api: Callable[..., Any]) -> None:
    """The record under the former secret would bring it back to life."""
    api: Api = await start_api(key_secret="latter", previous_key_secret="former")
    ring, now = api.service.archive.keyring, api.service.archive.clock()
    old = await KeyIssuer(ring, "former").issue("acme", [Scope.READ], now=now)
    assert await status(api, old.key) == 200
    records = await api.service.issuer.named(old.record.id)
    await api.service.issuer.rotate(records[-1], now=now - DAY, life=DAY, overlap=1)
    api.service.authenticator._cache.clear()

    assert len(records) == 2
    assert await status(api, old.key) == 401


@pytest.mark.parametrize("step", ["add", "has"])
async def test_a_key_that_is_rotated_while_it_is_hashed_anew_ends_all_the_same(
    start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    api: Api = await start_api(key_secret="latter", previous_key_secret="former")
    ring, now = api.service.archive.keyring, api.service.archive.clock()
    old = await KeyIssuer(ring, "former").issue("acme", [Scope.READ], now=now)
    original = getattr(ring, step)

    async def rotated_first(argument: Any) -> Any:
        monkeypatch.setattr(ring, step, original)
        await api.service.issuer.rotate(old.record, now=now, life=DAY, overlap=1)
        return await original(argument)

    monkeypatch.setattr(ring, step, rotated_first)
    await api.service.issuer.rehash(old.key, old.record)

    assert [each.expires for each in await api.service.issuer.named(old.record.id)] == [now + 1] * 2


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Something changes while an answer is on its way, which takes longer than answers are trusted."""

    def answered(asked: object, name: str, change: Callable[[], Awaitable[Any]]) -> None:
        original = getattr(asked, name)

        async def slow(*args: Any) -> Any:
            monkeypatch.setattr(asked, name, original)
            answer = await original(*args)
            await change()
            await asyncio.sleep(0.06)
            return answer

        monkeypatch.setattr(asked, name, slow)

    for each in ("open_mode.MODE", "authentication.KEY_CACHE", "page_sessions.TRUST"):
        monkeypatch.setattr(f"overspill_service.web.{each}_SECONDS", 0.05)
    return answered


async def test_a_key_that_is_revoked_while_the_catalog_answers_is_not_trusted_longer(
    start_api: Callable[..., Any], slowly: Callable[..., None]
) -> None:
    api: Api = await start_api(anonymous=False)
    key = await issue(api)
    slowly(api.service.archive.catalog, "find_key", lambda: api.service.issuer.revoke(hash_key(key)))

    assert [await status(api, key), await status(api, key)] == [200, 401]


async def test_access_that_is_closed_while_the_store_answers_is_not_open_longer(
    start_api: Callable[..., Any], slowly: Callable[..., None]
) -> None:
    api: Api = await start_api()
    slowly(api.service.archive.catalog, "access_mode", lambda: issue(api))

    assert [await status(api), await status(api)] == [200, 401]


async def test_a_session_that_is_signed_out_while_the_catalog_answers_is_not_trusted_longer(
    start_api: Callable[..., Any], slowly: Callable[..., None]
) -> None:
    api: Api = await start_api(anonymous=False)
    signed_in = await api.send("POST", wire.Path.PAGE_SESSION, json={"key": await issue(api)})
    sealed = signed_in.cookies["overspill_page"].value
    slowly(api.service.archive.catalog, "is_leased", lambda: api.service.page_sessions.end(sealed))
    headers = {"Cookie": f"overspill_page={sealed}"}
    statuses = [(await api.get("/v1/usage", headers=headers)).status for _ in range(2)]

    assert statuses == [200, 401]


async def test_foreign_names_beside_the_keys_change_nothing(start_api: Callable[..., Any]) -> None:
    api: Api = await start_api()
    key = (await api.service.issuer.issue("acme", [Scope.READ], now=api.service.archive.clock())).key
    store = api.service.archive.store
    for name in ("access/zzz", "access/9999999999999999-all", "access/.nfs0", "README", f"{'0' * 64}/tmp"):
        await store.put(object_keys.KEYS + name, [b"x"])
    await api.service.archive.keyring.restore()
    await api.service.issuer.issue("acme", [Scope.READ], now=api.service.archive.clock())

    assert await api.service.archive.keyring.mode() is AccessMode.CLOSED
    assert await status(api, key) == 200


def test_a_key_ends_by_itself_unless_its_maker_says_never(tmp_path: Path) -> None:
    def made(*words: str) -> dict[str, Any]:
        key = service_command("keys", "create", "--tenant", "a", "--data", tmp_path, *words).stdout.strip()
        listed = service_command("keys", "list", "--data", tmp_path).stdout.splitlines()
        found: dict[str, Any] = next(
            each for each in map(json.loads, listed) if each["hash"] == hash_key(key)
        )
        return found

    usual, never = made(), made("--expires-days", "never")
    life = datetime.fromisoformat(usual["expires"]) - datetime.fromisoformat(usual["created"])
    assert life.total_seconds() == pytest.approx(365 * DAY)
    assert never["expires"] is None
    assert made("--session", "s1")["session"] == "s1"
    assert made("--session-prefix", "user-")["is_prefix"] is True


# --- the key of this machine's user ---------------------------------------------------------------


async def test_clients_of_the_same_user_find_the_key_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OVERSPILL_KEY_FILE")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "mine"))
    service = ForkedService(tmp_path / "service", anonymous=None)
    del service._settings["anonymous"]
    service.variables = {}
    with running(service):
        file = tmp_path / "mine" / "overspill" / "local-key"

        assert is_key(file.read_text().strip())
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        with SyncClient(service.url) as client:
            entry = client.put("mine\n")
            assert client.get(entry.id).id == entry.id
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another user's"))
        async with Client(service.url, retries=0) as client:
            with pytest.raises(Unauthorized):
                await client.get(entry.id)


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604])
async def test_a_key_file_that_others_may_use_is_refused(
    start_api: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    api: Api = await start_api()
    file = tmp_path / "key"
    file.write_text(new_key("ovl_"))
    file.chmod(mode)
    monkeypatch.setenv("OVERSPILL_KEY_FILE", str(file))

    async with Client(f"http://127.0.0.1:{api.port}", retries=0) as client:
        with pytest.raises(Unauthorized, match=f"{mode:04o}.*remove it"):
            await client.usage()


async def test_a_service_that_is_made_later_is_found_too(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    api: Api = await start_api(anonymous=None)
    file = Path(os.environ["OVERSPILL_KEY_FILE"])
    key = file.read_text()
    file.unlink()
    async with Client(f"http://127.0.0.1:{api.port}", retries=0) as client:
        with pytest.raises(Unauthorized):
            await client.usage()
        file.write_text(key)
        file.chmod(0o600)
        assert (await client.usage()).tenant == "default"


async def test_an_open_service_takes_no_offence_at_another_users_key_file(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    api: Api = await start_api()

    assert await status(api, new_key("ovl_")) == 200
    assert await status(api, new_key()) == 200  # no key was ever made, so none can be meant
    await issue(api)
    await api.service.archive.keyring.choose(AccessMode.OPEN)
    assert [await status(api, key) for key in ("", new_key("ovl_"), new_key())] == [200, 200, 401]


async def test_beyond_loopback_there_is_no_key_of_the_machines_user(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    near: Api = await start_api(anonymous=None)
    key = Path(os.environ["OVERSPILL_KEY_FILE"]).read_text().strip()
    far: Api = await start_api(listen="0.0.0.0:0", store=f"file://{tmp_path}/objects", anonymous=True)
    await far.service.archive.keyring.choose(AccessMode.CLOSED)

    assert await status(near, key) == 200
    assert await status(far, key) == 401


async def test_keys_are_listed_and_revoked_while_the_catalog_is_lost(
    start_api: Callable[..., Any],
    on_redis: dict[str, Any],
    own_redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Told that there is no such key, nobody would revoke it again, and the rebuild brings it back."""
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)
    file, admin = tmp_path / "tenants.toml", new_key()
    key = f'hash = "{hash_key(admin)}"\nscopes = ["admin"]'
    file.write_text(f'[[tenants]]\nname = "acme"\n[[tenants.keys]]\n{key}\n')
    api: Api = await start_api(**on_redis, tenants=file)
    leaked = await issue(api)
    headers = {"Authorization": f"Bearer {admin}"}
    own_redis.command("FLUSHALL")
    listed = await (await api.get(wire.Path.KEYS, headers=headers)).json()
    own_redis.command("FLUSHALL")
    path = wire.Path.KEY.replace("{id}", hash_key(leaked)[:12])
    revoked = await api.send("DELETE", path, headers=headers)
    await rebuild(api.service.archive)

    assert [each["id"] for each in listed["keys"]] == [hash_key(leaked)[:12]]
    assert (revoked.status, await status(api, leaked)) == (200, 401)


def test_a_command_revokes_a_key_that_only_the_objects_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The catalog is an older copy, and no service runs that has noticed it."""
    common = ["--data", str(tmp_path)]
    assert main(["rebuild", *common]) == 0
    older = {file: file.read_bytes() for file in tmp_path.glob("catalog*")}
    assert main(["keys", "create", "--tenant", "acme", *common]) == 0
    key = capsys.readouterr().out.split()[-1]
    for file, content in older.items():
        file.write_bytes(content)

    assert main(["keys", "revoke", hash_key(key), *common]) == 0
    assert main(["keys", "list", *common]) == 0
    assert not capsys.readouterr().out
