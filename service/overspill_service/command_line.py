"""The command line `overspill-service`: serving, the operator's commands, and API keys."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overspill_service import release
from overspill_service.back_ends import (
    check_folders,
    open_audit_log,
    require_folder,
    require_own_folders,
)
from overspill_service.commands import backups, keys, operations
from overspill_service.commands.auditing import audited
from overspill_service.errors import CatalogUnavailable, ServiceError, StoreUnavailable
from overspill_service.errors.system import resource_failure
from overspill_service.server.certificate import certificate_of
from overspill_service.server.process import listening_socket, run, serve, without_password
from overspill_service.server.supervisor import Supervisor
from overspill_service.settings.errors import SettingError
from overspill_service.settings.help import SettingHelp, descriptions
from overspill_service.settings.sources import load, unknown_variables
from overspill_service.telemetry import logs, tracing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from overspill_service.settings.settings import Settings

USAGE_ERROR = 2

SECRET_FLAGS = frozenset({"--key-secret", "--previous-key-secret", "--catalog"})
"""Flags whose values other users must not see: a catalog's URL may have a password."""

WRITE_ELSEWHERE = frozenset({"backup", "copy", "keys hash"})
"""Commands that write nothing into the folders of the settings."""

log = logging.getLogger("overspill_service.start")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Return the exit code: 0 done, 1 failed, 2 wrong usage or settings."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            return _command(given)
        finally:
            _flush_output()
    except OSError as error:  # of standard output: all others have been answered
        return _fail(f"standard output: {error.strerror}", 1)


def _flush_output() -> None:
    """Write out what was printed. Raises `OSError`; at its end, the interpreter does not try once more."""
    if sys.stdout is None:  # it was closed from the beginning
        return
    try:
        sys.stdout.flush()
    except OSError:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise


def _command(given: list[str]) -> int:
    """Run one command. Raises `OSError` if the help cannot be written."""
    options = vars(parser().parse_args(given))
    command = options.pop("command")
    flags = {name: value for name, value in options.items() if value is not None}
    try:
        settings = load(flags, os.environ)
        logs.configure(settings.log_level, settings.log_format)
        if command != "work":
            for sentence in unknown_variables(os.environ):
                log.warning(sentence)
        return _run(command, settings, options, given)
    except SettingError as error:
        return _fail(str(error), USAGE_ERROR)
    except (ServiceError, OSError) as error:
        where = "" if command == "copy" else _back_end_of(settings, error)
        return _fail(where + str(resource_failure(error) or error), 1)
    except (RuntimeError, MemoryError) as error:
        if lack := resource_failure(error):
            return _fail(str(lack), 1)
        raise


def _back_end_of(settings: Settings, error: Exception) -> str:
    """Return which back end is not there, as the beginning of a message. Empty for other errors."""
    match error:
        case CatalogUnavailable():
            return f"catalog {without_password(settings.catalog)}: "
        case StoreUnavailable() if settings.store:
            return f"store {without_password(settings.store)}: "
    return ""


def _fail(message: str, code: int) -> int:
    print(f"overspill-service: {message}", file=sys.stderr)
    return code


def _run(command: str, settings: Settings, options: dict[str, Any], given: list[str]) -> int:
    flags = {name: value for name, value in options.items() if value is not None}
    reread = partial(load, flags, os.environ)
    if command in {"serve", "work"}:
        # The default would end the process before the server has set its own handler.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if command == "serve":
        check_folders(settings)
        _warn_of_visible_secrets(flags)
        require_folder(settings)
        certificate_of(settings)
    match command:
        case "serve" if settings.workers > 1:
            return _supervise(settings, given[1:])
        case "serve":
            with listening_socket(settings) as listener, tracing.exporting():
                run(serve(settings, listener, reread))
            return 0
        case "work":
            with tracing.exporting():
                run(serve(settings, socket.socket(fileno=int(options["descriptor"])), reread, sys.stdin))
            return 0
        case _:
            return asyncio.run(_operate(command, settings, options))


async def _operate(command: str, settings: Settings, options: dict[str, Any]) -> int:
    if command not in WRITE_ELSEWHERE:
        require_own_folders(settings)
    audit = await open_audit_log(settings)
    try:
        return await audited(operations.COMMANDS[command](settings, options), audit, command, options)
    finally:
        await audit.close()


