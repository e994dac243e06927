"""Fixtures that every folder of tests shares: real servers, started on first use."""

from pathlib import Path

import hypothesis

from tests import bytecode, dev_group

dev_group.install()
bytecode.keep(Path(__file__).parent.parent / ".pytest_cache" / "bytecode")

# Hypothesis would fail an example that takes 200 ms, as any does on a busy machine.
hypothesis.settings.register_profile("overspill", deadline=None)
hypothesis.settings.load_profile("overspill")

pytest_plugins = [
    "tests.servers.balancer",
    "tests.servers.overspill",
    "tests.servers.swift",
    "tests.servers.redis",
    "tests.servers.faulty_proxy",
]
