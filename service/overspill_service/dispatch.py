"""Run what the command line says: serving, the operator's commands, and API keys."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from overspill_service.arguments import USAGE_ERROR, fail
from overspill_service.back_ends import (
    check_folders,
    open_audit_log,
    require_folder,
    require_own_folders,
)
from overspill_service.commands import operations
from overspill_service.commands.auditing import audited
from overspill_service.errors import CatalogUnavailable, ServiceError, StoreUnavailable
from overspill_service.errors.system import resource_failure
from overspill_service.server.certificate import certificate_of
from overspill_service.server.process import listening_socket, run, serve, without_password
from overspill_service.server.supervisor import Supervisor
from overspill_service.settings.errors import SettingError
from overspill_service.settings.sources import load, unknown_variables
from overspill_service.telemetry import logs, tracing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill_service.settings.settings import Settings

SECRET_FLAGS = frozenset({"--key-secret", "--previous-key-secret", "--catalog"})
"""Flags whose values other users must not see: a catalog's URL may have a password."""

WRITE_ELSEWHERE = frozenset({"backup", "copy", "keys hash"})
"""Commands that write nothing into the folders of the settings."""

log = logging.getLogger("overspill_service.start")


def run_command(options: dict[str, Any], words: list[str]) -> int:
    """Run the command of parsed arguments, which were `words` before. Return the exit code of `main`."""
    command = options.pop("command")
    flags = {name: value for name, value in options.items() if value is not None}
    try:
        settings = load(flags, os.environ)
        logs.configure(settings.log_level, settings.log_format)
        if command != "work":
            for sentence in unknown_variables(os.environ):
                log.warning(sentence)
        return _run(command, settings, options, words)
    except SettingError as error:
        return fail(str(error), USAGE_ERROR)
    except (ServiceError, OSError) as error:
        where = "" if command == "copy" else _back_end_of(settings, error)
        return fail(where + str(resource_failure(error) or error), 1)
    except (RuntimeError, MemoryError) as error:
        if lack := resource_failure(error):
            return fail(str(lack), 1)
        raise


def _back_end_of(settings: Settings, error: Exception) -> str:
    """Return which back end is not there, as the beginning of a message. Empty for other errors."""
    match error:
        case CatalogUnavailable():
            return f"catalog {without_password(settings.catalog)}: "
        case StoreUnavailable() if settings.store:
            return f"store {without_password(settings.store)}: "
    return ""


def _run(command: str, settings: Settings, options: dict[str, Any], words: list[str]) -> int:
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
            return _supervise(settings, words[1:])
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
    others, words = [], iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        # Compared by its beginning, because argparse takes the beginning of a flag for the flag.
        secret = next((each for each in SECRET_FLAGS if flag.strip("-") and each.startswith(flag)), None)
        if secret:
            name = "OVERSPILL_" + _setting_of(secret).upper()
            os.environ[name] = value if equals else next(words, "")
        else:
            others.append(word)
    return others


async def _run_workers(settings: Settings, listener: socket.socket, arguments: list[str]) -> int:
    return await Supervisor(settings, listener, arguments).run()
