"""The lock file: nothing that it installs has to be compiled, on any system that the README names."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from packaging.markers import default_environment
from packaging.pylock import PackageSdist, Pylock
from packaging.tags import compatible_tags, cpython_tags, mac_platforms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.markers import Environment
    from packaging.tags import Tag

ROOT = Path(__file__).parent.parent
GLIBC = 28
"""The minor version of the oldest glibc 2 that wheels may ask for: that of Debian 10 and RHEL 8."""


def linux_platforms(machine: str) -> list[str]:
    """Platform tags of a Linux with glibc, best first (PEP 600, and the names that came before it)."""
    names = [f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC, 16, -1)]
    return [*names, f"manylinux2014_{machine}", f"linux_{machine}"]


SYSTEMS = {
    "linux-x86_64": (linux_platforms("x86_64"), {"sys_platform": "linux", "platform_machine": "x86_64"}),
    "linux-aarch64": (linux_platforms("aarch64"), {"sys_platform": "linux", "platform_machine": "aarch64"}),
    "macos-arm64": (
        list(mac_platforms((14, 0), "arm64")),
        {"sys_platform": "darwin", "platform_machine": "arm64", "platform_system": "Darwin"},
    ),
}
PYTHONS = [(3, 11), (3, 12), (3, 13), (3, 14)]


def tags(python: tuple[int, int], platforms: list[str]) -> Iterator[Tag]:
    interpreter = f"cp{python[0]}{python[1]}"
    return chain(
        cpython_tags(python, platforms=platforms), compatible_tags(python, interpreter, platforms=platforms)
    )


@pytest.fixture(scope="module")
def locked() -> Pylock:
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        pytest.skip("no uv on the PATH")
    export = [uv, "export", "--quiet", "--frozen", "--offline", "--group", "dev", "--format", "pylock.toml"]
    result = subprocess.run(export, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return Pylock.from_dict(tomllib.loads(result.stdout))


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("python", PYTHONS, ids=lambda version: ".".join(map(str, version)))
def test_nothing_is_compiled(locked: Pylock, python: tuple[int, int], system: str) -> None:
    platforms, variables = SYSTEMS[system]
    version = ".".join(map(str, python))
    versions = {"python_version": version, "python_full_version": f"{version}.0"}
    environment = cast("Environment", {**default_environment(), **variables, **versions})

    chosen = list(locked.select(environment=environment, tags=list(tags(python, platforms))))

    assert len(chosen) > 100
    assert [package.name for package, source in chosen if isinstance(source, PackageSdist)] == []
