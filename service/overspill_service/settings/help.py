"""The help of each setting, made from its declaration, for the command line and the operator's page."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from overspill_service.settings.settings import Settings
from overspill_service.settings.units import FORMS, format_value, metas_in, unit_of


class SettingHelp(Struct, frozen=True):
    """The help of one setting. `default` and `allowed` are empty if there is nothing to say."""

    name: str
    meaning: str
    default: str
    allowed: str


def descriptions() -> list[SettingHelp]:
    """Return the help of every setting, in the order of their declarations."""
    hints = get_type_hints(Settings, include_extras=True)
    found = []
    for each in msgspec.structs.fields(Settings):
        hint = hints[each.name]
        meaning = next(meta.description or "" for meta in metas_in(hint))
        found.append(SettingHelp(each.name, meaning, _default(each, hint), allowed(hint)))
    return found


def _default(setting: msgspec.structs.FieldInfo, hint: Any) -> str:
    value, unit = setting.default, unit_of(hint)
    if setting.name == "data":
        return "the user's data directory"
    if isinstance(value, bool):
        return str(value).lower()
    return format_value(value, unit) if unit else str(value if value is not None else "")


def allowed(hint: Any) -> str:
    """Return what a setting accepts: its choices, its bounds and its unit."""
    kind = get_args(hint)[0]
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    if kind in (bool, bool | None):
        return "true, false"
    meta, unit = next(metas_in(hint)), unit_of(hint)
    minimum = f"{meta.ge} or more" if meta.ge is not None else f"more than {meta.gt}"
    bounds = f"{meta.ge} to {meta.le}" if meta.le is not None else minimum
    if meta.ge is None and meta.gt is None:
        return ""
    return f"{bounds}; {FORMS[unit]}" if unit else bounds
