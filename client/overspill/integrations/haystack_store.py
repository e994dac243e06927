"""Haystack: a store, for those who keep Haystack's own hook or compactor that offloads results.

hook = ToolResultOffloadHook(OverspillResultStore(), {"*": OffloadOverChars(8000)})
"""

from __future__ import annotations

from typing import Any

from haystack.core.serialization import default_from_dict, default_to_dict
from haystack.hooks.tool_result_offloading.types import ToolResultStore

from overspill.text.media_types import BINARY_TYPE
from overspill.transfer.sync import SyncClient


class OverspillResultStore(ToolResultStore):
    """Keeps offloaded results as captures, text and binary ones. References are their handles.

    Give the agent `ReadingTools()` of `overspill.integrations.haystack`, and it reads on in them. `session`
    is that of the captures, and defaults to the client's; a capture lives `ttl` seconds, or as long as the
    service's default. Written as YAML it keeps `session` and `ttl`; a client is made from the environment.
    `write` and `read` raise what `SyncClient` does: Haystack then leaves a result where it is.
    """

    supports_binary_content = True

    def __init__(
        self, client: SyncClient | None = None, *, session: str | None = None, ttl: int | None = None
    ) -> None:
        self.client: SyncClient = SyncClient() if client is None else client
        self.session = session
        self.ttl = ttl

    def write(self, *, key: str, content: str | bytes) -> str:
        """Store one part of a result; return its handle."""
        type_ = BINARY_TYPE if isinstance(content, bytes) else None
        entry = self.client.put(content, call_id=key, session=self.session, content_type=type_, ttl=self.ttl)
        return entry.id

    def read(self, reference: str) -> str | bytes:
        """Return what was stored: text as text, and anything else as bytes."""
        entry = self.client.get(reference)
        content = self.client.content(entry.id)
        return content if entry.content_type == BINARY_TYPE else content.decode("utf-8", "surrogatepass")

    def to_dict(self) -> dict[str, Any]:
        """Return the store as Haystack writes it."""
        return default_to_dict(self, session=self.session, ttl=self.ttl)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> OverspillResultStore:
        """Return the store that was written."""
        return default_from_dict(cls, data)
