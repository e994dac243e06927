"""The package as a newcomer meets it: names, help, signatures, and advice in everything that goes wrong."""

from __future__ import annotations

import inspect
import pydoc
import re
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import overspill
import pytest
from overspill import Client, Guard, Policy, SyncClient, errors
from overspill.errors import OverspillError
from overspill.previews.cut import ENDS, HEAD
from overspill.previews.styles import CLAMPED

from tests.client.shell import printed_by

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

NAMES = [name for name in overspill.__all__ if name != "__version__"]
OBJECTS = {name: getattr(overspill, name) for name in NAMES}
CALLABLE = [name for name, each in OBJECTS.items() if callable(each)]
ERRORS = [
    each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, OverspillError)
]
ADVICE = re.compile(
    r"\b(start|say|check|give|use|pass|send|leave|ask|wait|delete|try|run|tell|store|call|catch|write|allow"
    r"|look|ends?|says|`detail`)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_can_be_asked_for_help(name: str) -> None:
    assert name in pydoc.render_doc(OBJECTS[name]) or not callable(OBJECTS[name])


@pytest.mark.parametrize("name", [name for name in CALLABLE if OBJECTS[name].__module__ != "typing"])
def test_every_public_name_has_a_docstring_of_its_own(name: str) -> None:
    assert OBJECTS[name].__doc__
    assert not OBJECTS[name].__doc__.startswith(f"{name}(")  # as dataclasses and named tuples make them


@pytest.mark.parametrize("name", CALLABLE)
def test_every_public_name_has_a_signature(name: str) -> None:
    assert inspect.signature(OBJECTS[name])


@pytest.mark.parametrize(
    ("name", "method"),
    [
        (name, method)
        for name in CALLABLE
        for method, found in vars(OBJECTS[name]).items()
        if inspect.isfunction(found) and not method.startswith("_")
    ],
)
def test_every_public_method_has_a_signature(name: str, method: str) -> None:
    assert inspect.signature(getattr(OBJECTS[name], method))


def test_the_package_as_a_whole_can_be_asked_for_help() -> None:
    text = pydoc.plain(pydoc.render_doc(overspill))

    assert "guard.wrap(run_command)" in text
    assert "class Guarded" in text


def test_a_star_import_brings_the_public_names_and_nothing_else() -> None:
    code = "before = set(dir())\nfrom overspill import *\nprint(*sorted(set(dir()) - before - {'before'}))"

    assert printed_by(code).split() == sorted(overspill.__all__)


def test_the_version_is_that_of_the_distribution() -> None:
    assert overspill.__version__ == version("overspill")


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_exception_says_what_to_do(kind: type[OverspillError]) -> None:
    own = vars(kind).get("__doc__") or ""

    assert ADVICE.search(re.split(r"[.:;]\s", own, maxsplit=1)[-1]), own
    assert inspect.signature(kind)


def test_help_of_the_guard_has_an_example_that_runs(service: ServiceProcess) -> None:
    lines = (inspect.getdoc(Guard) or "").split("\n\n")[1].splitlines()
    example = inspect.cleandoc("\n".join(["", *lines]))
    printed: list[tuple[Any, ...]] = []
    names = {
        "SyncClient": lambda **options: SyncClient(service.url, **options),
        "Guard": Guard,
        "run_command": lambda command: f"{command} passed",
        "rows": [{"id": number} for number in range(9_000)],
        "print": lambda *words: printed.append(words),
    }
    exec(example, names)

    assert names["text"] == "make test passed"
    assert printed[0][0] == "captured"


# --- the first ten minutes ---


def test_a_guard_takes_the_url_of_a_service_and_closes_what_it_made(service: ServiceProcess) -> None:
    with Guard(service.url) as guard:
        guarded = guard.process_sync("line\n" * 9_000, tool="build")

    assert guarded.outcome is overspill.Outcome.CAPTURED
    assert "the service" not in (guarded.reason or "")
    with SyncClient(service.url) as client:
        assert client.get(str(guarded.capture)).size == 45_000


async def test_a_guard_with_a_url_serves_asynchronous_code_too(service: ServiceProcess) -> None:
    async with Guard(service.url) as guard:
        guarded = await guard.process("line\n" * 9_000, tool="build")

    assert guarded.outcome is overspill.Outcome.CAPTURED


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            (Policy(),),
            r"must be a Client, .* give a policy by name: Guard\(policy=…\)",
        ),
        ((8750,), "must be a Client, a SyncClient or the URL of a service, not a int"),
        ((None, {"max_bytes": 5}), "policy must be a Policy"),
    ],
)
def test_what_is_mixed_up_is_said_at_once(arguments: tuple[Any, ...], told: str) -> None:
    with pytest.raises(TypeError, match=told):
        Guard(*arguments)


def test_a_folder_that_is_given_as_a_spool_is_said_at_once(tmp_path: Path) -> None:
    folder: Any = tmp_path
    with pytest.raises(TypeError, match=r"must be a Spool, a Workspace, True or False, .* Spool\(folder\)"):
        Guard(spool=folder)


def test_a_url_that_is_none_is_said_at_once() -> None:
    with pytest.raises(ValueError, match="must look like http"):
        Guard("localhost:8750")


def test_strategies_and_styles_can_be_given_by_name() -> None:
    policy = Policy(strategy="HEAD", style="clamped")

    assert (policy.strategy, policy.style) == (HEAD, CLAMPED)
    assert Policy(strategy="ends") == Policy(strategy=ENDS)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"strategy": "MIDDLE"},
            "strategy must be PREVIEW, HEAD, TAIL, ENDS or .*; it is 'MIDDLE'",
        ),
        ({"style": "fancy"}, "style must be MARKED, .* it is 'fancy'"),
    ],
)
def test_a_name_that_is_none_is_told_with_those_that_are(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Policy(**given)


async def test_a_closed_client_says_so_and_can_be_opened_again(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        pass
    with pytest.raises(errors.ClientClosed, match="this client was closed: call it inside its `with` block"):
        await client.usage()
    async with client:
        assert (await client.usage()).tenant


def test_a_closed_synchronous_client_says_so_and_can_be_opened_again(service: ServiceProcess) -> None:
    with SyncClient(service.url) as client:
        client.usage()
    with pytest.raises(errors.ClientClosed, match="this client was closed"):
        client.usage()
    with client:
        assert client.usage().tenant


def test_a_guard_whose_client_is_closed_gives_that_as_the_reason(
    service: ServiceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERSPILL_SPOOL", "off")
    with SyncClient(service.url) as client:
        guard = Guard(client)
    guarded = guard.process_sync("line\n" * 9_000, tool="build")

    assert guarded.outcome is overspill.Outcome.TRUNCATED
    assert (guarded.reason or "").startswith("this client was closed")
