r"""Makes a shell mark its commands on the terminal, so that each is found in the stored output.

Bash, zsh and fish read a start file of ours, which reads the person's own first. Other shells start as they
are. With each prompt these shells send the present number of columns, because edited text is drawn for it. If
options of bash say which start files it reads, it reads ours later, before its first prompt. With `-f` zsh
reads ours only.
"""

from __future__ import annotations

import shlex
import tempfile
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ESCAPED: Final = r"""
__overspill_escaped() {
  local text=${1:0:1000}
  text=${text//\\/\\\\}; text=${text//;/\\x3b}; text=${text//$'\n'/\\x0a}
  \printf '%s' "${text//[$'\001'-$'\037']/ }"
}
"""

_BASH_FIRST: Final = """[ -f ~/.bashrc ] && . ~/.bashrc
"""
_BASH_PROMPTED: Final = """
PROMPT_COMMAND=${PROMPT_COMMAND//"$OVERSPILL_BASH_START"/:}
unset OVERSPILL_BASH_START
"""
"""Bash runs `PROMPT_COMMAND` before its first prompt, and its start files may have added to it."""

_BASH: Final = (
    _ESCAPED
    + r"""
# Only the history knows the line. If its last entry is still that of the prompt, the line was kept out of it,
# as one with a space before it, and stays unnamed. So that repeated lines have a name, they are kept in it.
HISTCONTROL=${HISTCONTROL-}
HISTCONTROL=${HISTCONTROL//ignoreboth/ignorespace}
HISTCONTROL=${HISTCONTROL//ignoredups/}
HISTCONTROL=${HISTCONTROL//erasedups/}
__overspill_last() { HISTTIMEFORMAT= builtin history 1; }
__overspill_begin() {
  local line=$(__overspill_last)
  if [[ $line == "$__overspill_known" ]]; then
    line=
  elif [[ $line =~ ^[[:space:]]*[0-9]+\*?[[:space:]]+(.*)$ ]]; then
    line=${BASH_REMATCH[1]}
  fi
  \printf '\e]633;E;%s\a\e]133;C\a' "$(__overspill_escaped "$line")"
}
__overspill_prompt() {
  local code=$?
  __overspill_known=$(__overspill_last)
  \printf '\e]133;D;%s\a\e]633;P;Columns=%s\a\e]133;A\a' "$code" "${COLUMNS-}"
  [[ -o errexit ]] || return $code
}
PROMPT_COMMAND="__overspill_prompt${PROMPT_COMMAND:+; $PROMPT_COMMAND}"
PS0='$(__overspill_begin)'"${PS0-}"
"""
)

_BASH_OWN_START: Final = frozenset({"--norc", "--login", "--rcfile", "--init-file"})
"""Options of bash that say which start files it reads. `-l` does too."""

_ZSH_START: Final = """
__overspill_folder=$ZDOTDIR
if [[ -n $OVERSPILL_ZDOTDIR ]]; then ZDOTDIR=$OVERSPILL_ZDOTDIR; else unset ZDOTDIR; fi
%(own)s
OVERSPILL_ZDOTDIR=${ZDOTDIR-}
%(after)s
"""
"""Each start file reads the person's own, in the folder that is theirs, which their `.zshenv` may name."""
_ZSH_OWN: Final = '[[ -f ${ZDOTDIR:-$HOME}/%(name)s ]] && . "${ZDOTDIR:-$HOME}/%(name)s"'
_ZSH_NO_FILES: Final = {"-f": "-d", "--no-rcs": "-d"}
"""Options of zsh. With the left one it reads no start file; the right one leaves out only the system's."""
_ZSH_AGAIN: Final = "ZDOTDIR=$__overspill_folder"

_ZSH: Final = (
    """
[[ ${HISTFILE-} == $__overspill_folder/* ]] && HISTFILE=${ZDOTDIR:-$HOME}/${HISTFILE:t}
unset OVERSPILL_ZDOTDIR __overspill_folder
"""
    + _ESCAPED
    + r"""
__overspill_begin() { \printf '\e]633;E;%s\a\e]133;C\a' "$(__overspill_escaped "$1")" }
__overspill_prompt() {
  local code=$?
  \printf '\e]133;D;%s\a\e]633;P;Columns=%s\a\e]133;A\a' "$code" "${COLUMNS-}"
  [[ -o errexit ]] || return $code
}
autoload -Uz add-zsh-hook
add-zsh-hook preexec __overspill_begin
precmd_functions=(__overspill_prompt ${precmd_functions-})
# What marks the lack of a line end is shown before any hook runs: the output ends before it.
PROMPT_EOL_MARK=$'%{\e]133;D;%?\a%}'"${PROMPT_EOL_MARK-%B%S%#%s%b}"
"""
)

_FISH: Final = r"""
function __overspill_begin --on-event fish_preexec
  set -l line (string sub -l 1000 -- $argv[1] | string collect)
  set line (string replace -a '\\' '\\\\' -- $line | string replace -a ';' '\x3b' | string join '\x0a')
  builtin printf '\e]633;E;%s\a\e]133;C\a' (string replace -ra '[\x01-\x1f]' ' ' -- $line)
end
function __overspill_end --on-event fish_postexec
  builtin printf '\e]133;D;%s\a' $status
end
function __overspill_prompt --on-event fish_prompt
  builtin printf '\e]633;P;Columns=%s\a' $COLUMNS
end
"""


@contextmanager
def integrated(shell: str, environment: dict[str, str]) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Give the words that start the shell with its marks, and the variables that it needs for that.

    Raises `OSError` if the start file cannot be written.
    """
    words, name = shlex.split(shell), PurePath(shlex.split(shell)[0]).name
    with tempfile.TemporaryDirectory(prefix="overspill-shell-") as folder:
        if name == "bash":
            yield _bash(words, folder, environment)
        elif name == "zsh":
            yield _zsh(words, folder, environment)
        elif name == "fish":
            yield [*words, "--init-command", f"source {shlex.quote(_written(folder, 'fish', _FISH))}"], {}
        else:
            yield words, {}


def _bash(words: list[str], folder: str, environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    if not any(map(_says_what_is_read, words[1:])):
        return [*words, "--rcfile", _written(folder, "bashrc", _BASH_FIRST + _BASH), "-i"], {}
    own = environment.get("PROMPT_COMMAND")
    text = _BASH_PROMPTED + ("" if own else "export -n PROMPT_COMMAND\n") + _BASH
    start = f". {shlex.quote(_written(folder, 'bash', text))}"
    variables = {"OVERSPILL_BASH_START": start, "PROMPT_COMMAND": f"{start}; {own}" if own else start}
    return [*words, "-i"], variables


def _says_what_is_read(word: str) -> bool:
    return word in _BASH_OWN_START or (word.startswith("-") and word[1:2] != "-" and "l" in word)


def _zsh(words: list[str], folder: str, environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    reads_own = _ZSH_NO_FILES.keys().isdisjoint(words[1:])
    for name, after in ((".zshenv", _ZSH_AGAIN), (".zprofile", _ZSH_AGAIN), (".zshrc", _ZSH)):
        own = _ZSH_OWN % {"name": name} if reads_own else ""
        _written(folder, name, _ZSH_START % {"own": own, "after": after})
    started = [words[0], *(_ZSH_NO_FILES.get(word, word) for word in words[1:])]
    return started, {"ZDOTDIR": folder, "OVERSPILL_ZDOTDIR": environment.get("ZDOTDIR", "")}


def _written(folder: str, name: str, text: str) -> str:
    path = Path(folder, name)
    path.write_text(text, encoding="utf-8")
    return str(path)
