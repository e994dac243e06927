"""Fixtures that every folder of tests shares: real servers, started on first use."""

from pathlib import Path

from tests import bytecode, dev_group

dev_group.install()
bytecode.keep(Path(__file__).parent.parent / ".pytest_cache" / "bytecode")

pytest_plugins = [
    "tests.servers.balancer",
    "tests.servers.overspill",
    "tests.servers.swift",
    "tests.servers.redis",
    "tests.servers.faulty_proxy",
]
