"""Who handed an output to the guard, which says what in it a model may never be shown."""

from __future__ import annotations

from enum import Enum


class Sender(Enum):
    """A `HOST` may hand over any message of its conversation: one that no tool made passes.

    What a `TOOL` returned is none, whatever it looks like. A model may be shown all of it. The result of an
    `MCP_SERVER` has fields besides that are for programs alone.
    """

    HOST = "host"
    TOOL = "tool"
    MCP_SERVER = "MCP server"
