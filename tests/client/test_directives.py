"""Directives at the front of a user's message, and their metadata."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.integrations.directives.directives import METADATA, Directives, report


@pytest.mark.parametrize(
    ("message", "names", "rest"),
    [
        ("/think why?", {"think"}, "why?"),
        ("/think /verbose  /elevated do it", {"think", "verbose", "elevated"}, "do it"),
        ("  /THINK\nwhy?\n", {"think"}, "why?\n"),
        ("/verbose", {"verbose"}, ""),
        ("/verbose:on go", {"verbose"}, "go"),
        ("/thinking why?", set(), "/thinking why?"),
        ("/think/of/a/path", set(), "/think/of/a/path"),
        ("/unknown /think why?", set(), "/unknown /think why?"),
        ("why /think?", set(), "why /think?"),
        ("", set(), ""),
    ],
)
def test_directives_are_taken_off_the_front(message: str, names: set[str], rest: str) -> None:
    found, kept = Directives().after(message)

    assert {name for name, is_on in found.fields().items() if is_on} == names
    assert kept == rest


def test_they_stay_on_until_they_are_turned_off() -> None:
    metadata: dict[str, Any] = {"other": 1}
    Directives().after("/think /verbose a")[0].write(metadata)
    Directives.read(json.loads(json.dumps(metadata))).after("/think:off b")[0].write(metadata)

    assert Directives.read(metadata) == Directives(verbose=True)
    assert metadata["other"] == 1


def test_what_is_not_allowed_has_no_effect_but_can_be_turned_off() -> None:
    found, rest = Directives().after("/elevated /think go", allowed=["think"])

    assert (found, rest) == (Directives(think=True), "go")
    assert Directives(elevated=True).after("/elevated:off go", allowed=[])[0] == Directives()


def test_defaults_are_the_safe_ones() -> None:
    assert not Directives().auto_approve
    assert Directives().restrict_to_workspace
    assert not Directives().allow_high_risk
    assert Directives(elevated=True).auto_approve
    assert not Directives(elevated=True).restrict_to_workspace


@given(st.recursive(st.none() | st.booleans() | st.text() | st.integers(), st.lists, max_leaves=9))
def test_damaged_metadata_falls_to_the_safe_defaults(damage: Any) -> None:
    assert Directives.read(damage) == Directives()
    assert Directives.read({METADATA: damage}) == Directives()
    assert Directives.read({METADATA: {"elevated": damage}}).elevated is (damage is True)


@given(st.text())
def test_a_message_without_directives_stays_as_it_is(message: str) -> None:
    found, rest = Directives().after(message)

    assert message.endswith(rest)
    assert found != Directives() or rest == message or "/" in message


def test_a_report_shows_and_logs_tool_tokens_and_result(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "overspill.directives"):
        text = report([("grep", "one\ntwo " * 500), ("empty", "")])
    first, second = text.strip().splitlines()

    assert first.startswith("- grep (about ")
    assert len(first) < 250
    assert second.startswith("- empty (about 0 tokens)")
    assert len(caplog.records) == 2
