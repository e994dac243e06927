"""The guard against what other frameworks do to the same tool messages, CPU time of both.

deepagents evicts a long result to a file; LangChain's `ContextEditingMiddleware` clears old results before a model
is asked. Both are in the dependency group `bench`: `uv run --group bench python -m tests.bench peers`.
"""

from __future__ import annotations

import tempfile
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from overspill.guard import Guard
from overspill.policy import Policy
from overspill.spool import Spool
from tests.bench import measuring, table
from tests.bench.guard import LINE
from tests.bench.servers import Unavailable
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

FASTER: Final = Goal(1.0)
SIZES: Final = {"1 KB": 1_024, "40 KB": 40_960, "500 KB": 512_000, "5 MB": 5_000_000}
INLINE: Final = frozenset({"1 KB", "40 KB"})


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:  # noqa: ARG001
    try:
        import deepagents  # noqa: F401, PLC0415
        import langchain  # noqa: F401, PLC0415
    except ImportError as error:
        raise Unavailable(f"{error}; add `--group bench` to `uv run`") from error
    with tempfile.TemporaryDirectory(prefix="overspill-peers-") as root:
        yield from _eviction(root, scale)
    yield from _history(scale)


def _eviction(root: str, scale: Scale) -> Iterator[Row]:
    """One result at a time, as a tool call's middleware sees it. Both write what is long to local files."""
    from deepagents.backends import FilesystemBackend  # noqa: PLC0415
    from deepagents.middleware.filesystem import FilesystemMiddleware  # noqa: PLC0415

    peer: Any = FilesystemMiddleware(backend=FilesystemBackend(root_dir=root, virtual_mode=True))
    backend = peer.backend
    guard = Guard(policy=Policy(max_bytes=80_000, max_lines=10**9), spool=Spool(f"{root}/spool"))
    for name, size in SIZES.items():
        message = _message(size)
        times = scale.pick(2_000 if name in INLINE else 50, 5)
        yield _row(
            f"a tool message of {name}: over deepagents' eviction",
            lambda m=message: guard.process_sync(m, tool="search", call_id=m.tool_call_id),
            lambda m=message: peer._process_large_message(m, backend),
            times,
            scale,
        )


def _history(scale: Scale) -> Iterator[Row]:
    """A whole history before a model call."""
    from langchain.agents.middleware.context_editing import ClearToolUsesEdit  # noqa: PLC0415
    from langchain_core.messages.utils import count_tokens_approximately  # noqa: PLC0415

    from overspill.history import spill_messages_sync  # noqa: PLC0415

    for name, size, count in ("inline", 2_000, 100), ("spilled", 200_000, 20):
        messages = _conversation(size, count)
        guard = Guard()
        yield _row(
            f"a history of {count} tool messages, {name}: over LangChain's context editing",
            lambda m=messages: spill_messages_sync(m, guard),
            lambda m=messages: ClearToolUsesEdit(trigger=100_000).apply(
                list(m), count_tokens=count_tokens_approximately
            ),
            scale.pick(20, 2),
            scale,
        )


def _row(what: str, ours: Callable[[], object], theirs: Callable[[], object], times: int, scale: Scale) -> Row:
    spent: tuple[list[float], list[float]] = [], []
    for _ in range(scale.rounds):
        for work, seconds in zip((ours, theirs), spent, strict=True):
            start = measuring.own()
            for _ in range(times):
                work()
            seconds.append((measuring.own() - start) / times)
    mine, peers = map(median, spent)
    detail = f"{table.microseconds(mine)} against {table.microseconds(peers)}"
    return Row(what, mine / peers, FASTER, detail=detail)


def _message(size: int, number: int = 0) -> Any:
    from langchain_core.messages import ToolMessage  # noqa: PLC0415

    return ToolMessage(content=(LINE * (size // len(LINE) + 1))[:size], tool_call_id=f"call_{number}", name="search")


def _conversation(size: int, count: int) -> list[Any]:
    from langchain_core.messages import AIMessage, HumanMessage  # noqa: PLC0415

    messages: list[Any] = [HumanMessage("look for it")]
    for number in range(count):
        call = {"name": "search", "args": {}, "id": f"call_{number}"}
        messages += [AIMessage("", tool_calls=[call]), _message(size, number)]
    return messages
