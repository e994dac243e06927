"""Completes words for a shell. The metavar of an option or argument says what its value can be.

The shell completes names of files by itself: it is only told to. Captures are looked up in the service, as
`overspill ls` does.
"""

import os
from collections.abc import Callable, Iterator
from typing import Final

import click
from click.shell_completion import CompletionItem

from overspill.cli.printable import printable_line

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_MAX_CAPTURES: Final = 100
"""How many captures are offered: the newest ones."""
_SECONDS: Final = 2.0
"""How long a person who presses Tab waits for the service."""


_file: Final[Completer] = click.File().shell_complete


def _command(context: click.Context, parameter: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Complete the first word to a program, and all other words to files."""
    is_first = parameter.name is None or not context.params.get(parameter.name)
    if not is_first or os.sep in prefix:
        return _file(context, parameter, prefix)
    return [CompletionItem(name) for name in sorted({*_programs(prefix)})]


def _capture(context: click.Context, _parameter: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Complete to the newest captures; to nothing if the service does not list them."""
    from overspill.errors import OverspillError  # noqa: PLC0415  (for this alone: other words need no service)
    from overspill.transfer.sync import SyncClient  # noqa: PLC0415

    url, key = (context.params.get(name) or context.find_root().params.get(name) for name in ("url", "key"))
    try:
        with SyncClient(url, key, timeout=_SECONDS, connect_timeout=_SECONDS, retries=0) as client:
            captures = client.list(limit=_MAX_CAPTURES).captures
    except (OverspillError, ValueError):
        return []
    return [
        CompletionItem(each.id, help=printable_line(f"{each.tool or 'no tool'}, {each.lines:,} lines"))
        for each in captures
        if each.id.startswith(prefix)
    ]


def _programs(prefix: str) -> Iterator[str]:
    """Yield the programs on the PATH whose names begin so."""
    for folder in os.get_exec_path():
        try:
            with os.scandir(folder or os.curdir) as entries:
                yield from (each.name for each in entries if _is_program(each, prefix))
        except OSError:  # a folder on the PATH is often missing
            continue


def _is_program(entry: "os.DirEntry[str]", prefix: str) -> bool:
    return entry.name.startswith(prefix) and entry.is_file() and os.access(entry.path, os.X_OK)


COMPLETERS: Final[dict[str, Completer]] = {
    "FILE": _file,
    "DIR": click.Path(file_okay=False).shell_complete,
    "COMMAND": _command,
    "REF": _capture,
}
"""The functions that complete parameters, by metavar."""