def _supervise(settings: Settings, arguments: list[str]) -> int:
    if settings.store == "memory:" or settings.catalog == "memory:":
        raise SettingError("workers share nothing in memory: name a store and a catalog, or use one worker")
    with listening_socket(settings) as listener:
        try:
            return asyncio.run(_run_workers(settings, listener, _without_secrets(arguments)))
        except ExceptionGroup as group:  # raised by the tasks that keep one worker each
            raise group.exceptions[0] from None


def _warn_of_visible_secrets(flags: Mapping[str, Any]) -> None:
    for name in map(_setting_of, sorted(SECRET_FLAGS)):
        if _is_secret(flags, name):
            log.warning(
                "other users of this machine see the secret in %s among this process's arguments: "
                "give it as OVERSPILL_%s instead",
                name,
                name.upper(),
            )


def _setting_of(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _is_secret(flags: Mapping[str, Any], name: str) -> bool:
    """Return whether a flag was given a secret. A catalog's URL is one only if it has a password."""
    value = str(flags.get(name) or "")
    return bool(value) and (name != "catalog" or "@" in value)


def _without_secrets(arguments: list[str]) -> list[str]:
    """Return the arguments for workers. Secrets go to them in the environment: every user sees arguments."""
    kept, words = [], iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        # Compared by its beginning, because argparse takes the beginning of a flag for the flag.
        secret = next((each for each in SECRET_FLAGS if flag.strip("-") and each.startswith(flag)), None)
        if secret:
            name = "OVERSPILL_" + _setting_of(secret).upper()
            os.environ[name] = value if equals else next(words, "")
        else:
            kept.append(word)
    return kept


async def _run_workers(settings: Settings, listener: socket.socket, arguments: list[str]) -> int:
    return await Supervisor(settings, listener, arguments).run()


class _Parser(argparse.ArgumentParser):
    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a message. Raises `OSError` if the help cannot be written, which argparse itself ignores."""
        if file is not None and file is sys.stdout:
            print(message, end="")
        else:
            super()._print_message(message, file)


class _Command(_Parser):
    """The parser of one command. It gets the settings' flags only if its command is run: they take long."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        is_group = self._subparsers is not None
        if not is_group:
            _add_settings(self)
        parsed, unknown = super().parse_known_args(args, namespace)
        if (
            unknown and not is_group
        ):  # left to the root, the error would neither name the command nor its flags
            self.error(self._advice(unknown))
        return parsed, unknown

    def _advice(self, unknown: list[str]) -> str:
        flag = unknown[0].partition("=")[0]
        alike = get_close_matches(flag, self._option_string_actions, n=1, cutoff=0.75)
        what_next = f"did you mean {alike[0]}?" if alike else f"{self.prog} --help names all flags"
        return f"{flag} is not known here: {what_next}"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line. Every setting is a flag of every command."""
    root = _Parser(prog="overspill-service", description="The capture service of Overspill.")
    root.add_argument("--version", action="version", version=f"overspill-service {release()}")
    commands_of = root.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Command)
    for name, text in operations.DESCRIPTIONS.items():
        commands_of.add_parser(name, help=text, description=text)
    commands_of.add_parser("work").add_argument("descriptor")
    check = commands_of.choices["check"]
    check.add_argument("--create-bucket", action="store_true", help="create the bucket if it is missing")
    commands_of.choices["erase"].add_argument("--tenant", required=True, help="whose captures and keys")
    backups.add_arguments(commands_of)
    keys.add_commands(commands_of)
    return root


def _add_settings(command: argparse.ArgumentParser) -> None:
    """Add every setting as a flag. They come last in the help, and the usage does not list them."""
    command.usage = " ".join(command.format_usage().removeprefix("usage: ").split()) + " [--SETTING VALUE]..."
    settings = command.add_argument_group(
        "settings",
        "Each can also be given as OVERSPILL_SETTING in the environment, or in the file of --config.",
    )
    settings.add_argument("--config", metavar="FILE", help="TOML file of settings")
    for each in descriptions():
        settings.add_argument("--" + each.name.replace("_", "-"), metavar="VALUE", help=_help(each))


def _help(setting: SettingHelp) -> str:
    facts = [f"default: {setting.default}"] if setting.default else []
    facts += [f"allowed: {setting.allowed}"] if setting.allowed else []
    return f"{setting.meaning} ({'; '.join(facts)})" if facts else setting.meaning
