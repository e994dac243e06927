"""The tool with which agents read captures: `inspect_output`. Every notice names it.

    tool = inspection_tool(client)          # async for a Client, sync for a SyncClient
    answer = await tool(capture="cap_…", mode="grep", pattern="error")

It accepts anything that a model calls it with, and never raises: an answer with `error` says what was wrong.
"""

from __future__ import annotations

import inspect as inspect_module
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast, overload

from overspill.agent_tools.agent_tool import Answer
from overspill.agent_tools.arguments import schema_of
from overspill.agent_tools.capture_source import CaptureSource
from overspill.agent_tools.error_answers import InvalidArguments, error_answer
from overspill.agent_tools.fitting import AnswerFitter
from overspill.agent_tools.inspect_request import (
    MAX_MATCHES,
    USUAL_CHARS,
    WAIT_SECONDS,
    InspectMode,
    InspectRequest,
)
from overspill.agent_tools.repeated_looks import RepeatedLooks
from overspill.execution.threads import run_blocking
from overspill.spools.capture import LocalCapture
from overspill.transfer.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from datetime import datetime

    from overspill.spools.holder import Holder
    from overspill.spools.spool import Spool
    from overspill.transfer.sync import SyncClient

R_co = TypeVar("R_co", covariant=True)

NAME: Final = "inspect_output"
ITSELF: Final = "this tool"
"""The name of the tool in the description. It differs if another tool has the usual name."""
DESCRIPTION: Final = """\
Read a part of a tool output that was too long to show and is stored whole.

capture is the handle from the notice ("cap_…"), or "call:" and the id of the tool call. Modes:
"head" and "tail" give the first and the last lines; "grep" the lines that match pattern, ignoring
case, each with context_lines around it; "range" the lines from start to end, counted from 1;
"summary" the size, the kind, where errors are, what repeats, the first and the last lines. If the
tool still runs, "wait" waits for a new line that matches pattern, for a number of lines, or for the
end, and gives the new lines, state and reason. Use it instead of polling.
Prefer grep and summary to reading everything.

The answer has content, start_line, end_line, total_lines, total_bytes, matches and truncated (a
limit cut it short). Grep's content is numbered: "12:" a match, "11-" a line around it; matches has
the numbers of the matching lines, and match_count how many they are. next holds the arguments of
the call that reads on, and is null if nothing is left. On failure, error says what is wrong
and what to do."""
"""The description for models. It is not a docstring, because `python -OO` removes docstrings."""


class InspectOutput(Protocol[R_co]):
    """The tool's signature."""

    def __call__(  # noqa: PLR0913, PLR0917  (one for each thing that can be asked)
        self,
        capture: str,
        mode: InspectMode = "head",
        lines: int | None = None,
        pattern: str | None = None,
        context_lines: int = 3,
        start: int | None = None,
        end: int | None = None,
        ignore_case: bool = True,  # noqa: FBT001, FBT002  (a model names its arguments)
        fixed: bool = False,  # noqa: FBT001, FBT002
        invert: bool = False,  # noqa: FBT001, FBT002
        from_end: bool = False,  # noqa: FBT001, FBT002
        max_matches: int = MAX_MATCHES,
        offset: int = 0,
        cursor: str | None = None,
        structured: bool = False,  # noqa: FBT001, FBT002
        max_chars: int = USUAL_CHARS,
        timeout_seconds: float = WAIT_SECONDS,
    ) -> R_co:
        """Read a part of a capture. `DESCRIPTION` says what each argument is."""


INSPECT_OUTPUT_SCHEMA: Final = schema_of(InspectRequest)
"""The JSON Schema of the arguments, for a provider's tool definition."""


@overload
def inspection_tool(
    client: Client, *, session: str | None = None, spool: Spool | bool = True
) -> InspectOutput[Coroutine[Any, Any, Answer]]: ...
@overload
def inspection_tool(
    client: SyncClient | None, *, session: str | None = None, spool: Spool | bool = True
) -> InspectOutput[Answer]: ...
def inspection_tool(
    client: Client | SyncClient | None, *, session: str | None = None, spool: Spool | bool = True
) -> InspectOutput[Any]:
    """Return the tool that reads through `client`, with name, signature and docstring for frameworks.

    Captures that still wait in the spool are read there; `spool` is that of `Guard`. Without a client, only
    the given spool is read. `session` narrows `call:` handles; the client's, if it is not given. Answers can
    be written as JSON.
    """
    source, looks = CaptureSource(client, session=session, spool=spool), RepeatedLooks(ITSELF)
    if isinstance(client, Client):
        own_loop = client

        async def inspect_output(*args: Any, **named: Any) -> Answer:
            return await inspect(own_loop, source.holder, session, looks, *args, **named)

        return _presented(inspect_output)

    def inspect_output_sync(*args: Any, **named: Any) -> Answer:
        try:
            return source.run(lambda client: inspect(client, source.holder, session, looks, *args, **named))
        except Exception as error:  # noqa: BLE001  (there is no loop thread, or the client is closed)
            return error_answer(error)

    return _presented(inspect_output_sync)


async def inspect(
    client: Client | None,
    holder: Holder,
    session: str | None,
    looks: RepeatedLooks,
    /,
    *args: Any,
    **named: Any,
) -> Answer:
    """Answer one call with the arguments of `InspectOutput`. Raises nothing but `CancelledError`."""
    try:
        request = _request(args, named)
        async with holder.source_async(client, request.capture, session) as source:
            return await answered(request, source, session, looks)
    except Exception as error:  # noqa: BLE001  (the boundary: the tool never breaks its agent)
        return error_answer(error)


async def answered(
    request: InspectRequest,
    source: Client | LocalCapture,
    session: str | None,
    looks: RepeatedLooks,
    since: datetime | None = None,
) -> Answer:
    """Return the answer to a request, as long as it may be. Raises what reading raises."""
    fitting, answer = AnswerFitter(request, session, looks), None
    while answer is None:
        if isinstance(source, LocalCapture):
            found = await run_blocking(request.read, source, session, fitting.max_bytes, since)
        else:
            found = await request.read(source, session, fitting.max_bytes, since)
        answer = fitting.answer(found)
    looks.note(request, session, found)
    return answer


def _signature() -> inspect_module.Signature:
    """Return the signature of `InspectOutput.__call__` without `self`."""
    whole = inspect_module.signature(InspectOutput.__call__, eval_str=True)
    _, *parameters = whole.parameters.values()
    return whole.replace(parameters=parameters, return_annotation=Answer)


_SIGNATURE: Final = _signature()


def _request(args: tuple[Any, ...], named: Mapping[str, Any]) -> InspectRequest:
    try:
        bound = _SIGNATURE.bind(*args, **named)
    except TypeError as error:
        raise InvalidArguments(f"{error}; {NAME} takes {', '.join(_SIGNATURE.parameters)}") from error
    return InspectRequest.of(bound.arguments)


def _presented(function: Callable[..., Any]) -> InspectOutput[Any]:
    """Return `function` with the name, docstring and signature that frameworks show."""
    function.__name__ = function.__qualname__ = NAME
    function.__doc__ = DESCRIPTION
    annotations = {name: parameter.annotation for name, parameter in _SIGNATURE.parameters.items()}
    function.__annotations__ = {**annotations, "return": Answer}
    setattr(function, "__signature__", _SIGNATURE)  # noqa: B010  (no attribute that a type checker knows)
    return cast("InspectOutput[Any]", function)
