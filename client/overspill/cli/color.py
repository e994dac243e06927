"""Colour on terminals. Pipes and files get none, unless it is asked for.

`NO_COLOR` (no-color.org) and `TERM=dumb` turn it off. `--color` wins over both.
"""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Final

from overspill.cli import output


class ColorMode(StrEnum):
    """The choice when output is coloured."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Style(StrEnum):
    """The parameters of an SGR escape sequence (ECMA-48)."""

    HEADER = "1"
    MATCH = "1;31"
    NUMBER = "32"
    SEPARATOR = "36"
    WARNING = "33"


_RESET: Final = "\x1b[0m"


class Paint:
    """Colours text that is printable already, if colour is wanted. None is `AUTO`."""

    def __init__(self, mode: ColorMode | None) -> None:
        self.is_on: bool = mode is ColorMode.ALWAYS or (mode is not ColorMode.NEVER and _has_color_terminal())

    def __call__(self, text: str, style: Style) -> str:
        """Return `text` in the style, or unchanged if there is no colour."""
        return f"\x1b[{style}m{text}{_RESET}" if self.is_on and text else text


def _has_color_terminal() -> bool:
    return output.is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
