"""No version of a dependency with a known vulnerability is allowed, nor locked.

Add the last bad version of an advisory here. Whoever installs an older environment's leftovers then gets it
replaced, and the lock cannot fall behind.
"""

from __future__ import annotations

import tomllib
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parent.parent
LAST_BAD: Final = {
    "aiohttp": ("3.14.3", "CVE-2026-69243, PYSEC-2026-4369, PYSEC-2026-4371"),
    "cryptography": ("49.99", "CVE-2026-69247"),
    "h11": ("0.15", "CVE-2025-43859"),
    "mcp": ("2.1.99", "CVE-2026-116686, CVE-2026-59951"),
    "pyjwt": ("2.14.99", "CVE-2026-101918, CVE-2026-102275"),
    "redis": ("4.5.4", "CVE-2023-28859"),
    "starlette": ("1.3.0", "CVE-2026-54283, CVE-2026-48710"),
    "urllib3": ("2.7.99", "CVE-2026-97687, CVE-2026-97689, CVE-2026-44432"),
}
"""By names: the last version that an advisory names, or one just below the version that mends it."""


def requirements() -> Iterator[Requirement]:
    for house in ("client", "service"):
        project = tomllib.loads((ROOT / house / "pyproject.toml").read_text())["project"]
        texts = chain(project["dependencies"], *project["optional-dependencies"].values())
        yield from map(Requirement, texts)


def locked() -> dict[str, list[Any]]:
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    return {name: [each for each in packages if each["name"] == name] for name in LAST_BAD}


@pytest.mark.parametrize("name", LAST_BAD)
def test_no_vulnerable_version_is_allowed_or_locked(name: str) -> None:
    bad, advisories = LAST_BAD[name]
    own = [each for each in requirements() if each.name.lower() == name]
    allowed = [str(each) for each in own if each.specifier.contains(bad, prereleases=True)]
    versions = [Version(each["version"]) for each in locked()[name]]

    assert own, f"{name} needs a requirement of its own: {advisories}"
    assert allowed == [], advisories
    assert min(versions) > Version(bad), advisories
