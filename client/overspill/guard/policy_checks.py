"""Checks of a whole policy. Each raises `ValueError`, which names the setting that is wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from overspill.guard import number_checks
from overspill.guard.band import check_bands
from overspill.previews.cut import STRATEGIES, Strategy
from overspill.redaction.masking import Redaction
from overspill.redaction.patterns import check_patterns
from overspill.text.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _are_strategies(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, Strategy) for each in value.values())


def _are_names(value: Any) -> bool:
    is_set = isinstance(value, Collection) and not isinstance(value, str)
    return is_set and all(isinstance(each, str) for each in value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(each, str) for pair in value.items() for each in pair
    )


_TYPES: Final[tuple[tuple[str, Callable[[Any], bool], str], ...]] = (
    ("tokenizer", lambda value: value is None or callable(value), "a function"),
    ("strategy", lambda value: isinstance(value, Strategy), "one of overspill.previews.cut, such as PREVIEW"),
    (
        "style",
        lambda value: callable(getattr(value, "notice", None)),
        "one of overspill.previews.styles, such as MARKED",
    ),
    ("strategies", _are_strategies, "strategies by tool, such as {'make': 'TAIL'}"),
    ("identical", _is_bool, "true or false"),
    ("redact_inline", _is_bool, "true or false"),
    ("terminals", _is_bool, "true or false"),
    ("redact_patterns", _are_texts, "patterns by kind, such as {'acme': 'acme-[0-9]{8}'}"),
    ("reader", lambda value: isinstance(value, str), "a text"),
    ("exempt", _are_names, "a set of names of tools"),
)
"""The settings that are neither numbers nor limits: the right type, and its name in an error."""


def check_policy(policy: Any) -> None:
    """Check every setting of a `Policy` by itself, and its bands against each other."""
    for name in ("max_bytes", "max_lines", "preview_bytes", "preview_lines", "max_stream_bytes"):
        number_checks.whole(name, getattr(policy, name))
    for name in ("max_chars", "max_tokens", "ttl", "lost_preview_bytes"):
        number_checks.whole(name, getattr(policy, name), is_optional=True)
    if policy.ttl is not None:
        number_checks.positive("ttl", policy.ttl)
    if not isinstance(policy.tools, Mapping):
        raise ValueError(f"tools must be limits by tool, such as {{'build': 20_000}}, not {policy.tools!r}")  # noqa: TRY004  (one kind of error)
    number_checks.finite("wait", policy.wait)
    if policy.least_gain is not None and policy.least_gain != 0:
        number_checks.share("least_gain", policy.least_gain)
    if policy.chars_per_token is not None:
        number_checks.positive("chars_per_token", policy.chars_per_token)
    check_window(policy.context_tokens, policy.context_share)
    for tool, limit in policy.tools.items():
        for name, number in _numbers(tool, limit):
            number_checks.whole(name, number, is_optional=isinstance(limit, Limits))
    _check_types(policy)
    check_patterns(policy.redact_patterns)
    check_bands(policy.bands)


def _numbers(tool: str, limit: int | Limits) -> Iterator[tuple[str, Any]]:
    if isinstance(limit, Limits):
        yield from ((f"{name} of {tool}", getattr(limit, name)) for name in Limits._fields[:4])
    else:
        yield f"the limit of {tool}", limit


def check_window(context_tokens: Any, context_share: Any) -> None:
    """Check the size of a context window in tokens, and the share of it that an output may have."""
    if context_tokens is not None:
        number_checks.whole("context_tokens", context_tokens)
        number_checks.positive("context_tokens", context_tokens)
    number_checks.share("context_share", context_share)


def _check_types(policy: Any) -> None:
    for name, is_right, label in _TYPES:
        value = getattr(policy, name)
        if not is_right(value):
            shown = dict(value) if isinstance(value, Mapping) else value
            raise ValueError(f"{name} must be {label}, not {shown!r}")


def redaction_named(value: Any) -> Redaction:
    """Return the treatment of secrets by its name. Raises `ValueError` for an unknown name."""
    try:
        return Redaction(value.lower() if isinstance(value, str) else value)
    except ValueError:
        raise ValueError(f"redaction must be {', '.join(Redaction)}, not {value!r}") from None


def by_name(label: str, value: Any, choices: Mapping[str, Any]) -> Any:
    """Return the choice of that name. Anything that is not text is returned as it is."""
    if not isinstance(value, str):
        return value
    if value.upper() not in choices:
        raise ValueError(f"{label} must be {', '.join(choices)} or one of your own; it is {value!r}")
    return choices[value.upper()]


def strategies_by_tool(value: Any) -> Any:
    """Return the strategies of single tools as objects, even if they were given by name."""
    if not isinstance(value, Mapping):
        return value  # which `check_policy` names
    return frozen_table(
        {tool: by_name(f"the strategy of {tool!r}", each, STRATEGIES) for tool, each in value.items()}
    )


def frozen_table(value: Any) -> Any:
    """Return a copy of a mapping that cannot be changed. Any other value is returned as it is."""
    return MappingProxyType(dict(value)) if isinstance(value, Mapping) else value
