"""The service's files on this machine are private to its user."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from overspill_service.back_ends import check_folders
from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from overspill_service.command_line import main
from overspill_service.objects.file import FileStore
from overspill_service.settings.errors import SettingError
from overspill_service.settings.settings import Settings

STRANGER = 54321


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(each.stat().st_mode) & 0o077 for each in [folder, *folder.rglob("*")]}


async def test_whatever_the_umask_others_can_read_nothing(tmp_path: Path, umask: int) -> None:
    top = tmp_path / "new" / "deep" / "data"
    store, catalog = FileStore(top / "objects"), SqliteCatalog(top / "catalog.sqlite")
    await store.put("v1/a/b", [b"x"])
    await catalog.ping()

    assert modes(tmp_path / "new") == {0}
    await store.close()
    await catalog.close()


async def test_a_catalog_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    file = tmp_path / "catalog.sqlite"
    await SqliteCatalog(file).close()
    file.chmod(0o644)
    await SqliteCatalog(file).close()

    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give folders away")
@pytest.mark.parametrize("level", [0, 1, 2])
def test_no_folder_of_another_user_is_used_or_lies_above(tmp_path: Path, level: int) -> None:
    data = tmp_path / "a" / "b" / "data"
    (data / "objects").mkdir(parents=True)
    os.chown([data / "objects", data, tmp_path / "a"][level], STRANGER, STRANGER)

    with pytest.raises(SettingError, match="another user"):
        check_folders(Settings(data=data))


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give links away")
def test_no_link_of_another_user_is_followed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "data")
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)

    with pytest.raises(SettingError, match=f"{link} belongs to another user"):
        check_folders(Settings(data=link))
    check_folders(Settings(data=tmp_path / "data"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give folders away")
def test_no_command_writes_what_the_service_could_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("overspill_service.telemetry.logs.configure", lambda *_: None)
    words = ["keys", "create", "--tenant", "acme", "--data", str(tmp_path)]
    (tmp_path / "objects").mkdir()
    os.chown(tmp_path / "objects", STRANGER, STRANGER)

    assert main(words) == 2
    assert f"sudo -u '#{STRANGER}'" in capsys.readouterr().err
    assert list((tmp_path / "objects").iterdir()) == []
    os.chown(tmp_path / "objects", os.geteuid(), os.getegid())
    assert main(words) == 0
