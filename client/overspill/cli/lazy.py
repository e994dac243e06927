"""The modules that a command needs only when it runs. They are imported then, so help pages come fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from overspill.cli import (
        failures,
        file_put,
        following,
        live_put,
        spool_upload,
    )
    from overspill.cli.command_output import guarded_output, shell_session
    from overspill.cli.demo import story
    from overspill.cli.search import search
    from overspill.cli.top import table_run
    from overspill.integrations import docker_gateway as gateway
    from overspill.live import ports as live_ports
    from overspill.mcp.proxy import run as mcp_proxy
    from overspill.mcp.proxy import streams as mcp_streams
    from overspill.mcp.server import run as mcp_server
    from overspill.spools import flush as spool_flush
    from overspill.spools import holder

__all__ = [
    "failures",
    "file_put",
    "following",
    "gateway",
    "guarded_output",
    "holder",
    "live_ports",
    "live_put",
    "mcp_proxy",
    "mcp_server",
    "mcp_streams",
    "search",
    "shell_session",
    "spool_flush",
    "spool_upload",
    "story",
    "table_run",
]

_MODULES = {
    "failures": "overspill.cli.failures",
    "file_put": "overspill.cli.file_put",
    "following": "overspill.cli.following",
    "gateway": "overspill.integrations.docker_gateway",
    "guarded_output": "overspill.cli.command_output.guarded_output",
    "holder": "overspill.spools.holder",
    "live_put": "overspill.cli.live_put",
    "mcp_proxy": "overspill.mcp.proxy.run",
    "mcp_server": "overspill.mcp.server.run",
    "mcp_streams": "overspill.mcp.proxy.streams",
    "search": "overspill.cli.search.search",
    "shell_session": "overspill.cli.command_output.shell_session",
    "live_ports": "overspill.live.ports",
    "spool_flush": "overspill.spools.flush",
    "spool_upload": "overspill.cli.spool_upload",
    "story": "overspill.cli.demo.story",
    "table_run": "overspill.cli.top.table_run",
}


def __getattr__(name: str) -> ModuleType:
    """Import a module when it is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = globals()[name] = import_module(_MODULES[name])
    return module
