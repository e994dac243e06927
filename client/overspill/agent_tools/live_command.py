"""Uploads the output of an agent's command while it runs, if it is too long for an answer."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from overspill.agent_tools.guarded_recording import answer_limits
from overspill.agent_tools.live_upload import PATIENCE_SECONDS, LiveUpload
from overspill.delivery.stream_upload import LIVE_BYTES, LIVE_SECONDS
from overspill.guard import call_context
from overspill.guard.band import all_go_to_service
from overspill.live.labels import command_label
from overspill.transfer.sync import SyncClient, synchronous_like

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.agent_tools.recording import Recording
    from overspill.guard.guard import Guard


@contextmanager
def command_upload(
    guard: Guard, recording: Recording, *, tool: str, command: str, session: str | None
) -> Iterator[LiveUpload]:
    """Give the block a recorder of a command's output. Without a service it only records."""
    limits = answer_limits(guard, tool)
    longest = min(limits.max_bytes, limits.max_chars or limits.max_bytes)
    own_client, policy, call = guard.client, guard.policy, call_context.current()
    if session is None and call is not None:
        session = call.session
    new_capture = None
    with ExitStack() as owned:
        if own_client is not None and all_go_to_service(policy.bands) and not call_context.is_bypassed():
            client = (
                own_client
                if isinstance(own_client, SyncClient)
                else owned.enter_context(synchronous_like(own_client))
            )
            redactor = policy.redactor()
            new_capture = partial(
                client.live,
                tool=tool,
                call_id="" if call is None else call.id,
                session=guard.session if session is None else session,
                ttl=policy.ttl,
                labels=command_label(command, redactor),
                redactor=redactor,
                patience=PATIENCE_SECONDS,
            )
        upload = LiveUpload(
            recording,
            new_capture,
            after_bytes=max(longest, LIVE_BYTES),
            after_seconds=LIVE_SECONDS,
            least_bytes=longest,
        )
        yield owned.enter_context(upload)
