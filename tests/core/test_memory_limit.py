"""The memory of a process: by the cgroup files as kernels write them, and by a real cgroup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from overspill_service.resources.memory_limit import (
    MAX_BUDGET,
    MIN_BUDGET,
    RESERVED_BYTES,
    default_budget,
    memory_limit,
)

from tests.servers import cgroup

MIB = 2**20
NO_LIMIT_V1 = "9223372036854771712\n"


def system(root: Path, mounts: str, groups: str, **files: str) -> Path:
    """A /proc/self whose hierarchies lie under `root`; `files` are limits by folder and name."""
    proc = root / "proc"
    proc.mkdir()
    (proc / "mountinfo").write_text(mounts.replace("{root}", str(root)))
    (proc / "cgroup").write_text(groups)
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return proc


V2 = "30 1 0:26 / {root}/v2 rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = (
    "40 1 0:30 {group} {root}/cpu rw - cgroup cgroup rw,cpu\n"
    "41 1 0:31 {group} {root}/memory rw - cgroup cgroup rw,memory\n"
)
DOCKER = "/docker/0123abcd"


def test_the_least_limit_of_all_cgroups_around_counts(tmp_path: Path) -> None:
    limits = {"v2/a/memory.max": f"{300 * MIB}\n", "v2/a/b/memory.max": "max\n", "v2/a/b/c/memory.max": "max"}
    proc = system(tmp_path, V2, "0::/a/b/c\n", **limits)

    assert memory_limit(proc) == 300 * MIB


def test_a_cgroup_that_is_slowed_down_before_its_limit_has_no_more(tmp_path: Path) -> None:
    limits = {"v2/a/memory.max": f"{300 * MIB}\n", "v2/a/memory.high": f"{200 * MIB}\n"}

    assert memory_limit(system(tmp_path, V2, "0::/a\n", **limits)) == 200 * MIB


def test_a_container_of_v2_sees_its_cgroup_as_the_root(tmp_path: Path) -> None:
    proc = system(tmp_path, V2, "0::/\n", **{"v2/memory.max": f"{512 * MIB}\n"})

    assert memory_limit(proc) == 512 * MIB


def test_a_container_of_v1_sees_its_cgroup_at_the_mount(tmp_path: Path) -> None:
    groups = f"5:cpu:{DOCKER}\n4:memory:{DOCKER}\n"
    limits = {"cpu/memory.limit_in_bytes": "1\n", "memory/memory.limit_in_bytes": f"{512 * MIB}\n"}

    assert memory_limit(system(tmp_path, V1.replace("{group}", DOCKER), groups, **limits)) == 512 * MIB


def test_nested_cgroups_of_v1_count_too(tmp_path: Path) -> None:
    limits = {
        "memory/memory.limit_in_bytes": NO_LIMIT_V1,
        "memory/a/memory.limit_in_bytes": f"{256 * MIB}\n",
        "memory/a/b/memory.limit_in_bytes": NO_LIMIT_V1,
    }
    proc = system(tmp_path, V1.replace("{group}", "/"), "4:memory:/a/b\n", **limits)

    assert memory_limit(proc) == 256 * MIB


@pytest.mark.parametrize("groups", ["0::/../outside\n", "0::/\n", "4:memory:/\n"])
def test_without_a_limit_the_machine_is_one(tmp_path: Path, groups: str) -> None:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    assert memory_limit(system(tmp_path, V2, groups, **{"v2/memory.max": "max\n"})) == machine
    assert memory_limit(tmp_path / "no such system") == machine


@pytest.mark.skipif(sys.platform != "linux", reason="cgroups are Linux's")
def test_a_process_in_a_real_cgroup_finds_its_limit() -> None:
    code = (
        "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid()));"
        "from overspill_service.resources.memory_limit import default_budget, memory_limit;"
        "print(memory_limit(), default_budget(1), default_budget(4))"
    )
    try:
        with cgroup.limited(f"overspill-test-{os.getpid()}", 512 * MIB) as group:
            file = str(group.folder / "cgroup.procs")
            told = subprocess.run([sys.executable, "-c", code, file], capture_output=True, check=True).stdout
    except cgroup.CannotLimit as reason:
        pytest.skip(str(reason))

    assert [int(number) // MIB for number in told.split()] == [512, 192, 32]


def test_the_budget_is_half_of_what_is_not_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    budgets = {64: MIN_BUDGET, 1024: (1024 * MIB - RESERVED_BYTES) // 2, 2**20: MAX_BUDGET}
    for limit, budget in budgets.items():
        monkeypatch.setattr(
            "overspill_service.resources.memory_limit.memory_limit", lambda limit=limit: limit * MIB
        )

        assert default_budget(1) == budget
