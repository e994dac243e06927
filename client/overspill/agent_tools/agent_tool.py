"""The tools of an agent, for frameworks that take a name, a description, a JSON Schema and a function.

for tool in reading_tools(guard):
    register(tool.name, tool.description, tool.parameters, tool.call)      # or tool.acall
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from overspill.agent_tools import inspect_output, list_captures
from overspill.agent_tools.capture_source import Answer, CaptureSource
from overspill.agent_tools.error_answers import InvalidArguments, error_answer

if TYPE_CHECKING:
    from overspill.guard.guard import Guard
    from overspill.transfer.client import Client

_Work: TypeAlias = Callable[
    [CaptureSource, "Client | None", str, Mapping[str, Any]], Coroutine[Any, Any, Answer]
]


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool that a model calls. `parameters` is the JSON Schema of its arguments.

    Its answers can be written as JSON, have at most 20,000 characters unless the model asks for more, and
    never more than 40,000. It raises nothing but `CancelledError`: an answer with `error` says what is wrong.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    _source: CaptureSource = field(repr=False)
    _work: _Work = field(repr=False)

    def call(self, arguments: Any, *, session: str | None = None) -> Answer:
        """Answer a call with these arguments: an object, or its JSON text. `session` is that of the call."""
        try:
            given = _object(arguments)
        except InvalidArguments as error:
            return error_answer(error)
        return self._source.run(lambda client: self._answer(client, given, session))

    async def acall(self, arguments: Any, *, session: str | None = None) -> Answer:
        """As `call`, for asynchronous code."""
        try:
            given = _object(arguments)
        except InvalidArguments as error:
            return error_answer(error)
        return await self._source.run_async(lambda client: self._answer(client, given, session))

    def _answer(
        self, client: Client | None, arguments: Mapping[str, Any], session: str | None
    ) -> Coroutine[Any, Any, Answer]:
        named = self._source.session if session is None else session
        return self._work(self._source, client, named, arguments)


def reading_tools(guard: Guard) -> tuple[AgentTool, ...]:
    """Return the tools that read what `guard` stores: `inspect_output` and `list_captures`.

    Give them to the agent before its first call: a model that meets a notice needs them at once.
    """
    source = CaptureSource(guard.client, session=guard.session, spool=guard.spool)
    return (
        AgentTool(
            inspect_output.NAME,
            inspect_output.DESCRIPTION,
            inspect_output.INSPECT_OUTPUT_SCHEMA,
            source,
            _inspect,
        ),
        AgentTool(
            list_captures.NAME,
            list_captures.DESCRIPTION,
            list_captures.LIST_CAPTURES_SCHEMA,
            source,
            list_captures.list_captures,
        ),
    )


def _inspect(
    source: CaptureSource, client: Client | None, session: str, arguments: Mapping[str, Any]
) -> Coroutine[Any, Any, Answer]:
    return inspect_output.inspect(client, source.holder, session or None, **arguments)


def _object(arguments: Any) -> Mapping[str, Any]:
    """Return the arguments as an object with text keys. Raises `InvalidArguments`."""
    given = arguments
    if isinstance(given, str | bytes):
        try:
            given = json.loads(given or "{}")
        except ValueError as error:
            raise InvalidArguments(f"the arguments are no JSON: {error}") from error
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidArguments('the arguments must be a JSON object, such as {"capture": "cap_…"}')
    return {str(name): value for name, value in given.items()}
