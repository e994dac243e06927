"""Guards tools that are objects of a framework: a copy of the same class, with its functions guarded.

No framework is imported. A tool object is recognised by the fields in which frameworks keep the functions
that they call, or by the methods that its class overrides.
"""

from __future__ import annotations

import copy
import functools
import inspect
from typing import TYPE_CHECKING, Any, Final

from overspill.shapes.field_copies import Unchangeable, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    Guarding = Callable[[Callable[..., Any]], Callable[..., Any]]

_FIELDS: Final = (
    *("func", "coroutine", "fn", "function", "async_function", "on_invoke_tool"),
    *("_tool_func", "_func", "_fn", "_func_with_validate"),
)
_FIELDS_OF_WRAPPERS: Final = frozenset({"_tool_func"})
"""Such fields of objects that also say which function they wrap."""
_HOLDERS: Final = ("function_schema",)
"""Fields with an object that has such a field itself, and is what the framework calls."""
_METHODS: Final = ("_run", "_arun", "forward")
_WITH_ARTIFACT: Final = "content_and_artifact"


def is_tool_object(tool: Any) -> bool:
    """Return whether `tool` is an object that holds a function for a framework to call."""
    if inspect.isfunction(tool) or inspect.ismethod(tool) or inspect.isbuiltin(tool) or inspect.isclass(tool):
        return False  # a tool that is bound as a method is has `__get__`, and counts as a routine
    if hasattr(tool, "__wrapped__") and not vars(tool).keys() & _FIELDS_OF_WRAPPERS:
        return False
    return any(callable(getattr(tool, name, None)) for name in (*_FIELDS, *_METHODS))


def name_of(tool: Any) -> str:
    """Return the name of a tool object: the one for its framework, or else that of its class."""
    names = (getattr(tool, field, None) for field in ("name", "tool_name"))
    return next((name for name in names if isinstance(name, str)), type(tool).__name__)


def with_guarded(tool: Any, guard: Guarding) -> Any:
    """Return a copy of `tool` with its functions wrapped by `guard`.

    Raises `TypeError` if no copy can be made.
    """
    wrap = _of_pairs(guard) if getattr(tool, "response_format", "") == _WITH_ARTIFACT else guard
    try:
        found = _guarded_fields(tool, wrap)
        return with_fields(tool, found) if found else _with_methods(tool, wrap)
    except Unchangeable as error:
        raise TypeError(f"no copy of the {error} can be made: wrap the function that it calls") from error


def _guarded_fields(tool: Any, wrap: Guarding) -> dict[str, Any]:
    """Return the fields of `tool` that have functions, with these guarded. Raises `Unchangeable`."""
    members = {name: getattr(tool, name, None) for name in _FIELDS}
    found = {name: wrap(function) for name, function in members.items() if inspect.isroutine(function)}
    for name in _HOLDERS:
        holder = getattr(tool, name, None)
        if holder is not None and (inner := _guarded_fields(holder, wrap)):
            found[name] = with_fields(holder, inner)
    return found


def _with_methods(tool: Any, wrap: Guarding) -> Any:
    copied = copy.copy(tool)
    for name in _METHODS:
        if callable(method := getattr(tool, name, None)):
            object.__setattr__(copied, name, wrap(method))
    return copied


def _of_pairs(guard: Guarding) -> Guarding:
    """Wrap functions that return a pair, for the model and for programs: only the first part is guarded."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def paired_async(*args: Any, **kwargs: Any) -> Any:
                content, artifact = await function(*args, **kwargs)

                async def for_model() -> Any:
                    return content

                return await guard(for_model)(), artifact

            return paired_async

        @functools.wraps(function)
        def paired(*args: Any, **kwargs: Any) -> Any:
            content, artifact = function(*args, **kwargs)
            return guard(lambda: content)(), artifact

        return paired

    return wrap
