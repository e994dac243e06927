"""The OpenAI Agents SDK, with its own scripted model."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from agents import (
    Agent,
    ProgrammaticToolCallingTool,
    RunConfig,
    Runner,
    ToolOutputImage,
    ToolOutputText,
    function_tool,
)
from agents.items import ToolCallOutputItem
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputItemDoneEvent
from openai.types.responses.response_output_item import Program
from overspill.integrations.openai_agents import guard_agent

from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import lines, png

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call

PROGRAM = "call_of_the_program"


def picture(count: int) -> list[Any]:
    """Return lines and a picture."""
    return [ToolOutputText(text=lines(count)), ToolOutputImage(image_url=f"data:image/png;base64,{png()}")]


class OpenAIAgents:
    page = "openai-agents.md"
    ways: ClassVar = ("sync", "async", "stream")
    limits: ClassVar[dict[str, str]] = {}
    names_calls = True
    picture = staticmethod(picture)

    def run(
        self,
        way: str,
        tools: Sequence[Any],
        turns: Sequence[Sequence[Call]],
        *,
        guard: Guard | None,
        session: str,
    ) -> Run:
        model = _model(turns)
        agent: Agent[Any] = Agent(name="agent", model=model, tools=_tools(tools, turns))
        if guard is not None:
            agent = guard_agent(agent, guard)
        results = _results(agent, way, session)
        return Run([tool.name for tool in model.calls[0].tools], results)

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            names: dict[str, Any] = {"model": _model(turns), "tools": _tools(tools, turns)}
            exec(example, names)
            runs.append(Run([], _results(names["agent"], "async", session)))
        return runs


def _tools(tools: Sequence[Any], turns: Sequence[Sequence[Call]]) -> list[Any]:
    """Make tools that tell the model what went wrong: by default the SDK tells it nothing."""
    if not any(call.is_program for turn in turns for call in turn):
        return [function_tool(each, failure_error_function=_error_text) for each in tools]
    callers: Any = ["direct", "programmatic"]
    return [ProgrammaticToolCallingTool(), *(function_tool(each, allowed_callers=callers) for each in tools)]


def _error_text(_: Any, error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _model(turns: Sequence[Sequence[Call]]) -> ScriptedModel:
    return ScriptedModel([*map(_step, turns), [assistant_message("done")]])


def _step(calls: Sequence[Call]) -> ModelStep:
    items = _items(calls)
    done: list[Any] = [
        ResponseOutputItemDoneEvent(
            type="response.output_item.done", item=item, output_index=index, sequence_number=index
        )
        for index, item in enumerate(items)
    ]
    response = Response.model_construct(id="resp_1", output=items, status="completed")
    completed = ResponseCompletedEvent.model_construct(
        type="response.completed", response=response, sequence_number=len(items)
    )
    return ModelStep.stream([*done, completed], output=items)


def _items(calls: Sequence[Call]) -> list[Any]:
    """One turn of the model, in the form of the Responses API."""
    items: list[Any] = []
    if any(call.is_program for call in calls):
        items.append(Program(id="prog_1", call_id=PROGRAM, code="…", fingerprint="f", type="program"))
    for call in calls:
        item: Any = function_call(call.tool, dict(call.arguments), call_id=call.id)
        caller = {"type": "program", "caller_id": PROGRAM} if call.is_program else {"type": "direct"}
        items.append(type(item).model_validate({**item.model_dump(exclude_none=True), "caller": caller}))
    return items


def _results(agent: Agent[Any], way: str, session: str) -> dict[str, Result]:
    config = RunConfig(group_id=session, tracing_disabled=True)
    if way == "sync":
        run: Any = Runner.run_sync(agent, "go", run_config=config)
    elif way == "async":
        run = asyncio.run(Runner.run(agent, "go", run_config=config))
    else:
        run = asyncio.run(_streamed(agent, config))
    items = [each for each in run.new_items if isinstance(each, ToolCallOutputItem)]
    return {each.raw_item["call_id"]: _result(each) for each in items}


async def _streamed(agent: Agent[Any], config: RunConfig) -> Any:
    run = Runner.run_streamed(agent, "go", run_config=config)
    async for _ in run.stream_events():
        pass
    return run


def _result(item: ToolCallOutputItem) -> Result:
    raw: Any = item.raw_item
    output = raw["output"]
    parts = [] if isinstance(output, str) else output
    return Result(
        text=output if isinstance(output, str) else "\n".join(each.get("text", "") for each in parts),
        images=sum(each["type"] == "input_image" for each in parts),
        metadata=(item.custom_data or {}).get("overspill"),
    )


harness = OpenAIAgents()
