"""The examples of a page: the Python that it shows, run as it stands, and what it says that this prints.

And the blocks of shell lines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tests.client.shell import OVERSPILL
from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess


class Example(NamedTuple):
    code: str
    output: str | None
    """What the page says that it prints."""

    @property
    def stable_output(self) -> str:
        assert self.output is not None, "the page does not say what this prints"
        return stable(self.output)

    def printed(self, service: ServiceProcess, **variables: str) -> str:
        """What it prints, without what differs from run to run. It has to end well, and warn of nothing."""
        environment = clean_environment(OVERSPILL_URL=service.url, **variables)
        result = OVERSPILL.run_code(self.code, [], environment, seconds=120, warnings_end_it=True)

        assert (result.returncode, result.stderr) == (0, "")
        return stable(result.stdout)


def examples_of(page: Path) -> list[Example]:
    """The page's Python blocks, each with the block of text behind it if there is one."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    following = [*blocks[1:], ("", "")][: len(blocks)]
    return [
        Example(code, output if kind == "text" else None)
        for (language, code), (kind, output) in zip(blocks, following, strict=True)
        if language == "python"
    ]


def scripts_of(page: Path) -> list[str]:
    """The page's blocks of shell lines."""
    return re.findall(r"^```bash\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def stable(text: str) -> str:
    """`text` without what differs from run to run."""
    text = re.sub(r"cap_[a-z2-7]{20}", "cap_id", text)
    text = re.sub(r"\[/overspill \d{12}\]", "[/overspill]", text)
    return re.sub(r"\d{1,2} [A-Z][a-z]{2} \d\d:\d\d UTC", "then", text).rstrip()
