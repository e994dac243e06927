"""A settings file of an agent program: read with care, and written so that only what changes differs."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from typing import TYPE_CHECKING, Any, Final

from overspill.integrations.agent_programs.programs import WrongSettings

if TYPE_CHECKING:
    from pathlib import Path

_BOM: Final = "\ufeff"
_INDENT: Final = re.compile(r'^([ \t]+)"', re.MULTILINE)
_DEFAULT_INDENT: Final = "  "
_CRLF: Final = "\r\n"
_COMMENT: Final = re.compile(r"^\s*(//|/\*)|[,{\[\]}]\s*(//|/\*)", re.MULTILINE)


class TextFile:
    """The file at `path`, as it is now. `text` has plain line ends; it is empty if there is no file.

    Raises `WrongSettings` for a file that is not understood, and `OSError`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._raw = _read(path)
        self.text: str = self._raw.removeprefix(_BOM).replace(_CRLF, "\n")

    def write(self, text: str) -> None:
        """Replace the file in one step; its rights, its line ends and a link to it stay.

        Without text, remove it. Raises `WrongSettings` if it was changed meanwhile, and `OSError`.
        """
        if _read(self.path) != self._raw:
            raise WrongSettings("another program has just changed it")
        if not text:
            self.path.unlink()
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        target = self.path.resolve()
        new = target.with_name(f".{target.name}.{os.getpid()}.overspill")
        try:
            with new.open("wb") as file:
                file.write(self._styled(text).encode())
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, new)
            new.replace(target)
        finally:
            new.unlink(missing_ok=True)

    def _styled(self, text: str) -> str:
        lines = text.replace("\n", _CRLF) if _CRLF in self._raw else text
        return f"{_BOM}{lines}" if self._raw.startswith(_BOM) else lines


class SettingsFile(TextFile):
    """A file with a JSON object, `settings`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.settings: dict[str, Any] = _parsed(self.text) if self.text.strip() else {}

    def with_settings(self, settings: dict[str, Any]) -> str:
        """Return the text with other settings: the same text if they are equal, else in the same style."""
        if settings == self.settings:
            return self.text
        match = _INDENT.search(self.text)
        indent = match[1] if match else _DEFAULT_INDENT
        return f"{json.dumps(settings, indent=indent, ensure_ascii=False)}\n"


def _read(path: Path) -> str:
    """Return the text of a file, empty if there is none. Raises `WrongSettings`, and `OSError`."""
    try:
        found = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise WrongSettings("it is a link to a file that does not exist") from None
        return ""
    if not stat.S_ISREG(found.st_mode):
        raise WrongSettings("it is not a regular file")
    if not found.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise WrongSettings("it is read-only")
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise WrongSettings("it is not UTF-8") from None


def _parsed(text: str) -> dict[str, Any]:
    """Return a JSON object. Raises `WrongSettings`."""
    try:
        found = json.loads(text, object_pairs_hook=_each_once)
    except RecursionError:
        raise WrongSettings("it is nested too deeply") from None
    except ValueError as error:
        reason = (
            "it has comments, which would be lost" if _COMMENT.search(text) else f"it is not JSON: {error}"
        )
        raise WrongSettings(reason) from error
    if not isinstance(found, dict):
        raise WrongSettings("the settings are not a JSON object")
    return found


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise WrongSettings(f"it has {max(names, key=names.count)!r} twice in one place: one would be lost")
    return found
