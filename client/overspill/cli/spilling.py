"""A command's output, guarded: printed as it is where it is short, stored and replaced by a notice where not.

Up to `IN_MEMORY` bytes the guard decides, as in an agent. Longer output never comes into memory: it is
stored from its file, and its preview shows the two ends only.
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from overspill import measure, notice, wire
from overspill.cli import output
from overspill.cli.process import run_into
from overspill.errors import OverspillError
from overspill.guard import Guard
from overspill.measure import Limits
from overspill.notice import Facts
from overspill.plain import clean
from overspill.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from overspill.cli.invocation import Invocation
    from overspill.sync import SyncClient

IN_MEMORY: Final = 16 * 1024 * 1024
_BLOCK: Final = 1024 * 1024
_END_LINES: Final = 40


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
            _print_long(client, Part(reader, size), ended, policy)
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


def _print_guarded(client: SyncClient, data: bytes, origin: Origin, policy: Policy) -> None:
    guarded = Guard(client, policy, session=origin.session).process_sync(
        data.decode("utf-8", "surrogateescape"),
        tool=origin.tool,
        call_id=origin.call_id,
        status=origin.status,
    )
    if guarded.outcome is wire.Outcome.INLINE:
        output.write(data)
        return
    output.line(str(guarded.value))
    if guarded.outcome is wire.Outcome.TRUNCATED and guarded.reason:
        _lament(guarded.reason)
    elif guarded.outcome is wire.Outcome.SPOOLED:
        output.say(f"the output is on this machine only, until it is uploaded: {guarded.reason}")


def _lament(reason: str) -> None:
    output.say(f"the output was cut and could NOT be stored: {reason}")


def _print_long(client: SyncClient, file: Part, origin: Origin, policy: Policy) -> None:
    digest, lines = _measured(file)
    limits = policy.limits(origin.tool)
    if file.size <= limits.max_bytes and lines <= limits.max_lines:
        file.seek(0)
        shutil.copyfileobj(file, output.stream(), _BLOCK)
        return
    session = client.session if origin.session is None else origin.session
    name = wire.capture_id(session, origin.call_id, digest)
    file.seek(0)
    try:
        entry = client.put(
            file,
            id=name,
            call_id=origin.call_id,
            session=session,
            tool=origin.tool,
            ttl=policy.ttl,
            status=origin.status,
        )
    except OverspillError as error:
        facts = _facts(file, origin, policy, name, digest, lines, policy.lost_preview_bytes)
        output.line(str(notice.truncated(facts, str(error))))
        _lament(str(error))
    else:
        facts = _facts(file, origin, policy, name, digest, lines, policy.preview_bytes)
        output.line(str(notice.captured(facts, entry.expires)))


def _measured(file: Part) -> tuple[bytes, int]:
    """SHA-256 and the number of lines."""
    state, newlines, block = hashlib.sha256(), 0, b"\n"
    file.seek(0)
    while piece := file.read(_BLOCK):
        block = piece
        state.update(block)
        newlines += block.count(b"\n")
    return state.digest(), newlines + (not block.endswith(b"\n"))


def _facts(
    file: Part, origin: Origin, policy: Policy, name: str, digest: bytes, lines: int, budget: int
) -> Facts:
    return Facts(
        id=name,
        tool=origin.tool,
        size=file.size,
        lines=lines,
        sha256=digest,
        preview=_ends(file, lines, budget),
        reader=policy.reader,
    )


def _ends(file: Part, lines: int, budget: int) -> str:
    """The first and the last lines, as many whole ones as fit."""
    head, tail = file.at(0, budget * 3 // 5), file.at(file.size - budget * 2 // 5, budget * 2 // 5)
    head = b"".join((head[: head.rfind(b"\n") + 1] or head).splitlines(keepends=True)[:_END_LINES])
    tail = b"".join((tail[tail.find(b"\n", 0, -1) + 1 :]).splitlines(keepends=True)[-_END_LINES:])
    gone_lines = lines - head.count(b"\n") - measure.lines_of_bytes(tail)
    gone_bytes = file.size - len(head) - len(tail)
    newline = "" if head.endswith(b"\n") else "\n"
    gap = f"{newline}… [{measure.counted(gone_lines, 'line')}, {gone_bytes:,} bytes not shown] …\n"
    return clean(head.decode(errors="replace")) + gap + clean(tail.decode(errors="replace"))


class Part(io.BufferedIOBase):
    """The first `size` bytes of a file, whatever is appended to it meanwhile."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self.size = file, size

    def at(self, offset: int, length: int) -> bytes:
        self.seek(offset)
        return self.read(length)

    def read(self, length: int | None = -1, /) -> bytes:
        left = max(0, self.size - self.tell())
        return self._file.read(left if length is None or length < 0 else min(length, left))

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True
