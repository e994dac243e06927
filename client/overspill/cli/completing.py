"""What a shell completes a word to, by the metavar of the option or argument that takes it.

The shell itself completes names of files: it is told only that there is one.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completion_of(metavar: str) -> dict[str, Any]:
    """Return the setting of a parameter that makes a shell complete it; none where nothing is known."""
    completer = _COMPLETERS.get(metavar)
    return {} if completer is None else {"shell_complete": completer}


def _file(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(begun, type="file")]


def _folder(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(begun, type="dir")]


def _command(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the first word to a program, and those behind it to files."""
    is_first = parameter.name is None or not context.params.get(parameter.name)
    if not is_first or os.sep in begun:
        return _file(context, parameter, begun)
    return [CompletionItem(name) for name in sorted({*_programs(begun)})]


def _programs(begun: str) -> Iterator[str]:
    """Yield the programs on the PATH whose names begin so."""
    for folder in os.get_exec_path():
        try:
            with os.scandir(folder or os.curdir) as entries:
                yield from (each.name for each in entries if _is_program(each, begun))
        except OSError:  # many a PATH names folders that are not there
            continue


def _is_program(entry: "os.DirEntry[str]", begun: str) -> bool:
    return entry.name.startswith(begun) and entry.is_file() and os.access(entry.path, os.X_OK)


_COMPLETERS: Final[dict[str, Completer]] = {"FILE": _file, "DIR": _folder, "COMMAND": _command}
