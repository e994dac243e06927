"""Fixtures that every folder of tests shares: real servers, started on first use."""

from tests import dev_group

dev_group.install()

pytest_plugins = [
    "tests.servers.balancer",
    "tests.servers.overspill",
    "tests.servers.swift",
    "tests.servers.redis",
    "tests.servers.faulty_proxy",
]
