r"""Lets a shell mark its commands on the terminal, so that each is found in what is stored.

Bash and zsh read a start file of ours, which reads the person's own first. Other shells start as they are.
"""

from __future__ import annotations

import shlex
import tempfile
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_ESCAPED: Final = r"""
__overspill_escaped() {
  local text=${1:0:1000}
  text=${text//\\/\\\\}; text=${text//;/\\x3b}; text=${text//$'\n'/\\x0a}
  printf '%s' "${text//[$'\001'-$'\037']/ }"
}
"""

_BASH: Final = (
    """[ -f ~/.bashrc ] && . ~/.bashrc
"""
    + _ESCAPED
    + r"""
__overspill_begin() {
  local line
  line=$(HISTTIMEFORMAT= builtin history 1)
  [[ $line =~ ^[[:space:]]*[0-9]+\*?[[:space:]]+(.*)$ ]] && line=${BASH_REMATCH[1]}
  printf '\e]633;E;%s\a\e]133;C\a' "$(__overspill_escaped "$line")"
}
__overspill_prompt() { local code=$?; printf '\e]133;D;%s\a\e]133;A\a' "$code"; return $code; }
PROMPT_COMMAND="__overspill_prompt${PROMPT_COMMAND:+; $PROMPT_COMMAND}"
PS0='$(__overspill_begin)'"${PS0-}"
"""
)

_ZSH: Final = (
    """ZDOTDIR=${OVERSPILL_ZDOTDIR:-$HOME}
[ -f "$ZDOTDIR/.zshrc" ] && . "$ZDOTDIR/.zshrc"
"""
    + _ESCAPED
    + r"""
__overspill_begin() { printf '\e]633;E;%s\a\e]133;C\a' "$(__overspill_escaped "$1")" }
__overspill_prompt() { local code=$?; printf '\e]133;D;%s\a\e]133;A\a' "$code"; return $code }
autoload -Uz add-zsh-hook
add-zsh-hook preexec __overspill_begin
precmd_functions=(__overspill_prompt $precmd_functions)
"""
)


@contextmanager
def integrated(shell: str, environment: dict[str, str]) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Give the words that start the shell with its marks, and the variables that it needs for that.

    Raises `OSError` if the start file cannot be written.
    """
    words, name = shlex.split(shell), PurePath(shlex.split(shell)[0]).name
    with tempfile.TemporaryDirectory(prefix="overspill-shell-") as folder:
        if name == "bash":
            start = Path(folder) / "bashrc"
            start.write_text(_BASH, encoding="utf-8")
            yield [*words, "--rcfile", str(start), "-i"], {}
        elif name == "zsh":
            (Path(folder) / ".zshrc").write_text(_ZSH, encoding="utf-8")
            own = environment.get("ZDOTDIR") or environment.get("HOME", "")
            yield words, {"ZDOTDIR": folder, "OVERSPILL_ZDOTDIR": own}
        else:
            yield words, {}
