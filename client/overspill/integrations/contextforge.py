"""ContextForge: a plugin that guards the results of every tool behind the gateway, by one entry of its file.

plugins:
  - name: overspill
    kind: overspill.integrations.contextforge.OverspillPlugin
    hooks: [tool_post_invoke]
    mode: transform
    on_error: ignore
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cpex.framework import Plugin, ToolPostInvokePayload, ToolPostInvokeResult

from overspill.integrations.adapter import Adapter
from overspill.mcp.results import guarded_unless_lost

if TYPE_CHECKING:
    from cpex.framework import PluginConfig, PluginContext

_log = logging.getLogger("overspill")


class OverspillPlugin(Plugin):
    """Guards the results of every tool that the gateway calls.

    The session of a capture is the user, and the virtual server that was asked. A result that nothing could
    store stays as it is, and so does one that fails in here. The service is the one that `OVERSPILL_URL` and
    `OVERSPILL_KEY` name, with the policy file of `OVERSPILL_POLICY`.
    """

    def __init__(self, config: PluginConfig) -> None:
        super().__init__(config)
        self._adapter = Adapter()

    async def tool_post_invoke(
        self, payload: ToolPostInvokePayload, context: PluginContext
    ) -> ToolPostInvokeResult:
        """Return the result that goes on, if it is another one."""
        try:
            guard, session = self._adapter.guard, _session(context)
            new = await guarded_unless_lost(guard, payload.name, payload.result, session)
        except Exception as error:  # noqa: BLE001  (the boundary: a call never fails because of this)
            _log.warning("a result of %s stays as it is: %s: %s", payload.name, type(error).__name__, error)
            new = payload.result
        if new is payload.result:
            return ToolPostInvokeResult(continue_processing=True)
        changed = payload.model_copy(update={"result": new})
        return ToolPostInvokeResult(continue_processing=True, modified_payload=changed)

    async def shutdown(self) -> None:
        """Send what waits. The gateway calls it when it stops."""
        await self._adapter.guard.aclose()


def _session(context: PluginContext) -> str:
    global_context = context.global_context
    user = global_context.user.get("email") if isinstance(global_context.user, dict) else global_context.user
    return f"{user or ''}/{global_context.server_id or ''}"
