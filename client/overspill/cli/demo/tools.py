"""Three tools as an agent has them: real work on this machine, and more output than a conversation holds."""

from __future__ import annotations

import asyncio
import os
import sys
import sysconfig
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_SKIPPED: Final = frozenset({"__pycache__", "site-packages", "dist-packages"})
TESTS: Final = '''\
import unittest


def total(number):
    """The sum of an invoice in cents: three items and the tax on them."""
    items = [number * 3, number * 5, 250]
    tax = 0 if number == 777 else sum(items) // 5
    return sum(items) + tax


class Invoices(unittest.TestCase):
    """One test an invoice."""


def _make(number):
    def test(self):
        self.assertEqual(total(number), (number * 8 + 250) * 6 // 5, f"invoice {number} is wrong")

    return test


for number in range(1, 1501):
    setattr(Invoices, f"test_invoice_{number:04}", _make(number))
'''


async def grep_search(pattern: str) -> str:
    """Lines of Python's standard library that contain `pattern`."""
    folder = Path(sysconfig.get_path("stdlib"))
    return await asyncio.to_thread(lambda: "".join(_search(folder, pattern)))


async def describe_python() -> dict[str, Any]:
    """Say how this Python was built, and what is installed in it."""
    found = sorted(metadata.distributions(), key=lambda each: each.name.lower())
    return await asyncio.to_thread(
        lambda: {
            "version": sys.version,
            "distributions": [_described(each) for each in found],
            "configuration": sysconfig.get_config_vars(),
        }
    )


async def run_command(folder: Path) -> str:
    """Run 1,500 generated tests verbosely. One in the middle fails."""
    (folder / "test_invoices.py").write_text(TESTS, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")  # or one of a folder above would hold
    runner = ["pytest", "-v", "--color=no", "--rootdir=.", "-p", "no:cacheprovider", "test_invoices.py"]
    if find_spec("pytest") is None:
        runner = ["unittest", "-v", "test_invoices"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *runner),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=_environment(),
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output.decode(errors="replace")


def _environment() -> dict[str, str]:
    """Return the environment without variables that would change a test run."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COLUMNS"))
    }
    return environment | {
        "LC_ALL": "C",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def _search(folder: Path, pattern: str) -> Iterator[str]:
    """Return what `grep -rnF` would print."""
    for path, names, files in os.walk(folder):
        names[:] = sorted(set(names).difference(_SKIPPED))
        for file in (Path(path, name) for name in sorted(files) if name.endswith(".py")):
            for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
                if pattern in line:
                    yield f"{file}:{number}:{line}\n"


def _described(distribution: metadata.Distribution) -> dict[str, Any]:
    files = [str(file) for file in distribution.files or []]
    return {"metadata": distribution.metadata.json, "files": files}
