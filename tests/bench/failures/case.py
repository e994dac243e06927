"""One output: what makes it, and what in it matters."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TIMEOUT: Final = 60
BIN: Final = Path(sys.executable).parent


@dataclass(frozen=True)
class Case:
    """`make` runs the tools in an empty folder and gives what they print.

    `decisive` is a regular expression for the line that a person would want. A case that is `held_out` was
    not looked at while the previews were built.
    """

    name: str
    decisive: str
    make: Callable[[Path], str]
    needs: tuple[str, ...] = ()
    held_out: bool = False

    @property
    def missing(self) -> list[str]:
        """Tools that this machine lacks."""
        return [tool for tool in self.needs if shutil.which(tool, path=search_path()) is None]

    def is_told_by(self, text: str) -> bool:
        return re.search(self.decisive, text, re.MULTILINE) is not None


def search_path() -> str:
    return f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def shell(folder: Path, script: str) -> str:
    """What a script prints on both streams, in the order in which it does."""
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT,
        check=False,
    )
    return done.stdout.decode(errors="surrogateescape")


def _environment(folder: Path) -> dict[str, str]:
    identity = {
        f"GIT_{who}_{what}": f"{who}@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    kept = {
        name: os.environ[name] for name in ("JAVA_HOME", "RUSTUP_HOME", "PYENV_ROOT") if name in os.environ
    }
    homes = {"RUSTUP_HOME": str(Path.home() / ".rustup")} if (Path.home() / ".rustup").is_dir() else {}
    return (
        homes
        | kept
        | identity
        | {
            "PATH": search_path(),
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "COLUMNS": "120",
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "CARGO_NET_OFFLINE": "true",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "npm_config_update_notifier": "false",
            "npm_config_cache": str(folder / ".npm"),
        }
    )


def files(folder: Path, contents: Mapping[str, str]) -> None:
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def python(folder: Path, program: str) -> str:
    """What a Python program prints."""
    files(folder, {"program.py": program})
    return shell(folder, "python program.py")
