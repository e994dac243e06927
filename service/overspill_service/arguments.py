"""The arguments of the command line. Nothing here is slow to import, so help comes at once."""

from __future__ import annotations

import argparse
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from overspill.wire import Scope

from overspill_service import release
from overspill_service.archive.key_issuing import DAY, DEFAULT_LIFE, DEFAULT_OVERLAP
from overspill_service.catalog.key_records import AccessMode
from overspill_service.settings.help import SettingHelp, descriptions

if TYPE_CHECKING:
    from collections.abc import Mapping

USAGE_ERROR: Final = 2
NEVER: Final = "never"
DESCRIPTIONS: Final = {
    "serve": "Serve captures over HTTP.",
    "sweep": "Remove expired captures of all tenants, and orphaned objects, now.",
    "rebuild": "Put every capture of the object store into the catalog.",
    "erase": "Remove all captures of a tenant, except those on hold, and its API keys.",
    "backup": "Back up the embedded store and catalog into a folder, while the service runs.",
    "restore": "Restore a backup into an empty store and catalog, and check every capture.",
    "copy": "Copy all captures and API keys to another object store, and compare every byte.",
    "trust-clock": "Accept this machine's clock after it was changed by more than a minute.",
    "check": "Check that the back ends can be reached and permit what the service needs.",
}


def fail(message: str, code: int) -> int:
    """Say why a command has failed. Return its exit code."""
    print(f"overspill-service: {message}", file=sys.stderr)
    return code


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
        if unknown and not is_group:  # the root's error would name neither the command nor its flags
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
    for name, text in DESCRIPTIONS.items():
        commands_of.add_parser(name, help=text, description=text)
    commands_of.add_parser("work").add_argument("descriptor")
    check = commands_of.choices["check"]
    check.add_argument("--create-bucket", action="store_true", help="create the bucket if it is missing")
    commands_of.choices["erase"].add_argument(
        "--tenant", required=True, help="the tenant whose captures and keys to remove"
    )
    _add_backup_arguments(commands_of.choices)
    _add_key_commands(commands_of)
    return root


def _add_settings(command: argparse.ArgumentParser) -> None:
    """Add every setting as a flag. They come last in the help, and the usage does not list them."""
    command.usage = " ".join(command.format_usage().removeprefix("usage: ").split()) + " [--SETTING VALUE]..."
    settings = command.add_argument_group(
        "settings",
        "Each setting can also be given as OVERSPILL_SETTING in the environment, or in the --config file.",
    )
    settings.add_argument("--config", metavar="FILE", help="TOML file of settings")
    for each in descriptions():
        settings.add_argument("--" + each.name.replace("_", "-"), metavar="VALUE", help=_help(each))


def _help(setting: SettingHelp) -> str:
    facts = [f"default: {setting.default}"] if setting.default else []
    facts += [f"allowed: {setting.allowed}"] if setting.allowed else []
    return f"{setting.meaning} ({'; '.join(facts)})" if facts else setting.meaning


def _add_backup_arguments(commands: Mapping[str, argparse.ArgumentParser]) -> None:
    for name, text in (("backup", "an empty folder, or a new one"), ("restore", "the backup's folder")):
        commands[name].add_argument("folder", help=text)
    copying = commands["copy"]
    copying.add_argument(
        "--to", metavar="URL", required=True, help="the object store to copy to; `--store` is the source"
    )
    copying.add_argument(
        "--delete", action="store_true", help="delete everything at the target that the source does not have"
    )


def _add_key_commands(commands: argparse._SubParsersAction[Any]) -> None:
    """Add `access` and the `keys` commands with their arguments."""
    text = "Show or choose whether requests need a key."
    mode = commands.add_parser("access", help=text, description=text)
    mode.add_argument(
        "mode",
        nargs="?",
        choices=[AccessMode.OPEN.value, AccessMode.CLOSED.value],
        help="open: anyone who reaches the service needs no key and sees everything; closed: every request "
        "needs a key. The choice is remembered, and holds for all replicas. Left out: show the present one",
    )
    group = commands.add_parser("keys", help="Create, list, rotate and revoke API keys.").add_subparsers(
        dest="command", required=True, metavar="COMMAND"
    )
    texts = {
        "create": "create a key and print it; it is shown only once",
        "list": "list the keys, with the time of their last use, to the minute",
        "rotate": "create a key with the rights of another; the other one stays valid for some days",
        "revoke": "revoke a key",
        "hash": "make a key for the tenants' file",
    }
    for name, sentence in texts.items():
        description = f"{sentence[0].upper()}{sentence[1:]}."
        group.add_parser(name, help=sentence, description=description).set_defaults(command=f"keys {name}")
    _add_key_arguments(group.choices)


def _add_key_arguments(commands: Mapping[str, argparse.ArgumentParser]) -> None:
    create, rotate = commands["create"], commands["rotate"]
    create.add_argument("--tenant", required=True, help="the tenant to which the key belongs")
    create.add_argument(
        "--scopes",
        default="write,read,observe",
        help=f"what the key may do, comma-separated: {', '.join(Scope)} (default: write,read,observe)",
    )
    create.add_argument("--name", default="", help="a name that says what the key is for")
    binding = create.add_mutually_exclusive_group()
    binding.add_argument("--session", help="the only session that the key may use (default: all)")
    binding.add_argument(
        "--session-prefix", help="the beginning of the names of all sessions that the key may use"
    )
    usual = {create: f"{DEFAULT_LIFE / DAY:g}", rotate: "the lifetime of the other key"}
    for command, default in usual.items():
        text = f"days until the new key expires, or `{NEVER}` (default: {default})"
        command.add_argument("--expires-days", metavar="DAYS", help=text)
    text = (
        f"days for which the other key still works; `{NEVER}`: no change (default: {DEFAULT_OVERLAP / DAY:g})"
    )
    rotate.add_argument("--overlap-days", metavar="DAYS", help=text)
    for command in (rotate, commands["revoke"]):
        command.add_argument("key", help="the key's id or hash, as `keys list` shows it")
