"""deepagents' `create_deep_agent`, with LangChain's scripted model. Its own eviction is in the cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from deepagents import create_deep_agent
from langchain_core.tools import tool as as_tool
from overspill.integrations.langchain import OverspillMiddleware

from tests.integrations.kit.harness import Run
from tests.integrations.langchain.harness import model_of, picture, results_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call


class DeepAgents:
    page = "deepagents.md"
    ways: ClassVar = ("sync", "async", "stream")
    limits: ClassVar = {
        "code_that_calls_a_tool_gets_the_whole": "deepagents' own eviction puts a result of more than 20,000"
        " tokens into a file, whoever calls"
    }
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
        model = model_of(turns)
        middleware: list[Any] = [] if guard is None else [OverspillMiddleware(guard)]
        agent = create_deep_agent(model, [as_tool(each) for each in tools], middleware=middleware)
        return Run(model.offered, results_of(agent, way, session))

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            names: dict[str, Any] = {"model": model_of(turns), "tools": [as_tool(each) for each in tools]}
            exec(example, names)
            runs.append(Run([], results_of(names["agent"], "sync", session)))
        return runs


harness = DeepAgents()
