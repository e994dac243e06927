"""What is wrong with a query of a bounded read; the text says what is allowed and what to do instead."""

from __future__ import annotations

from typing import ClassVar

from overspill.wire import Code


class InvalidQuery(ValueError):
    code: ClassVar[Code] = Code.INVALID_PARAMETER


class InvalidPattern(InvalidQuery):
    code = Code.INVALID_PATTERN
