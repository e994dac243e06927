"""Searches that cannot hang their caller.

Python's regular expressions backtrack, hold the interpreter while they do, and cannot be stopped: the pattern
of a model may take hours. So a search runs in a process of its own, with little memory, which is killed when
its time is up. Only plain texts whose case matters are looked for in the calling thread: that is linear.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from overspill.spools.local.grep import WrongCursor, grep
from overspill.spools.local.lines import Whole
from overspill.spools.local.pattern import Unsupported
from overspill.spools.local.places import Bytes
from overspill.wire import GrepQuery, Text  # noqa: TC001  (msgspec resolves annotations at run time)

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS: Final = 5.0
"""After which a search stops where it is; its answer says how to go on."""
PATIENCE: Final = 3.0
"""Seconds beyond that after which it is killed, since it is stuck in one line."""
MEMORY: Final = 1024**3
"""Bytes that its process may have."""
_CODE: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; from overspill.spools.local.engine import serve; serve()"
)
_STUCK: Final = (
    "the pattern takes too long on this text: it can match in too many ways. Write it without repetitions "
    "inside repetitions, as (a+)+, or use fixed=true"
)
_NO_PROCESS: Final = (
    "no process can be started ({}), which patterns need while the capture waits on this machine. "
    "fixed=true with ignore_case=false works"
)


class _Task(Struct, frozen=True):
    query: GrepQuery
    descriptor: int
    size: int
    lines: int


class _Done(Struct, frozen=True, omit_defaults=True):
    """`text`, or what is wrong with the pattern, or neither where the cursor is wrong."""

    text: Text | None = None
    unsupported: str | None = None


def search(query: GrepQuery, file: IO[bytes], size: int, lines: int) -> Text:
    """The lines that match. Raises `Unsupported`, `WrongCursor` and `OSError`."""
    if query.fixed and not query.ignore_case:
        return grep(query, Whole(Bytes(file, size), lines), is_late=_lateness())
    done = _run(_Task(query, file.fileno(), size, lines))
    if done.text is not None:
        return done.text
    if done.unsupported is not None:
        raise Unsupported(done.unsupported)
    raise WrongCursor


def _run(task: _Task) -> _Done:
    paths = [path for path in sys.path if path]
    try:
        ended = subprocess.run(  # noqa: S603  (this very interpreter, with this very package)
            [sys.executable, "-I", "-S", "-c", _CODE, *paths],
            input=msgspec.json.encode(task),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(task.descriptor,),
            timeout=SECONDS + PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unsupported(_STUCK) from None
    except (OSError, ValueError) as error:
        raise Unsupported(_NO_PROCESS.format(error)) from error
    try:
        return msgspec.json.decode(ended.stdout, type=_Done)
    except msgspec.DecodeError:  # it ended without an answer, for want of memory as a rule
        raise Unsupported(_STUCK) from None


def serve() -> None:
    """Be the process: one task from standard input, its answer to standard output."""
    _limit()
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=_Task)
    with open(task.descriptor, "rb", buffering=0) as file:  # noqa: PTH123  (it is open)
        whole = Whole(Bytes(file, task.size), task.lines)
        try:
            done = _Done(text=grep(task.query, whole, is_late=_lateness()))
        except Unsupported as error:
            done = _Done(unsupported=str(error))
        except MemoryError:
            done = _Done(unsupported=_STUCK)
        except WrongCursor:
            done = _Done()
    sys.stdout.buffer.write(msgspec.json.encode(done))


def _limit() -> None:
    """Bound memory and time by the system too: the parent may die."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415  (not on every system)

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        seconds = int(SECONDS + PATIENCE) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def _lateness() -> Callable[[], bool]:
    until = time.monotonic() + SECONDS
    return lambda: time.monotonic() > until
