"""OpenAI Agents SDK: session directives in metadata that the application keeps.

message, config = directed("/think why does it fail?", metadata, RunConfig())
result = await Runner.run(agent, message, run_config=config)
print(answer(result, metadata))
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Any

from agents import RunConfig
from agents.items import ToolCallItem, ToolCallOutputItem
from agents.run_config import ModelInputData

from overspill.integrations.directives.directives import NAMES, THINK_PROMPT, Directives, report
from overspill.shapes.fields import get

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from agents.result import RunResultBase


def directed(
    message: str,
    metadata: MutableMapping[str, Any],
    run_config: RunConfig | None = None,
    *,
    allowed: Iterable[str] = NAMES,
) -> tuple[str, RunConfig]:
    """Return a user's message without its directives, and the configuration of its run.

    `metadata` is that of the session: the SDK's sessions keep none. `/think` adds a prompt after the
    instructions. What approves calls asks `Directives.read(metadata)`, in a tool's `needs_approval`.
    """
    config = RunConfig() if run_config is None else run_config
    directives, message = Directives.read(metadata).after(message, allowed=allowed)
    directives.write(metadata)
    if not directives.think:
        return message, config
    theirs = config.call_model_input_filter

    async def thinking(data: Any) -> ModelInputData:
        changed = data.model_data if theirs is None else theirs(data)
        changed = await changed if inspect.isawaitable(changed) else changed
        prompt: Any = {"role": "system", "content": THINK_PROMPT}
        return ModelInputData(input=[prompt, *changed.input], instructions=changed.instructions)

    return message, dataclasses.replace(config, call_model_input_filter=thinking)


def answer(result: RunResultBase, metadata: MutableMapping[str, Any]) -> Any:
    """Return the final output of a run; with `/verbose`, a text has the tool calls of the run after it."""
    if not Directives.read(metadata).verbose or not isinstance(result.final_output, str):
        return result.final_output
    calls = [each.raw_item for each in result.new_items if isinstance(each, ToolCallItem)]
    names = {get(each, "call_id"): get(each, "name") for each in calls}
    outputs = [each for each in result.new_items if isinstance(each, ToolCallOutputItem)]
    shown = report((str(names.get(get(each.raw_item, "call_id"))), str(each.output)) for each in outputs)
    return result.final_output + shown
