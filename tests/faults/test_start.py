"""A service that cannot start says why, by name, and with which exit code."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import overspill
import pytest
from overspill_service.command_line import main

from tests.servers.overspill import ForkedService, clean_environment, running, service_command
from tests.servers.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.overspill import ServiceProcess


class StartIn(Protocol):
    def __call__(self, variables: dict[str, str], **settings: object) -> ServiceProcess: ...


@pytest.fixture(autouse=True)
def keep_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `main` sets up for its own process would outlive the test here."""
    monkeypatch.setattr("overspill_service.telemetry.logs.configure", lambda *_: None)


KUBERNETES: Final = {
    "OVERSPILL_PORT": "tcp://10.0.0.11:8750",
    "OVERSPILL_SERVICE_HOST": "10.0.0.11",
    "OVERSPILL_SERVICE_PORT": "8750",
    "OVERSPILL_SERVICE_PORT_HTTP": "8750",
    "OVERSPILL_PORT_8750_TCP": "tcp://10.0.0.11:8750",
    "OVERSPILL_PORT_8750_TCP_PROTO": "tcp",
    "OVERSPILL_PORT_8750_TCP_PORT": "8750",
    "OVERSPILL_PORT_8750_TCP_ADDR": "10.0.0.11",
    "OVERSPILL_SERVICE_SERVICE_HOST": "10.0.0.12",
    "OVERSPILL_REDIS_MASTER_PORT": "tcp://10.0.0.13:6379",
}
"""What a pod sees of Services named overspill, overspill-service and overspill-redis-master."""


def of_the_client() -> dict[str, str]:
    """All variables that the client's modules mention."""
    modules = Path(overspill.__file__).parent.rglob("*.py")
    texts = (path.read_text(encoding="utf-8") for path in modules)
    return {name: "1" for text in texts for name in re.findall(r"\bOVERSPILL_[A-Z_]+\b", text)}


@pytest.fixture
def service_in(tmp_path: Path) -> Iterator[StartIn]:
    """Starts a service with variables in its environment."""
    with ExitStack() as stack:

        def start(variables: dict[str, str], **settings: object) -> ServiceProcess:
            service = ForkedService(tmp_path / "service", **settings)
            service.variables = variables | service.variables
            return stack.enter_context(running(service))

        yield start


def serve(*flags: str) -> subprocess.CompletedProcess[str]:
    return service_command("serve", *flags)


def test_a_wrong_flag_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--max-captures", "many"]) == 2
    assert "--max-captures=many" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["serve", "--lisen", "127.0.0.1:0"], "--lisen is not known here: did you mean --listen?"),
        (["keys", "create", "--tenant", "a", "--nmae=x"], "--nmae is not known here: did you mean --name?"),
        (
            ["serve", "--port", "1"],
            "--port is not known here: overspill-service serve --help names all flags",
        ),
    ],
)
def test_a_flag_that_is_none_is_named_with_the_one_that_it_resembles(
    words: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)

    assert end.value.code == 2
    assert advice in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["--help", "keys hash"])
def test_a_command_whose_output_goes_nowhere_says_why_and_fails(words: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "overspill_service", *words.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            env=clean_environment(PYTHONUNBUFFERED=""),
            text=True,
            check=False,
        )

    assert done.stderr == "overspill-service: standard output: No space left on device\n"
    assert done.returncode == 1


def test_a_wrong_variable_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERSPILL_MAX_UPLOADS", "0")

    assert main(["serve"]) == 2
    assert "OVERSPILL_MAX_UPLOADS=0" in capsys.readouterr().err


def test_a_variable_that_is_no_setting_is_named_with_the_setting_that_it_resembles(
    service_in: StartIn,
) -> None:
    log = service_in({"OVERSPILL_STORAGE": "memory:", "OVERSPILL_ELSE": "x"}).logged()

    assert "WARNING overspill_service.start" in log
    assert "OVERSPILL_STORAGE is not a setting and is ignored; did you mean OVERSPILL_STORE?" in log
    assert "OVERSPILL_ELSE is not a setting and is ignored; `serve --help` lists the settings" in log


