"""Tenants and keys that could not work are refused when they are named, not when they are used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from overspill_service.access import directory_of
from overspill_service.command_line import main
from overspill_service.settings.errors import SettingError
from overspill_service.settings.settings import Settings
from overspill_service.tenants.directory import MAX_FILE_SIZE, read_tenants


@pytest.mark.parametrize("limit", ["max_ttl = 100", "min_ttl = 90_000", "default_ttl = 8_000_000"])
def test_a_tenant_whose_default_ttl_is_out_of_its_bounds_is_refused_by_name(
    tmp_path: Path, limit: str
) -> None:
    file = tmp_path / "tenants.toml"
    file.write_text(f'[[tenants]]\nname = "acme"\n{limit}\n')

    with pytest.raises(SettingError, match="the tenant acme: default_ttl"):
        directory_of(Settings(tenants=file))


def test_a_name_of_a_tenant_ends_in_no_line_end(tmp_path: Path) -> None:
    file = tmp_path / "tenants.toml"
    file.write_text('[[tenants]]\nname = "acme\\n"\n')

    with pytest.raises(SettingError, match="name"):
        directory_of(Settings(tenants=file))


def test_a_key_of_the_tenants_file_cannot_expire_at_no_time(tmp_path: Path) -> None:
    file = tmp_path / "tenants.toml"
    keys = f'keys = [{{ hash = "{"0" * 64}", scopes = ["read"], expires = nan }}]'
    file.write_text(f'[[tenants]]\nname = "acme"\n{keys}\n')

    with pytest.raises(SettingError, match="expires"):
        directory_of(Settings(tenants=file))


@pytest.mark.parametrize("days", ["0", "-1", "nan", "inf"])
def test_a_key_that_could_never_or_always_be_used_is_not_created(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, days: str
) -> None:
    monkeypatch.setattr("overspill_service.telemetry.logs.configure", lambda *_: None)

    assert (
        main(["keys", "create", "--tenant", "acme", "--data", str(tmp_path), f"--expires-days={days}"]) == 2
    )
    assert "--expires-days" in capsys.readouterr().err


def test_a_tenants_file_without_keys_is_named_where_nobody_could_come_in(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("overspill_service.telemetry.logs.configure", lambda *_: None)
    file = tmp_path / "tenants.toml"
    file.write_text('[[tenants]]\nname = "acme"\n')

    assert main(["serve", "--listen", "127.0.0.1:0", "--tenants", str(file), "--data", str(tmp_path)]) == 2
    assert f"{file} has no keys" in capsys.readouterr().err


@pytest.mark.parametrize(
    "key",
    [
        'scopes = ["read"], is_prefix = true',
        'scopes = ["read"], is_prefix = true, session = ""',
        'scopes = ["admin"], session = "s"',
    ],
)
def test_a_key_of_the_tenants_file_that_is_bound_to_nothing_is_refused(tmp_path: Path, key: str) -> None:
    file = tmp_path / "tenants.toml"
    file.write_text(f'[[tenants]]\nname = "acme"\nkeys = [{{ hash = "{"0" * 64}", {key} }}]\n')

    with pytest.raises(SettingError, match="the tenant acme: a key with"):
        directory_of(Settings(tenants=file))


def test_an_empty_file_is_taken_for_one_that_is_not_written_yet(tmp_path: Path) -> None:
    file = tmp_path / "tenants.toml"
    file.write_text("")
    with pytest.raises(ValueError, match="empty"):
        read_tenants(file)
    file.write_text("# nobody\n")

    assert read_tenants(file) == []


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "huge"])
def test_what_is_no_file_of_tenants_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "tenants.toml"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/zero")
        case _:
            path.write_bytes(b"#" * (MAX_FILE_SIZE + 1))

    with pytest.raises(SettingError, match=str(path)):
        directory_of(Settings(tenants=path))


@pytest.mark.parametrize("name", ["max_ttl", "default_ttl"])
def test_no_retention_reaches_as_far_as_a_hold(tmp_path: Path, name: str) -> None:
    file = tmp_path / "tenants.toml"
    limits = {"max_ttl": 3_153_600_000} | {name: 3_153_600_001}
    file.write_text("[[tenants]]\nname = 'acme'\n" + "".join(f"{each} = {limits[each]}\n" for each in limits))

    with pytest.raises(SettingError, match="tenants"):
        directory_of(Settings(tenants=file))
