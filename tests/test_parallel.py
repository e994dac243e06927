"""Tests that run in several processes are told of as those of one process are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.client.shell import interruptible
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Sequence

OUTCOMES = """
import os, sys, warnings, pytest

ERRORS = sys.stderr

@pytest.fixture(scope="module")
def shared():
    return []

def test_passes(shared):
    shared.append(os.getpid())

def test_fails(shared):
    print("what it printed")
    print("what it complained of", file=ERRORS)
    assert shared == [os.getpid()] and False

def test_is_skipped():
    pytest.skip("for a reason")

def test_warns():
    warnings.warn("be careful", FutureWarning)
"""
DIES = """
import os

def test_before():
    pass

def test_dies():
    os._exit(5)

def test_after():
    pass
"""
SESSION = """
import pytest
from pathlib import Path

@pytest.fixture(scope="session")
def server():
    Path("is-up").touch()
    yield
    Path("is-up").rename("is-down")
"""
SHARES = """
def test_one(server):
    pass
"""
WAITS = """
import time

def test_waits(server):
    time.sleep(600)
"""


def start(folder: Path, files: Sequence[str], *words: str) -> subprocess.Popen[str]:
    """Run files of tests, written to `folder`, in two processes."""
    (folder / "conftest.py").write_text(SESSION)
    (folder / "pytest.ini").write_text("[pytest]")
    for number, text in enumerate(files):
        (folder / f"test_{number}.py").write_text(text)
    variables = {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with interruptible():
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "tests.parallel", "-n", "2", *words],
            cwd=folder,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def told(folder: Path, files: Sequence[str], *words: str) -> tuple[int, str]:
    """Run files of tests to their end; the exit code, and what is told of them."""
    process = start(folder, files, *words)
    out, _ = process.communicate()
    return process.returncode, out


def test_outcomes_outputs_and_warnings_are_told(tmp_path: Path) -> None:
    code, out = told(tmp_path, [OUTCOMES, OUTCOMES], "-rs")

    assert code == 1
    assert "2 failed, 4 passed, 2 skipped, 2 warnings" in out
    assert out.count("what it printed\n") == 2
    assert out.count("what it complained of\n") == 2
    assert out.count("FutureWarning: be careful") == 2
    assert "for a reason" in out


def test_a_process_that_dies_fails_its_test_and_another_runs_the_rest(tmp_path: Path) -> None:
    code, out = told(tmp_path, [DIES, SHARES])

    assert code == 1
    assert "FAILED test_0.py::test_dies - its process ended: 5" in out
    assert "1 failed, 3 passed" in out


def test_what_a_session_shares_ends_with_each_process(tmp_path: Path) -> None:
    code, _ = told(tmp_path, [SHARES, OUTCOMES.replace("and False", "")])

    assert code == 0
    assert (tmp_path / "is-down").exists()


@pytest.mark.parametrize("failing", [[DIES, WAITS], [OUTCOMES, WAITS]])
def test_the_first_failure_may_end_the_run(tmp_path: Path, failing: Sequence[str]) -> None:
    code, out = told(tmp_path, failing, "-x")

    assert code == 1
    assert "stopping after 1 failures" in out
    assert not (tmp_path / "is-up").exists()


def test_an_interrupt_ends_what_a_session_shares(tmp_path: Path) -> None:
    process = start(tmp_path, [WAITS, OUTCOMES])
    assert until((tmp_path / "is-up").exists)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()

    assert process.returncode == pytest.ExitCode.INTERRUPTED, out
    assert (tmp_path / "is-down").exists()