@pytest.mark.parametrize("workers", [1, 2])
def test_variables_of_kubernetes_and_of_the_client_are_nobodys_mistake(
    service_in: StartIn, workers: int
) -> None:
    log = service_in(KUBERNETES | of_the_client(), workers=workers).logged()

    assert "OVERSPILL_" not in log


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
    redis = f"redis://127.0.0.1:{free_port()}?deadline=1"
    ended = serve(
        "--listen", "127.0.0.1:0", "--data", str(tmp_path), "--catalog", redis, "--workers", workers
    )

    assert ended.returncode == 1
    assert "Redis is not reachable" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


HOMELESS = """
import os, pwd, sys
from overspill_service import __main__

def unknown(_): raise KeyError("this user is not in the list")

os.environ.pop("HOME", None)
os.environ.pop("XDG_DATA_HOME", None)
pwd.getpwuid = unknown
sys.exit(__main__.main())
"""
"""The service for a user without a home, as in a container that runs under any number."""


def homeless(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HOMELESS, *flags],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=clean_environment(),
    )


def test_a_user_without_a_home_is_asked_for_a_folder() -> None:
    ended = homeless("keys", "list")

    assert ended.returncode == 2
    assert "name a folder with --data or OVERSPILL_DATA" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_user_without_a_home_needs_no_folder_if_nothing_lives_in_it() -> None:
    ended = homeless("keys", "list", "--store", "memory:", "--catalog", "memory:")

    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_list_without_keys_says_that_no_catalog_was_named(tmp_path: Path) -> None:
    unnamed = service_command("keys", "list", "--data", tmp_path)
    named = service_command("keys", "list", "--data", tmp_path, "--catalog", f"sqlite://{tmp_path}/file")

    assert (unnamed.stdout, named.stdout, named.stderr) == ("", "", "")
    assert f"no keys in the catalog of this machine, in {tmp_path}; --catalog" in unnamed.stderr


def test_a_catalog_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    url = f"127.0.0.1:{free_port()}?deadline=0.1"
    ended = service_command("keys", "list", "--data", tmp_path, "--catalog", f"redis://:secret@{url}")

    assert ended.returncode == 1
    assert ended.stderr.startswith(f"overspill-service: catalog redis://{url}: Redis ")


def test_hosts_that_nobody_knows_are_named(tmp_path: Path) -> None:
    flags = ("--data", str(tmp_path))
    listening = serve("--listen", "nosuch.invalid:8750", *flags)
    redis = serve("--listen", "127.0.0.1:0", *flags, "--catalog", "redis://nosuch.invalid:1?deadline=1")

    assert (listening.returncode, redis.returncode) == (1, 1)
    assert "cannot listen on nosuch.invalid:8750: its host is not known" in listening.stderr
    assert "the host of Redis is not known" in redis.stderr
    assert "Traceback" not in listening.stderr + redis.stderr


def test_a_folder_may_be_named_from_the_working_directory(tmp_path: Path, service_in: StartIn) -> None:
    service = service_in({}, data=os.path.relpath(tmp_path / "here"))

    assert service.stop() == 0
    assert f"store={(tmp_path / 'here/objects').resolve().as_uri()}" in service.logged()


def test_a_folder_that_others_may_write_to_is_said(tmp_path: Path, service_in: StartIn) -> None:
    data = tmp_path / "open"
    data.mkdir()
    data.chmod(0o777)
    log = service_in({}, data=data).logged()

    assert f"{data} may be written to by other users (its mode is 0777): chmod 700 it" in log


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give a folder away"
)
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "foreign"
    data.mkdir(mode=0o700)
    os.chown(data, 54321, 54321)
    ended = serve("--listen", "127.0.0.1:0", "--data", str(data))

    assert ended.returncode == 2
    assert f"{data} belongs to another user" in ended.stderr


def test_a_folder_that_may_not_be_used_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = serve("--listen", "127.0.0.1:0", "--data", str(tmp_path / "file"))

    assert ended.returncode == 2
    assert f"the folder {tmp_path}/file/objects cannot be used" in ended.stderr
    assert "Traceback" not in ended.stderr
