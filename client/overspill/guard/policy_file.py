"""A policy in a file, in TOML: the limits and previews of tools, which a person can read and review.

version = 1
max_bytes = 50000

[tools.grep]
max_bytes = 65536       # 62 of 80 captures were read within a minute
strategy = "TAIL"
"""

from __future__ import annotations

import difflib
import logging
import os
import stat
import tomllib
from typing import TYPE_CHECKING, Any, Final

from overspill.advice.policy_text import VERSION
from overspill.text.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

_log = logging.getLogger("overspill")
MAX_FILE_BYTES: Final = 1024 * 1024
_IN_CODE_ONLY: Final = frozenset({"tokenizer", "chars_per_token", "tools", "exempt", "strategies", "bands"})
"""The settings of a `Policy` that a file cannot have. It has those of tools in tables of their own."""
OTHER_LIMITS: Final = ("max_lines", "max_chars", "max_tokens")
"""The limits beside `max_bytes`."""
TOOL_SETTINGS: Final = ("max_bytes", *OTHER_LIMITS, "strategy")


def read_policy_file(path: Path, settings: Iterable[str]) -> dict[str, Any]:
    """Return the arguments for a `Policy`, which has these `settings`.

    Raises `OSError`, and `ValueError` that names what is wrong.
    """
    allowed = [name for name in settings if name not in _IN_CODE_ONLY]
    try:
        return _settings(tomllib.loads(_text(path)), allowed)
    except ValueError as error:  # wrong TOML, and wrong UTF-8
        raise ValueError(f"{path} is not a policy: {error}") from error
    except RecursionError:
        raise ValueError(f"{path} is not a policy: its values are nested too deeply") from None


def _text(path: Path) -> str:
    with open(path, "rb", opener=_open_at_once) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise ValueError("it is not a regular file")
        if mode & stat.S_IWOTH and os.name == "posix":
            _log.warning("anyone on this machine can change %s, and so let secrets through: chmod o-w", path)
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"it has more than {MAX_FILE_BYTES:,} bytes")
    return data.decode()


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting, even a named pipe that has no writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _settings(found: dict[str, Any], allowed: Sequence[str]) -> dict[str, Any]:
    version = found.pop("version", None)
    if version != VERSION or not isinstance(version, int) or isinstance(version, bool):
        raise ValueError(f"version must be {VERSION}, not {version!r}")
    tools = found.pop("tools", {})
    _check_names("setting", found, allowed)
    if not isinstance(tools, dict) or not all(isinstance(each, dict) for each in tools.values()):
        raise ValueError("tools must be tables, such as [tools.grep]")
    patterns = found.get("redact_patterns", {})
    if not isinstance(patterns, dict) or not all(isinstance(each, str) for each in patterns.values()):
        raise ValueError("redact_patterns must be a table of patterns by kind, such as [redact_patterns]")
    for name, table in tools.items():
        _check_names(f"setting of the tool {name!r}", table, TOOL_SETTINGS)
    usual: dict[str, Any] = {name: found[name] for name in OTHER_LIMITS if name in found}
    limits = {name: _limits({**usual, **table}) for name, table in tools.items() if set(table) - {"strategy"}}
    strategies = {name: table["strategy"] for name, table in tools.items() if "strategy" in table}
    return {**found, "tools": limits, "strategies": strategies}


def _check_names(label: str, names: Mapping[str, Any], allowed: Sequence[str]) -> None:
    for name in names:
        if name not in allowed:
            raise ValueError(f"there is no {label} {name!r}{_nearest(name, allowed)}")


def _nearest(name: str, allowed: Collection[str]) -> str:
    near = difflib.get_close_matches(name, allowed, 1)
    return f"; do you mean {near[0]!r}?" if near else f"; there are {', '.join(allowed)}"


def _limits(table: Mapping[str, Any]) -> int | Limits:
    """Return the limit in bytes alone, or whole limits if a table has others too."""
    others = {name: table[name] for name in OTHER_LIMITS if name in table}
    if "max_bytes" not in table:
        raise ValueError("a tool with limits needs max_bytes")
    return Limits(table["max_bytes"], **others) if others else table["max_bytes"]
