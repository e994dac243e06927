"""The client as agents embed it: small on disk, and quick to import."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import overspill
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

MB = 1_000_000
MAX_BYTES = 18 * MB
OWN = Path(overspill.__file__).parent


def with_dependencies(name: str, extra: str = "") -> set[str]:
    """The distribution and all that installing it brings, here."""
    found: set[str] = {canonicalize_name(name)}
    for line in distribution(name).requires or []:
        needed = Requirement(line)
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            found.update(*(with_dependencies(needed.name, each) for each in needed.extras or [""]))
    return found


def installed_size(name: str) -> int:
    """Bytes of its files as the wheel has them: without what is compiled on this machine."""
    if name == "overspill":
        files = list(OWN.rglob("*"))
    else:
        files = [Path(str(file.locate())) for file in distribution(name).files or []]
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")


def test_what_the_client_brings_is_small() -> None:
    sizes = {name: installed_size(name) for name in with_dependencies("overspill")}

    assert {"overspill", "aiohttp", "msgspec", "yarl"} <= sizes.keys()
    assert "zstandard" not in sizes
    assert min(sizes.values()) > 0
    assert sum(sizes.values()) < MAX_BYTES, sizes


def test_importing_it_imports_nothing_else() -> None:
    # `typing` brings what differs from one Python to the next
    program = (
        "import sys, typing; before = set(sys.modules); import overspill; print(*set(sys.modules) - before)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert set(ended.stdout.split()) == {"overspill", "__future__"}
