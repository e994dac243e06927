"""LiteLLM's proxy: oversized tool results are spilled from every request that passes, whoever sends it.

    litellm_settings:
      callbacks: overspill.integrations.litellm.handler

Chat completions, responses and Anthropic's messages alike. A result that was spilled once gets the same
notice in every later request of the conversation, so that the provider's prompt cache stays warm. What goes
wrong is logged, and the request passes as it came.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from litellm.integrations.custom_logger import CustomLogger

from overspill.execution import threads
from overspill.guard.environment_policy import environment_policy
from overspill.guard.guard import Guard
from overspill.histories.history import spill_messages
from overspill.reading.latest import Latest
from overspill.transfer.client import Client
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.guard.guarded import Guarded

log: Final = logging.getLogger("overspill")

SECONDS: Final = 10.0
"""How long a request waits for its results to be spilled; then it passes as it came."""
REMEMBERED_SECONDS: Final = 600.0
"""How long after its capture a result is stored again, in case somebody has deleted it."""
MAX_RESULTS: Final = 2_000
_FIELDS: Final = "messages", "input"
"""The fields in which requests have their conversation: completions and Anthropic's messages; responses."""


class RepeatingGuard(Guard):
    """A guard that gets the same results again with every request of a conversation.

    What it captured is neither sent nor counted again for a while, and its notice stays the same, byte for
    byte. It remembers the last `MAX_RESULTS` results.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._captured: Latest[bytes, tuple[float, Guarded]] = Latest(MAX_RESULTS)

    async def process(self, result: Any, **facts: Any) -> Guarded:
        """Do the same as `Guard.process`."""
        key = await threads.run(_digest, result, facts)
        since, guarded = self._captured.pop(key, (0.0, None))
        if guarded is None or time.monotonic() - since > REMEMBERED_SECONDS:
            since, guarded = time.monotonic(), await super().process(result, **facts)
        if guarded.outcome is Outcome.CAPTURED:
            self._captured[key] = since, guarded
        return guarded


def _digest(result: Any, facts: Mapping[str, Any]) -> bytes:
    """Return what names a result of a call: the policy is always the same."""
    named = [facts.get(name) for name in ("session", "tool", "call_id", "status")]
    text = json.dumps([result, named], default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class OverspillHandler(CustomLogger):
    """Spills the tool results of requests, before they go to the model.

    A capture's session is the caller's key and the session that the proxy knows, if any. Without `guard` it
    makes one, at the first request, for the service that `OVERSPILL_URL` and `OVERSPILL_KEY` name.
    """

    def __init__(self, guard: Guard | None = None) -> None:
        super().__init__()
        self._guard = guard

    @property
    def guard(self) -> Guard:
        """The guard of this process. Identical results are not named: that would depend on the replica."""
        if self._guard is None:
            self._guard = RepeatingGuard(Client(), replace(environment_policy(), identical=False))
        return self._guard

    async def async_pre_call_hook(
        self,
        user_api_key_dict: Any,
        cache: Any,  # noqa: ARG002  (LiteLLM's signature)
        data: dict[str, Any],
        call_type: str,  # noqa: ARG002
    ) -> dict[str, Any]:
        """Return the request with notices in place of results that are too long."""
        for field in _FIELDS:
            messages = data.get(field)
            if isinstance(messages, list) and messages:
                data[field] = await self._spilled(messages, session_of(user_api_key_dict, data))
        return data

    async def _spilled(self, messages: list[Any], session: str) -> list[Any]:
        try:
            async with asyncio.timeout(SECONDS):
                return await spill_messages(messages, self.guard, session=session)
        except Exception as error:  # noqa: BLE001  (the boundary: a request is never lost by its guard)
            log.warning("a request passes unguarded: %s: %s", type(error).__name__, error)
            return messages


def session_of(user_api_key_dict: Any, data: Mapping[str, Any]) -> str:
    """Return a name for the conversation, as far as the proxy knows it: no key can name one of another's."""
    key = str(getattr(user_api_key_dict, "api_key", None) or "")
    metadata = data.get("litellm_metadata") or data.get("metadata") or {}
    session_id = metadata.get("session_id") if isinstance(metadata, dict) else None
    session = data.get("litellm_session_id") or session_id or ""
    caller = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"litellm/{caller}/{session}"


handler: Final = OverspillHandler()
"""The instance that a proxy's configuration names."""
