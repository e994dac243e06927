"""The page of threats names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "service" / "docs" / "threats.md").read_text()


def test_every_file_that_it_names_is_there() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", PAGE)

    assert len(named) > 15
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_every_test_that_it_names_is_there() -> None:
    named = re.findall(r"`(test_\w+)`", PAGE)
    sources = "".join(file.read_text() for file in (ROOT / "tests").glob("*/test_*.py"))

    assert len(named) > 5
    assert [each for each in named if f"def {each}(" not in sources] == []
