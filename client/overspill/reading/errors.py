"""Errors in the query of a bounded read. The text says what is allowed and what to do instead."""

from __future__ import annotations

from typing import ClassVar

from overspill.wire import Code


class InvalidQuery(ValueError):
    """The query makes no sense. `code` is the problem code of the service's answer."""

    code: ClassVar[Code] = Code.INVALID_PARAMETER


class InvalidPattern(InvalidQuery):
    """The pattern of a search cannot be compiled, or could take too long."""

    code = Code.INVALID_PATTERN
