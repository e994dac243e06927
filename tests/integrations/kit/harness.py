"""The harness of a framework for the cases: an agent with a scripted model, and the text that it reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from overspill import Guard


@dataclass(frozen=True)
class Call:
    """One tool call of the scripted model. `is_program` says that code makes it, not the model itself."""

    tool: str
    arguments: Mapping[str, Any]
    id: str
    is_program: bool = False


@dataclass(frozen=True)
class Result:
    """What the framework hands to the model for one call.

    `text` is all text of it. `metadata` is what the adapter says to programs, if the framework keeps that.
    """

    text: str
    is_error: bool = False
    images: int = 0
    metadata: Mapping[str, Any] | None = None
    structured: Any = None


@dataclass(frozen=True)
class Run:
    """One conversation: the names of the tools that the model was offered, and the results by call id."""

    offered: Sequence[str]
    results: Mapping[str, Result] = field(default_factory=dict)


class Harness(Protocol):
    """One framework. `page` is the name of its page in client/docs/integrations.

    `ways` are the ways in which it runs an agent: of `sync`, `async` and `stream`, or the eras of a protocol.
    `limits` says which cases the framework itself makes impossible, and why. `names_calls` says whether it
    tells adapters the id of a tool call. `picture` is a tool that returns `count` lines and a picture, in the
    framework's own form.
    """

    page: str
    ways: Sequence[str]
    limits: Mapping[str, str]
    names_calls: bool
    picture: Callable[..., Any]

    def run(
        self,
        way: str,
        tools: Sequence[Any],
        turns: Sequence[Sequence[Call]],
        *,
        guard: Guard | None,
        session: str,
    ) -> Run:
        """Run an agent with these Python functions as tools; without a guard, without the adapter.

        The model makes the calls of one turn at once, and then says that it is done. An exception that the
        framework lets through is raised.
        """

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> Sequence[Run]:
        """Run an agent as each example of the page makes it, with the service of the environment."""
