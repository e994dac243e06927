"""Fixtures that every folder of tests shares: real servers, started on first use."""

import gc
import os
import sysconfig
import tempfile
from pathlib import Path

import hypothesis

from tests import bytecode, dev_group

GARBAGE_AFTER = 10_000
"""Objects that are new when the garbage collector looks for garbage: fourteen times as many as usual."""
PROCESSES_A_CORE = 3
MAX_PROCESSES = 8

gc.disable()  # until all tests are collected: nothing of them is garbage
dev_group.install()
bytecode.keep(Path(__file__).parent.parent / ".pytest_cache" / "bytecode")

# Hypothesis would fail an example that takes 200 ms, as any does on a busy machine.
hypothesis.settings.register_profile("overspill", deadline=None)
hypothesis.settings.load_profile("overspill")

# Programs of this environment are found as under `uv run`, also if an editor starts the tests by its Python.
os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])

# Notices have the same marks in every run, and no test makes a secret for whoever runs the tests.
os.environ["OVERSPILL_NOTICE_KEY"] = "the secret of these tests"
_FOLDER = tempfile.TemporaryDirectory(prefix="overspill-tests-")
os.environ["OVERSPILL_KEY_FILE"] = f"{_FOLDER.name}/local-key"

pytest_plugins = [
    "tests.leaks",
    "tests.servers.balancer",
    "tests.servers.overspill",
    "tests.servers.swift",
    "tests.servers.redis",
    "tests.servers.faulty_proxy",
    "tests.servers.tracing",
]


def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes run tests: so many that no core is idle while some of them wait.

    Each of them takes about a gigabyte, with its servers.
    """
    return min(MAX_PROCESSES, PROCESSES_A_CORE * (os.cpu_count() or 1))


def pytest_collection_finish() -> None:
    """Keep the garbage collector from what was collected: else it goes through it, all tests long."""
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER)
    gc.enable()
