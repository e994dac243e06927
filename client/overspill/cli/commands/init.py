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
from overspill.integrations.agent_programs.own_command import lasting_command
from overspill.integrations.agent_programs.programs import PROGRAMS, AgentProgram, WrongSettings
from overspill.integrations.agent_programs.settings_file import SettingsFile

if TYPE_CHECKING:
    from collections.abc import Sequence


_Programs = Annotated[
    tuple[str, ...],
    argument(nargs=-1, metavar="PROGRAM", help=f"Any of {', '.join(PROGRAMS)} (else all that are here)."),
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
    remove: Annotated[bool, flag(help="Take the hook out.")] = False,
    yes: Annotated[bool, flag("-y", "--yes", help="Make the change, and do not ask.")] = False,
) -> None:
    """Guard the tools of agent programs on this machine.

    Puts a hook into their settings, after it has shown the change of each file. On a terminal it asks first;
    elsewhere it changes files only with --yes. Other settings stay as they are.
    """
    root = Path.cwd() if project else Path.home()
    found = [_named(name) for name in programs]
    found = found or [each for each in PROGRAMS.values() if each.is_here(root, is_project=project)]
    if not found:
        output.say(f"no agent program was found; name one of {', '.join(PROGRAMS)}")
        raise click.exceptions.Exit(ExitCode.NO)
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


def _changes(
    paths: "Sequence[tuple[AgentProgram, Path]]", *, remove: bool
) -> "tuple[list[_Change], list[str]]":
    """Return what is to change, and what is said of the files that cannot be understood."""
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


def _named(name: str) -> AgentProgram:
    if name not in PROGRAMS:
        raise CommandFailure(f"{name!r} has no hook; there are {', '.join(PROGRAMS)}", ExitCode.USAGE)
    return PROGRAMS[name]


class _Change:
    """What becomes of one program's settings file. Raises `CommandFailure` if it cannot be understood."""

    def __init__(self, program: AgentProgram, path: Path, *, remove: bool) -> None:
        self._program, self._path = program, path
        with self._refusing(is_removal=remove):
            self._file = SettingsFile(self._path)
            known = self._file.settings
            new = program.without_hook(known) if remove else program.with_hook(known, _command(program))
            self._after = self._file.with_settings(new)

    @property
    def is_any(self) -> bool:
        return self._after != self._file.text

    def lines(self) -> Iterator[str]:
        """Yield the change as a unified diff."""
        before, after = self._file.text.splitlines(keepends=True), self._after.splitlines(keepends=True)
        name = str(self._path)
        for line in difflib.unified_diff(before, after, name if before else "/dev/null", name):
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
            said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            by_hand = "" if is_removal else f"; add by hand: {_snippet(self._program)}"
            why = f"{self._path}: {said}; it was not changed{by_hand}"
            raise CommandFailure(why, ExitCode.FAILED) from error


def _snippet(program: AgentProgram) -> str:
    """Return the settings of the hook alone."""
    return json.dumps(program.with_hook({}, _command(program)))


def _command(program: AgentProgram) -> str:
    return shlex.join([*lasting_command(), "hook", program.name])
