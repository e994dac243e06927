"""The tools whose outputs are captured at the source: `run_command` and `search_files`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from overspill.agent_tools import run_command, search_files
from overspill.agent_tools.agent_tool import AgentTool
from overspill.agent_tools.run_command import CommandRun
from overspill.agent_tools.search_files import FileSearch
from overspill.execution.threads import run_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from overspill.agent_tools.agent_tool import Answer, Arguments
    from overspill.guard.guard import Guard


class _Job(Protocol):
    """One call, in a thread that may wait."""

    def answer(self, arguments: Arguments, session: str | None) -> Answer: ...
    def stop(self) -> None:
        """End it from any thread; `answer` then returns soon."""


def source_tools(
    guard: Guard,
    directory: str | Path = ".",
    *,
    environment: Mapping[str, str] | None = None,
    shell: str = "/bin/sh",
    ripgrep: str | None = "rg",
) -> tuple[AgentTool, ...]:
    """Return `run_command` and `search_files` for an agent that works in `directory`.

    They do what the model says, with the rights of this process: run them where that is safe. `environment`
    is that of the commands; this process's own if None. `ripgrep` is the program that searches; None, or a
    program that is not there, lets Python search.
    """
    folder = Path(directory)
    program = None if ripgrep is None else shutil.which(ripgrep)
    return (
        AgentTool(
            run_command.NAME,
            run_command.DESCRIPTION,
            run_command.RUN_COMMAND_SCHEMA,
            *_answers(lambda: CommandRun(guard, folder, environment, shell)),
        ),
        AgentTool(
            search_files.NAME,
            search_files.DESCRIPTION,
            search_files.SEARCH_FILES_SCHEMA,
            *_answers(lambda: FileSearch(guard, folder, program)),
        ),
    )


def _answers(
    new_job: Callable[[], _Job],
) -> tuple[Callable[..., Answer], Callable[..., Coroutine[Any, Any, Answer]]]:
    """Return how a tool answers: in the caller's thread, and for a coroutine in a thread of its own."""

    def answer(arguments: Arguments, session: str | None) -> Answer:
        return new_job().answer(arguments, session)

    async def answer_async(arguments: Arguments, session: str | None) -> Answer:
        job = new_job()
        try:
            return await run_alone(job.answer, arguments, session)
        except BaseException:  # the caller was cancelled
            job.stop()
            raise

    return answer, answer_async
