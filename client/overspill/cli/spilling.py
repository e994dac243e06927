"""A command's output, guarded: printed as it is where it is short, stored and replaced by a notice where not.

The guard decides, as in an agent. Output of more than `IN_MEMORY` bytes reaches it in pieces and never comes
into memory as a whole.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from overspill import wire
from overspill.cli import output
from overspill.cli.process import run_into
from overspill.guard import Guard
from overspill.measure import Limits
from overspill.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from overspill.cli.invocation import Invocation
    from overspill.sync import SyncClient

IN_MEMORY: Final = 16 * 1024 * 1024
_BLOCK: Final = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Whose output it is."""

    tool: str
    call_id: str
    session: str | None
    status: str = ""


def policy_for(tool: str, *, max_bytes: int | None, max_lines: int | None, ttl: int | None) -> Policy:
    """The guard's usual policy, with these limits for this tool where they are given."""
    policy = Policy(ttl=ttl)
    usual = policy.limits(tool)
    limits = Limits(
        usual.max_bytes if max_bytes is None else max_bytes,
        usual.max_lines if max_lines is None else max_lines,
    )
    return policy.merged({tool: limits})


def minted_call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def run(at: Invocation, words: Sequence[str], origin: Origin, policy: Policy) -> int:
    """Run the command `words`, print its output or what stands in for it; the command's exit code.

    Raises `Unstartable`, and `Failure` before anything runs where the options are wrong.
    """
    with at.client() as client, _file() as (writer, reader):
        code = run_into(writer, words)
        size = os.fstat(reader.fileno()).st_size
        ended = Origin(
            tool=origin.tool, call_id=origin.call_id, session=origin.session, status=f"exit {code}"
        )
        if size <= IN_MEMORY:
            _print_guarded(client, reader.read(size), ended, policy)
        else:
            _print_long(client, reader, size, ended, policy)
    return code


@contextmanager
def _file() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A nameless file, to append to and to read: whoever still appends cannot move the place of reading."""
    with ExitStack() as stack:
        descriptor, path = tempfile.mkstemp(prefix="overspill-run-")
        try:
            os.close(descriptor)
            writer = stack.enter_context(open(path, "ab", buffering=0))  # noqa: PTH123  (as mkstemp gives it)
            reader = stack.enter_context(open(path, "rb", buffering=0))  # noqa: PTH123
        finally:
            os.unlink(path)  # noqa: PTH108
        yield writer, reader


def _print_guarded(client: SyncClient, data: bytes | Iterator[bytes], origin: Origin, policy: Policy) -> None:
    """Pieces are more than the policy lets through."""
    result = data.decode("utf-8", "surrogateescape") if isinstance(data, bytes) else data
    guarded = Guard(client, policy, session=origin.session).process_sync(
        result, tool=origin.tool, call_id=origin.call_id, status=origin.status
    )
    if guarded.notice is None:
        output.write(data if isinstance(data, bytes) else bytes(guarded.value))
        return
    output.line(str(guarded.notice))
    if guarded.outcome is wire.Outcome.TRUNCATED:
        output.say(f"the output was cut and could NOT be stored: {guarded.reason}")
    elif guarded.outcome is wire.Outcome.SPOOLED:
        output.say(f"the output is on this machine only, until it is uploaded: {guarded.reason}")


def _print_long(client: SyncClient, reader: IO[bytes], size: int, origin: Origin, policy: Policy) -> None:
    limits = policy.limits(origin.tool)
    if size <= limits.max_bytes and _lines(pieces_of(reader, size)) <= limits.max_lines:
        for piece in pieces_of(reader, size):
            output.write(piece)
    else:
        _print_guarded(client, pieces_of(reader, size), origin, policy)


def pieces_of(reader: IO[bytes], size: int) -> Iterator[bytes]:
    """The first `size` bytes, whatever is appended meanwhile."""
    reader.seek(0)
    while size > 0 and (piece := reader.read(min(_BLOCK, size))):
        size -= len(piece)
        yield piece


def _lines(pieces: Iterator[bytes]) -> int:
    newlines, piece = 0, b"\n"
    for piece in pieces:
        newlines += piece.count(b"\n")
    return newlines + (not piece.endswith(b"\n"))
