"""Sizes and durations as people write them: `10GiB`, `2h`, `1h30m`, or a plain number of bytes or seconds.

The `Meta` of a field in a settings struct names its unit: `extra=BYTES` or `extra=SECONDS`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

from msgspec import Meta, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BYTES: Final = {"unit": "bytes"}
SECONDS: Final = {"unit": "seconds"}
LONGEST_TTL: Final = 100 * 365 * 24 * 3600
"""Seconds of the longest retention that a setting may allow: the far end of time stands for a hold."""
FORMS: Final = {
    "bytes": "bytes, or such as 512KiB, 10GiB, 5GB",
    "seconds": "seconds, or such as 90s, 2h, 1h30m, 7d",
}

_UNITS: Final = {
    "bytes": {"b": Decimal(1)}
    | {f"{prefix}b": Decimal(1000) ** power for power, prefix in enumerate("kmgt", start=1)}
    | {f"{prefix}ib": Decimal(1024) ** power for power, prefix in enumerate("kmgt", start=1)},
    "seconds": {
        "ms": Decimal("0.001"),
        "s": Decimal(1),
        "m": Decimal(60),
        "h": Decimal(3600),
        "d": Decimal(86_400),
        "w": Decimal(604_800),
    },
}
_NUMBER: Final = re.compile(r"\s*[+-]?[0-9_.]+(?:e[+-]?[0-9]+)?\s*", re.IGNORECASE)
# Bounded digits: no setting needs more.
_PART: Final = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([A-Za-z]+)\s*")
_FORMAT_UNITS: Final = {
    "bytes": ("TiB", "GiB", "MiB", "KiB"),
    "seconds": ("d", "h", "m"),
}


def parse(text: str, unit: str) -> int | float:
    """Return the number of `unit` (`bytes` or `seconds`) in a text. A size has only one part.

    Raises `ValueError` that says what is allowed.
    """
    parts = _PART.findall(text)
    factors = [_UNITS[unit].get(name.lower()) for _, name in parts]
    is_whole = "".join(match[0] for match in _PART.finditer(text)) == text
    if not parts or not is_whole or None in factors or (unit == "bytes" and len(parts) > 1):
        raise ValueError(f"{text!r} is not {FORMS[unit]}")
    total = sum(
        Decimal(parse_value) * factor
        for (parse_value, _), factor in zip(parts, factors, strict=True)
        if factor
    )
    return int(total) if total == int(total) else float(total)


def format_value(value: float, unit: str) -> str:
    """Return the value in the largest unit that divides it: 86400 s is `1d`, 90 s is `90`."""
    for name in _FORMAT_UNITS[unit]:
        factor = _UNITS[unit][name.lower()]
        if value and value % float(factor) == 0:
            return f"{value / float(factor):.0f}{name}"
    return f"{value:.0f}" if value == int(value) else f"{value:g}"


def unit_of(hint: Any) -> str | None:
    """Return the unit in a field's annotation, None for a plain number or text."""
    return next((each.extra["unit"] for each in metas_in(hint) if each.extra and "unit" in each.extra), None)


def metas_in(hint: Any) -> Iterator[Meta]:
    """Yield each `Meta` of an annotation, also within `… | None`."""
    for each in get_args(hint):
        if isinstance(each, Meta):
            yield each
        else:
            yield from metas_in(each)


def parse_values(values: Mapping[str, Any], kind: type[Struct]) -> dict[str, Any]:
    """Return the values with the sizes and durations in fields of `kind` as numbers.

    Raises `ValueError` that names the field.
    """
    hints = get_type_hints(kind, include_extras=True)
    return {name: parse_value(value, hints.get(name), name) for name, value in values.items()}


def parse_value(value: Any, hint: Any, source: str) -> Any:
    """Return a size or duration in text as a number, any other value unchanged."""
    unit = unit_of(hint)
    if unit is None or not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    try:
        return parse(value, unit)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
