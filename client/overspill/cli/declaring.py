"""How a command reads its words and shows its help: `-20` for a number, and examples at the end."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from typer.core import TyperCommand

_NUMBERED: Final = {"head": "-n", "tail": "-n", "grep": "-C"}
"""The option that a bare number means, as in the tools of these names."""


class Command(TyperCommand):
    """A command whose help ends with examples, and which may take `-20` for a number of lines."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        option = _NUMBERED.get(self.name or "")
        return super().parse_args(ctx, args if option is None else list(self._spelled_out(args, option)))

    def _spelled_out(self, args: Sequence[str], option: str) -> Iterator[str]:
        """`args` with `-20` as `-n 20`; what is the value of an option, or stands behind `--`, stays."""
        valued = {name for each in self.params for name in each.opts if not getattr(each, "is_flag", True)}
        before, is_over = "", False
        for word in args:
            is_over = is_over or word == "--"
            if not is_over and before not in valued and word[:1] == "-" and word[1:].isdecimal():
                yield from (option, word[1:])
            else:
                yield word
            before = word


def examples_of(lines: Sequence[str]) -> str:
    """The end of a help page; each example is a line as it is typed."""
    return "\n\n".join(["\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)]) if lines else ""
