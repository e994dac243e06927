"""Lets other machines see what an agent's command prints while it runs, if that is too long for an answer."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Self

from overspill.agent_tools.live_upload import PATIENCE_SECONDS, LiveUpload
from overspill.delivery.stream_upload import LIVE_BYTES, LIVE_SECONDS
from overspill.guard import call_context
from overspill.guard.band import all_go_to_service
from overspill.live.labels import command_label
from overspill.transfer.sync import SyncClient, synchronous_like

if TYPE_CHECKING:
    from overspill.agent_tools.recording import Recording
    from overspill.guard.guard import Guard
    from overspill.live.ports import Beginning
    from overspill.transfer.client import Client


class LiveCommand:
    """One command's output on its way, for a `with` block. Without a service it is only recorded."""

    def __init__(
        self, guard: Guard, recording: Recording, *, tool: str, command: str, session: str | None, limit: int
    ) -> None:
        """An output of more than `limit` bytes is too long."""
        self._guard, self._recording = guard, recording
        self._tool, self._command, self._limit = tool, command, limit
        call = call_context.current()
        self._call_id = "" if call is None else call.id
        self._session = session if session is not None or call is None else call.session
        self._upload: LiveUpload | None = None
        self._owned = ExitStack()

    def __enter__(self) -> Self:
        given, policy = self._guard.client, self._guard.policy
        if given is not None and all_go_to_service(policy.bands) and not call_context.is_bypassed():
            client = self._synchronous(given)
            redactor = policy.redactor()
            new_capture = partial(
                client.live,
                tool=self._tool,
                call_id=self._call_id,
                session=self._guard.session if self._session is None else self._session,
                ttl=policy.ttl,
                labels=command_label(self._command, redactor),
                redactor=redactor,
                patience=PATIENCE_SECONDS,
            )
            upload = LiveUpload(
                self._recording,
                new_capture,
                after_bytes=max(self._limit, LIVE_BYTES),
                after_seconds=LIVE_SECONDS,
                least_bytes=self._limit,
            )
            self._upload = self._owned.enter_context(upload)
        return self

    def _synchronous(self, client: Client | SyncClient) -> SyncClient:
        """Return a client for this thread: the given one, or one like it, which ends with the block."""
        if isinstance(client, SyncClient):
            return client
        return self._owned.enter_context(synchronous_like(client))

    def __exit__(self, *_: object) -> None:
        self._owned.close()

    def take(self, data: bytes) -> None:
        """Record more of the output, and let it be sent."""
        self._recording.take(data)
        if self._upload is not None:
            self._upload.take(data)

    def ended(self, *, status: str, exit_code: int) -> str | Beginning:
        """Send the rest. Return what the service has of the output, as `calling` takes it."""
        if self._upload is None:
            return ""
        self._upload.ended(status=status, exit_code=exit_code)
        return self._upload.known
