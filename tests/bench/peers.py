"""The guard against what other frameworks do to the same tool messages: CPU time of both.

deepagents evicts a long result to a file; LangChain's context editing clears old results before each call of
a model, and stores nothing. Both are in the dependency group `bench`:
`uv run --group bench python -m tests.bench peers`.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from dataclasses import replace
from functools import partial
from itertools import count
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.previews.cut import HEAD
from overspill.spools.spool import Spool

from tests.bench import measuring, table, texts
from tests.bench.servers import Unavailable
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

    Work = Callable[[Sequence[Any]], object]

FASTER: Final = Goal(1.0)
SIZES: Final = {
    "1 KB": (1_024, 2_000),
    "40 KB": (40_960, 2_000),
    "500 KB": (512_000, 40),
    "5 MB": (5_000_000, 8),
}
"""Bytes, and messages a round."""
EVICTED: Final = 80_000
"""deepagents' default of 20,000 tokens, as it reckons them: characters."""
RUNS: Final = {"inline": 2_000, "spilled": 200_000}
CALLS: Final = 100
_numbers: Final = count()


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    missing = [name for name in ("deepagents", "langchain") if importlib.util.find_spec(name) is None]
    if missing:
        raise Unavailable(f"no {' and no '.join(missing)}; add `--group bench` to `uv run`")
    for name, (size, times) in SIZES.items():
        sizes = [size] * scale.pick(times, 3)
        yield _eviction(name, sizes, Policy(), scale)
        if size > EVICTED:
            yield _eviction(f"{name}, its beginning shown", sizes, Policy(strategy=HEAD), scale)
    for name, size in RUNS.items():
        yield _run(name, [size] * scale.pick(CALLS, 3), scale)


def _eviction(name: str, sizes: Sequence[int], policy: Policy, scale: Scale) -> Row:
    """One result at a time, as the middleware of tool calls sees it. Both write what is long to local files.

    deepagents shows five lines of either end. It does not see to it that the file is on the disk, as the
    spool does: of that waiting only the CPU time counts here.
    """
    backends = importlib.import_module("deepagents.backends")
    middleware = importlib.import_module("deepagents.middleware.filesystem")
    with _directory() as root:
        files = backends.FilesystemBackend(root_dir=root, virtual_mode=True)
        peer = middleware.FilesystemMiddleware(backend=files)
        guard = Guard(
            policy=replace(policy, max_bytes=EVICTED, max_lines=EVICTED), spool=Spool(f"{root}/spool")
        )

        def theirs(messages: Sequence[Any]) -> None:
            for message in messages:
                peer._intercept_large_tool_result(message)  # its step behind the tool itself

        what = f"a tool message of {name}: over deepagents' eviction"
        return _row(what, partial(_guarded, guard), theirs, sizes, scale)


def _run(name: str, sizes: Sequence[int], scale: Scale) -> Row:
    """A whole run of an agent: each tool's result passes the guard, or each model call the middleware."""
    middleware = importlib.import_module("langchain.agents.middleware")
    peer = middleware.ContextEditingMiddleware()

    def theirs(messages: Sequence[Any]) -> None:
        history: list[Any] = []
        for message in messages:
            history += [_asking(message), message]
            request = middleware.ModelRequest(model=None, messages=history)
            peer.wrap_model_call(request, lambda edited: edited)

    with _directory() as root:
        guard = Guard(spool=Spool(f"{root}/spool"))
        run = f"a run of {len(sizes)} tool messages of {sizes[0] // 1_000} KB, {name}"
        what = f"{run}: over LangChain's context editing"
        return _row(what, partial(_guarded, guard), theirs, sizes, scale)


def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="overspill-peers-")


def _guarded(guard: Guard, messages: Sequence[Any]) -> None:
    for message in messages:
        guard.process_sync(message, tool="search", call_id=message.tool_call_id)


def _row(what: str, ours: Work, theirs: Work, sizes: Sequence[int], scale: Scale) -> Row:
    spent: tuple[list[float], list[float]] = [], []
    for _ in range(scale.rounds + 1):
        for work, seconds in zip((ours, theirs), spent, strict=True):
            messages = [_message(size) for size in sizes]
            start = measuring.own()
            work(messages)
            seconds.append((measuring.own() - start) / len(messages))
    mine, peers = (median(seconds[1:]) for seconds in spent)
    detail = f"{table.microseconds(mine)} of CPU a message against {table.microseconds(peers)}"
    return Row(what, mine / peers, FASTER, detail=detail)


def _message(size: int) -> Any:
    from langchain_core.messages import ToolMessage  # noqa: PLC0415

    text = texts.text(texts.LOG, size).decode()
    return ToolMessage(content=text, tool_call_id=f"call_{next(_numbers)}", name="search")


def _asking(message: Any) -> Any:
    from langchain_core.messages import AIMessage  # noqa: PLC0415

    return AIMessage("", tool_calls=[{"name": message.name, "args": {}, "id": message.tool_call_id}])
