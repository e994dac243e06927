"""A tool of an agent, for frameworks that take a name, a description, a JSON Schema and a function."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from overspill.agent_tools.error_answers import InvalidArguments, error_answer

Answer: TypeAlias = dict[str, Any]
Arguments: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool that a model calls. `parameters` is the JSON Schema of its arguments.

    Its answers can be written as JSON, have at most 20,000 characters unless the model asks for more, and
    never more than 40,000. It raises nothing but `CancelledError`: an answer with `error` says what is wrong.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    _answer: Callable[[Arguments, str | None], Answer] = field(repr=False)
    _answer_async: Callable[[Arguments, str | None], Awaitable[Answer]] = field(repr=False)

    def call(self, arguments: Any, *, session: str | None = None) -> Answer:
        """Answer a call with these arguments: an object, or its JSON text. `session` is that of the call."""
        try:
            return self._answer(_object(arguments), session)
        except Exception as error:  # noqa: BLE001  (the boundary: a tool never breaks its agent)
            return error_answer(error)

    async def acall(self, arguments: Any, *, session: str | None = None) -> Answer:
        """Do the same as `call`, for asynchronous code."""
        try:
            return await self._answer_async(_object(arguments), session)
        except Exception as error:  # noqa: BLE001  (as above)
            return error_answer(error)


def _object(arguments: Any) -> Arguments:
    """Return the arguments as an object with text keys. Raises `InvalidArguments`."""
    parsed = arguments
    if isinstance(parsed, str | bytes):
        try:
            parsed = json.loads(parsed or "{}")
        except ValueError as error:
            raise InvalidArguments(f"the arguments are not JSON: {error}") from error
    if parsed is None:
        return {}
    if not isinstance(parsed, Mapping):
        raise InvalidArguments('the arguments must be a JSON object, such as {"capture": "cap_…"}')
    return {str(name): value for name, value in parsed.items()}
