"""Many different outputs of the kinds that agents see: logs, searches, data, code, prose, failures."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.bench import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def source_code() -> Iterator[str]:
    """Python's own library."""
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        yield path.read_text(errors="replace")


def tracebacks() -> Iterator[str]:
    for number in count():
        yield "Traceback (most recent call last):\n"
        for depth in range(8):
            place = f"/srv/app/part_{number * depth % 17}.py"
            yield f'  File "{place}", line {3 * number + depth}, in step_{depth}\n'
            yield f"    return self.step_{depth + 1}(request, {number})\n"
        yield f"ValueError: item {number} of batch {number % 7} cannot be parsed\n\n"


def one_line_again_and_again() -> Iterator[str]:
    for number in count():
        yield f"waiting for the lock of part {number % 3}, try again\n"


def escaped_bytes() -> Iterator[str]:
    """What a program prints that is not text, in the latin-1 encoding."""
    for number in count():
        yield (bytes(range(256)) * (1 + number % 3)).decode("latin-1")


MORE: Final[tuple[Callable[[], Iterator[str]], ...]] = (
    source_code,
    tracebacks,
    one_line_again_and_again,
    escaped_bytes,
)
KINDS: Final = len(texts.KINDS) + len(MORE)


def outputs(number: int, size: int) -> list[str]:
    """Return `number` outputs of `size` characters, one kind after the other. No two are equal."""
    each = -(-number // KINDS)
    kinds = [_of_kind(kind, each * size) for kind in texts.KINDS]
    kinds += [_joined(pieces(), each * size) for pieces in MORE]
    return [f"output {at}\n{kinds[at % KINDS][at // KINDS * size :]}"[:size] for at in range(number)]


def _of_kind(kind: str, size: int) -> str:
    return _repeated(texts.text(kind, size).decode(errors="ignore"), size)


def _joined(pieces: Iterator[str], size: int) -> str:
    """At least `size` characters, from the beginning again if the pieces end before."""
    made, length = [], 0
    for piece in pieces:
        made.append(piece)
        length += len(piece)
        if length >= size:
            break
    return _repeated("".join(made), size)


def _repeated(text: str, size: int) -> str:
    return text * -(-size // len(text))
