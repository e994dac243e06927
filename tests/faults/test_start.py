"""A service that cannot start says why, by name, and with which exit code."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from overspill_service.__main__ import main

from tests.servers.overspill import clean_environment
from tests.servers.redis import free_port

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def keep_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `main` sets up for its own process would outlive the test here."""
    monkeypatch.setattr("overspill_service.logs.configure", lambda *_: None)


def serve(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "overspill_service", "serve", *flags]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        env=clean_environment(),
    )


def test_a_wrong_flag_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--max-captures", "many"]) == 2
    assert "--max-captures=many" in capsys.readouterr().err


def test_a_wrong_variable_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERSPILL_MAX_UPLOADS", "0")

    assert main(["serve"]) == 2
    assert "OVERSPILL_MAX_UPLOADS=0" in capsys.readouterr().err


def test_a_variable_that_is_no_setting_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERSPILL_STORAGE", "memory:")

    assert main(["serve"]) == 2
    assert "OVERSPILL_STORAGE is no setting" in capsys.readouterr().err


def test_a_wrong_line_of_the_settings_file_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "overspill.toml"
    file.write_text("grace = -1\n")

    assert main(["serve", "--config", str(file)]) == 2
    assert f"grace in {file}=-1" in capsys.readouterr().err


@pytest.mark.parametrize("setting", ["store", "catalog"])
def test_a_wrong_url_is_refused_by_the_name_of_its_setting(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, setting: str
) -> None:
    assert main(["serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path), f"--{setting}", "ftp://x"]) == 2
    assert f"overspill-service: {setting}: " in capsys.readouterr().err


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = serve("--listen", address, "--data", str(tmp_path))

    assert ended.returncode == 1
    assert address in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_catalog_that_is_not_there_ends_the_start(tmp_path: Path, workers: str) -> None:
    redis = f"redis://127.0.0.1:{free_port()}"
    ended = serve(
        "--listen", "127.0.0.1:0", "--data", str(tmp_path), "--catalog", redis, "--workers", workers
    )

    assert ended.returncode == 1
    assert "Redis is not reachable" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
