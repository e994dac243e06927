"""The command init: puts the hook into the settings of the agent programs on this machine."""

import difflib
import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from overspill.cli import output
from overspill.cli.declaration import command
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.cli.invocation import Invocation
from overspill.cli.parameters import argument, flag
from overspill.integrations.agent_programs.opencode_plugin import is_ours, plugin_text
from overspill.integrations.agent_programs.own_command import lasting_command
from overspill.integrations.agent_programs.programs import (
    PROGRAMS,
    PluginProgram,
    Program,
    WrongSettings,
)
from overspill.integrations.agent_programs.settings_file import SettingsFile, TextFile

if TYPE_CHECKING:
    from collections.abc import Sequence


_Programs = Annotated[
    tuple[str, ...],
    argument(
        nargs=-1, metavar="PROGRAM", help=f"Any of {', '.join(PROGRAMS)} (default: all that are found)."
    ),
]

_Project = Annotated[bool, flag(help="Change the settings of this folder's project.")]


@command(
    "overspill init                        # show what would change",
    "overspill init --yes",
    "overspill init claude-code --project --yes",
    "overspill init --remove --yes",
    options=(),
)
def init(
    _invocation: Invocation,
    programs: _Programs = (),
    *,
    project: _Project = False,
    remove: Annotated[bool, flag(help="Remove the hook.")] = False,
    yes: Annotated[bool, flag("-y", "--yes", help="Make the change without asking.")] = False,
) -> None:
    """Guard the tools of agent programs on this machine.

    Puts a hook into their settings, or a plugin beside them, after it has shown the change of each file. On
    a terminal it asks first; elsewhere it changes files only with --yes. Other settings stay as they are.
    """
    root = Path.cwd() if project else Path.home()
    found = [_named(name) for name in programs]
    found = found or [each for each in PROGRAMS.values() if each.is_here(root, is_project=project)]
    if not found:
        output.say(f"no agent program was found; name one of {', '.join(PROGRAMS)}")
        raise click.exceptions.Exit(ExitCode.OK if remove else ExitCode.NO)
    paths = [(each, each.path(root, is_project=project)) for each in found]
    changes, refusals = _changes(paths, remove=remove)
    for change in changes:
        output.text("".join(change.lines()))
    for refusal in refusals:
        output.say(refusal)
    if not changes and not refusals:
        output.say(f"nothing is to change for {', '.join(program.title for program in found)}")
    elif changes:
        _make(changes, yes=yes)
    if refusals:
        raise click.exceptions.Exit(ExitCode.FAILED)


def _changes(paths: "Sequence[tuple[Program, Path]]", *, remove: bool) -> "tuple[list[_Change], list[str]]":
    """Return the changes, and the messages about files that cannot be understood."""
    changes, refusals = [], []
    for program, path in paths:
        try:
            changes.append(_Change(program, path, remove=remove))
        except CommandFailure as failure:
            refusals.append(str(failure))
    return [change for change in changes if change.is_any], refusals


def _make(changes: "Sequence[_Change]", *, yes: bool) -> None:
    if not (yes or output.is_terminal()):
        output.say("nothing was changed; --yes makes the change")
    elif yes or click.confirm("Make this change?"):
        for change in changes:
            change.make()
    else:
        raise click.exceptions.Exit(ExitCode.NO)


def _named(name: str) -> Program:
    if name not in PROGRAMS:
        raise CommandFailure(f"{name!r} has no hook; there are {', '.join(PROGRAMS)}", ExitCode.USAGE)
    return PROGRAMS[name]


class _Change:
    """The change to one program's settings file. Raises `CommandFailure` if it cannot be understood."""

    def __init__(self, program: Program, path: Path, *, remove: bool) -> None:
        self._program, self._path = program, path
        with self._refusing(is_removal=remove):
            self._file, self._after = _draft(program, path, remove=remove)

    @property
    def is_any(self) -> bool:
        return self._after != self._file.text

    def lines(self) -> Iterator[str]:
        """Yield the change as a unified diff."""
        before, after = self._file.text.splitlines(keepends=True), self._after.splitlines(keepends=True)
        old, new = (str(self._path) if lines else "/dev/null" for lines in (before, after))
        for line in difflib.unified_diff(before, after, old, new):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"

    def make(self) -> None:
        """Write the file. Raises `CommandFailure`."""
        with self._refusing():
            self._file.write(self._after)
        title = self._program.title
        output.say(f"{title}: {self._path} is changed; it counts from the program's next start")

    @contextmanager
    def _refusing(self, *, is_removal: bool = False) -> Iterator[None]:
        """Raise `CommandFailure` for what is wrong with the file, and show what to add by hand."""
        try:
            yield
        except (OSError, WrongSettings) as error:
            text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            snippet = "" if is_removal else _snippet(self._program)
            by_hand = f"; add by hand: {snippet}" if snippet else ""
            message = f"{self._path}: {text}; it was not changed{by_hand}"
            raise CommandFailure(message, ExitCode.FAILED) from error


def _draft(program: Program, path: Path, *, remove: bool) -> tuple[TextFile, str]:
    """Return the file and its new text, empty if it is to go. Raises `WrongSettings`, and `OSError`."""
    if isinstance(program, PluginProgram):
        return _plugin_draft(program, path, remove=remove)
    file = SettingsFile(path)
    settings = file.settings
    new = (
        program.without_hook(settings) if remove else program.with_hook(settings, shlex.join(_words(program)))
    )
    return file, file.with_settings(new)


def _plugin_draft(program: Program, path: Path, *, remove: bool) -> tuple[TextFile, str]:
    file = TextFile(path)
    if not file.text or is_ours(file.text):
        return file, "" if remove else plugin_text(_words(program))
    if remove:
        return file, file.text
    raise WrongSettings("it is a plugin that overspill init did not write")


def _snippet(program: Program) -> str:
    """Return the settings of the hook alone, or nothing for a plugin, which is a file of its own."""
    if isinstance(program, PluginProgram):
        return ""
    return json.dumps(program.with_hook({}, shlex.join(_words(program))))


def _words(program: Program) -> list[str]:
    return [*lasting_command(), "hook", program.name]
