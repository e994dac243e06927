"""Captures that are backed up, restored, or copied to another store: every byte of them, and nothing else."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from overspill.wire import Header
from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from overspill_service.command_line import main
from overspill_service.commands import folder_backup
from overspill_service.objects.file import FileStore
from overspill_service.objects.urls import open_store

from tests.faults.traffic import Uploads, client_of, content_of, log_lines, noise
from tests.web.conftest import Api, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overspill_service.objects import ObjectStore

    from tests.servers.overspill import ServiceProcess

KIB = 1024
REMOVED = f"/v1/captures/cap_{20 * 'z'}"
"""A live capture that leaves a marker of its removal."""
CONTENTS = (b"", log_lines(300 * KIB), noise(200 * KIB), b"one line\n")


async def command(*arguments: object) -> int:
    """The exit code of a command of the service, in a thread with an event loop of its own."""
    return await asyncio.to_thread(main, [str(each) for each in arguments])


@pytest.fixture(autouse=True)
def leave_logging_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the logging of the tests when a command runs in this process."""
    monkeypatch.setattr("overspill_service.telemetry.logs.configure", lambda *_: None)


@pytest.fixture
async def filled(start_api: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with captures of one segment and of several, one with another expiry, two removed."""
    monkeypatch.setattr("overspill_service.archive.uploading.SEGMENT_SIZE", 64 * KIB)
    data = tmp_path / "data"
    api: Api = await start_api(store="", catalog="sqlite:", data=data)
    for content in CONTENTS:
        await api.put(content)
    await api.send("PATCH", path_of(CONTENTS[0]), json={"ttl": 3 * 24 * 3600})
    await api.put(b"removed\n")
    await api.send("DELETE", path_of(b"removed\n"))
    await api.send("PUT", f"{REMOVED}/live", headers={Header.PRODUCER: "me"})
    assert (await api.send("DELETE", REMOVED)).status == 200
    await api.stop()
    return data


async def require_contents(api: Api) -> None:
    for content in CONTENTS:
        assert await content_of(api, path_of(content)) == content
    listing = await (await api.get("/v1/captures")).json()
    assert (len(listing["captures"]), listing["incomplete"]) == (len(CONTENTS), False)


async def listed(store: ObjectStore) -> dict[str, int]:
    return {
        each.key: each.size
        for prefix in ("v1/", "v1-keys/")
        for each in [each async for each in store.list(prefix)]
    }


# --- backup and restore ---------------------------------------------------------------------------


async def test_a_backup_made_amid_traffic_has_all_that_was_acknowledged_before_it(
    own_service: ServiceProcess, start_api: Callable[..., Any], tmp_path: Path
) -> None:
    async with client_of(own_service) as client:
        uploads = Uploads([client])
        producers = [asyncio.create_task(uploads.go_on(seed)) for seed in range(3)]
        await uploads.until_acknowledged(15)
        before = dict(uploads.acknowledged)
        assert await command("backup", tmp_path / "backup", "--data", own_service.data) == 0
        await asyncio.to_thread(own_service.kill)
        await asyncio.gather(*producers)
    assert await command("restore", tmp_path / "backup", "--data", tmp_path / "restored") == 0
    api: Api = await start_api(store="", catalog="sqlite:", data=tmp_path / "restored")

    for call_id, capture in before.items():
        assert await content_of(api, f"/v1/captures/{capture}") == uploads.sent[call_id]


async def test_a_restored_backup_is_what_was_there_and_stays_when_the_original_goes(
    filled: Path, start_api: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command("backup", tmp_path / "backup", "--data", filled) == 0
    shutil.rmtree(filled)
    assert await command("restore", tmp_path / "backup", "--data", filled) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    api: Api = await start_api(store="", catalog="sqlite:", data=filled)

    assert (told["captures"], told["damaged"]) == (len(CONTENTS), 0)
    await require_contents(api)
    assert (await api.get(path_of(b"removed\n"))).status == 410


async def test_a_backup_without_links_is_a_copy(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/dev/shm").is_dir() or Path("/dev/shm").stat().st_dev == filled.stat().st_dev:
        pytest.skip("this machine has no second file system")
    folder = Path("/dev/shm") / tmp_path.name
    monkeypatch.chdir(tmp_path)
    try:
        assert await command("backup", folder, "--data", filled) == 0

        store = FileStore(folder / "objects")
        original = FileStore(filled / "objects")
        assert await listed(store) == await listed(original)
        for key in await listed(store):
            assert store.path_of(key).read_bytes() == original.path_of(key).read_bytes()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["stop", "kill"])
def read_only_disk(
    request: pytest.FixtureRequest, own_service: ServiceProcess, tmp_path: Path
) -> Iterator[Path]:
    """A disk that became read-only, with two captures of a service that has ended. One killed left a log."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m,mode=700", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a file system")
    try:
        for content in (b"one", b"two"):
            asyncio.run(_put(own_service, content))
        getattr(own_service, request.param)()
        shutil.copytree(own_service.data, disk / "data")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        yield disk / "data"
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


async def _put(service: ServiceProcess, content: bytes) -> None:
    async with client_of(service) as client:
        await client.put(content)


def test_a_disk_that_became_read_only_can_be_backed_up_with_the_catalogs_log(
    read_only_disk: Path, tmp_path: Path
) -> None:
    assert main(["backup", str(tmp_path / "backup"), "--data", str(read_only_disk)]) == 0

    with closing(sqlite3.connect(tmp_path / "backup" / "catalog.sqlite")) as catalog:
        assert catalog.execute("SELECT count(*) FROM captures").fetchone() == (2,)
    assert main(["restore", str(tmp_path / "backup"), "--data", str(tmp_path / "restored")]) == 0


def test_a_running_service_whose_disk_is_read_only_here_is_backed_up_at_one_moment(
    own_service: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_backup, "_copy_files", Mock())  # it would copy what changes meanwhile
    asyncio.run(_put(own_service, b"one"))
    with seen_read_only(own_service.data, tmp_path / "disk") as data:
        assert main(["backup", str(tmp_path / "backup"), "--data", str(data)]) == 0

    with closing(sqlite3.connect(tmp_path / "backup" / "catalog.sqlite")) as catalog:
        assert catalog.execute("SELECT count(*) FROM captures").fetchone() == (1,)


@contextmanager
def seen_read_only(folder: Path, mounted: Path) -> Iterator[Path]:
    mounted.mkdir()
    mount = ["mount", "--bind", str(folder), str(mounted)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a file system")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(mounted)], check=True)
        yield mounted
    finally:
        subprocess.run(["umount", "--lazy", str(mounted)], check=True)


async def test_a_damaged_catalog_is_named_and_what_to_do_without_it(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (filled / "catalog.sqlite").write_bytes(b"\xff" * 100_000)

    assert await command("backup", tmp_path / "backup", "--data", filled) == 2
    assert (
        "cannot be copied: file is not a database; if it is damaged, move it away" in capsys.readouterr().err
    )


async def test_nothing_is_overwritten(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command("backup", tmp_path / "backup", "--data", filled) == 0
    manifest = (tmp_path / "backup" / "backup.json").read_bytes()

    assert await command("backup", tmp_path / "backup", "--data", filled) == 2
    assert await command("restore", tmp_path / "backup", "--data", filled) == 2
    assert capsys.readouterr().err.count("not empty") == 2
    assert (tmp_path / "backup" / "backup.json").read_bytes() == manifest
    assert await command("restore", tmp_path / "nowhere", "--data", tmp_path / "new") == 2
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("damage", ["gone", "shorter", "other bytes"])
async def test_a_restore_says_what_the_backup_has_lost(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    await command("backup", tmp_path / "backup", "--data", filled)
    store = FileStore(tmp_path / "backup" / "objects")
    sizes = await listed(store)
    largest = store.path_of(max(sizes, key=sizes.__getitem__))
    data = largest.read_bytes()
    largest.unlink()  # a hard link: what is written into it would be written into the original
    if damage == "shorter":
        largest.write_bytes(data[:-1])
    elif damage == "other bytes":
        largest.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])

    assert await command("restore", tmp_path / "backup", "--data", tmp_path / "new") == 1
    out, err = capsys.readouterr()
    assert ("the backup lacks 1 objects" in err) == (damage != "other bytes")
    assert ('"damaged": 1' in out) == (damage == "other bytes")


async def test_only_embedded_back_ends_are_backed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command("backup", tmp_path / "b", "--catalog", "redis://127.0.0.1:1") == 2
    assert "service/deploy/README.md" in capsys.readouterr().err


# --- copy -----------------------------------------------------------------------------------------


async def test_a_store_moves_to_s3_to_s3_and_back_and_is_the_same(
    filled: Path,
    s3_url: str,
    start_api: Callable[..., Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    second = s3_url.replace("/captures?", "/second?")
    places = [f"file://{filled}/objects", s3_url, second, f"file://{tmp_path}/back"]
    for source, target in itertools.pairwise(places):
        assert await command("copy", "--store", source, "--to", target) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    api: Api = await start_api(store=places[-1], catalog="sqlite:", data=tmp_path / "fresh")

    assert (last["present"], last["extra"]) == (0, 0)
    assert last["size"] == sum((await listed(FileStore(filled / "objects"))).values())
    await require_contents(api)


async def test_a_copy_that_was_cut_short_goes_on(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.commands.object_copy.PAGE", 2)
    await command("copy", "--data", filled, "--to", f"file://{tmp_path}/target")
    whole = json.loads(capsys.readouterr().out)
    target = FileStore(tmp_path / "target")
    (first, *_) = await listed(target)
    await target.delete([first])
    assert await command("copy", "--data", filled, "--to", f"file://{tmp_path}/target") == 0

    told = json.loads(capsys.readouterr().out)
    assert (told["copied"], told["present"]) == (1, whole["copied"] - 1)


async def test_a_copy_finds_other_bytes_and_what_was_removed_since(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = f"file://{tmp_path}/target"
    await command("copy", "--data", filled, "--to", to)
    source, target = FileStore(filled / "objects"), FileStore(tmp_path / "target")
    (first, second, *_) = await listed(target)
    await source.delete([first])
    assert await command("copy", "--data", filled, "--to", to) == 1
    assert "--delete" in capsys.readouterr().err
    assert await command("copy", "--data", filled, "--to", to, "--delete") == 0
    assert await listed(target) == await listed(source)

    file = target.path_of(second)
    file.write_bytes(file.read_bytes()[::-1])
    assert await command("copy", "--data", filled, "--to", to) == 1
    assert f"does not hold the bytes of the source under {second}" in capsys.readouterr().err


async def test_a_copy_has_the_keys_that_there_are_and_no_revoked_one(
    filled: Path, tmp_path: Path, redis_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    to, other = f"file://{tmp_path}/target", ("--data", tmp_path / "other", "--catalog", redis_url)
    for name in ("kept", "revoked"):
        await command(
            "keys", "create", "--data", filled, "--tenant", "acme", "--scopes", "read", "--name", name
        )
    assert await command("copy", "--data", filled, "--to", to) == 0
    kept, revoked = await listed_keys("--data", filled, capsys=capsys)
    await command("keys", "revoke", "--data", filled, revoked["id"])
    assert await command("copy", "--data", filled, "--to", to, "--delete") == 0

    assert await listed_keys(*other, "--store", to, capsys=capsys) == [kept]
    with pytest.raises(SystemExit):
        await command("copy", "--data", filled, "--to-catalog", redis_url)


async def listed_keys(*words: object, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    await command("keys", "list", *words)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


# --- foreign names --------------------------------------------------------------------------------


async def test_a_rebuild_from_a_store_that_another_program_copied_fails_and_changes_nothing(
    filled: Path, s3_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket = open_store(s3_url, data_dir=tmp_path)
    for path in (filled / "objects" / "v1").rglob("*"):
        if path.is_file():
            name = str(path.relative_to(filled / "objects")).replace("~", "").replace(",", "")
            await bucket.put(name, [path.read_bytes()])
    await bucket.close()
    folder = tmp_path / "folder"
    for key, size in (await listed(FileStore(filled / "objects"))).items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(bytes(size))

    for url in (s3_url, f"file://{folder}"):
        assert await command("rebuild", "--data", filled, "--store", url) == 1
        assert "names that are not the service's" in capsys.readouterr().err
    catalog = SqliteCatalog(filled / "catalog.sqlite")
    assert (await catalog.totals("default")).captures == len(CONTENTS)
    await catalog.close()
    assert await command("rebuild", "--data", filled) == 0


@pytest.mark.parametrize("way", ["restore", "copy"])
async def test_masked_captures_stay_masked_and_know_what_was_sent(
    start_api: Callable[..., Any], tmp_path: Path, way: str
) -> None:
    secret = b"the token is ghp_" + b"aB3x" * 9 + b"\n"
    data, other = tmp_path / "data", tmp_path / "other"
    api: Api = await start_api(store="", catalog="sqlite:", data=data, redaction="tag")
    await api.put(secret)
    masked = await content_of(api, path_of(secret))
    await api.stop()
    if way == "restore":
        assert await command("backup", tmp_path / "backup", "--data", data) == 0
        assert await command("restore", tmp_path / "backup", "--data", other) == 0
    else:
        assert await command("copy", "--data", data, "--to", f"file://{other}/objects") == 0
        assert await command("rebuild", "--data", other) == 0
    copied: Api = await start_api(store="", catalog="sqlite:", data=other, redaction="off")

    assert await content_of(copied, path_of(secret)) == masked == b"the token is [REDACTED github-token]\n"
    statuses = [(await copied.send("PUT", path_of(secret), data=each)).status for each in (secret, b"other")]
    assert statuses == [200, 409]
