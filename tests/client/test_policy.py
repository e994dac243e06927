from dataclasses import fields, replace
from typing import Any

import pytest
from overspill.guard.band import Band
from overspill.guard.policy import Policy
from overspill.text.limits import Limits, exceeds
from overspill.text.tokens import TokenCounter


@pytest.mark.parametrize(
    ("tool", "max_bytes"),
    [
        ("grep_search", 20_000),
        ("find_by_name", 20_000),
        ("run_command", 50_000),
        ("command_status", 50_000),
        ("read_file", 100_000),
        ("anything_else", 50_000),
    ],
)
def test_each_tool_has_its_default_limit(tool: str, max_bytes: int) -> None:
    assert Policy().limits(tool) == Limits(max_bytes, 2_000)


def test_overrides_merge_over_the_defaults() -> None:
    policy = Policy(tools={"grep_search": 5, "mine": 7})

    assert [policy.limits(tool).max_bytes for tool in ("grep_search", "mine", "read_file")] == [5, 7, 100_000]


def test_merging_into_a_policy_leaves_it_as_it_was() -> None:
    policy = Policy(tools={"mine": 7})
    merged = policy.merged({"mine": 8, "read_file": 9})

    assert merged.limits("mine").max_bytes == 8
    assert policy.limits("mine").max_bytes == 7


def test_a_tool_may_have_limits_in_lines_of_its_own() -> None:
    assert Policy(tools={"mine": Limits(10, 3)}).limits("mine") == Limits(10, 3)


def test_the_table_of_a_policy_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        Policy().tools["mine"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_bytes": -1}, "max_bytes must be 0 or more, not -1"),
        ({"max_bytes": True}, "max_bytes must be a whole number, not True"),
        ({"max_lines": "2000"}, "max_lines must be a whole number, not '2000'"),
        ({"max_lines": None}, "max_lines must be a whole number, not None"),
        ({"max_chars": 1.5}, "max_chars must be a whole number, not 1.5"),
        ({"max_tokens": -5}, "max_tokens must be 0 or more, not -5"),
        ({"preview_bytes": float("nan")}, "preview_bytes must be a whole number, not nan"),
        ({"context_tokens": 0}, "context_tokens must be more than 0"),
        ({"context_share": 0}, "context_share must be more than 0"),
        ({"context_share": 1.01}, "context_share must be at most 1, not 1.01"),
        ({"context_share": True}, "context_share must be a number, not True"),
        ({"chars_per_token": 0}, "chars_per_token must be more than 0"),
        ({"wait": -1.0}, "wait must be 0 or more, not -1.0"),
        ({"wait": float("inf")}, "wait must be a number, not inf"),
        ({"wait": "5"}, "wait must be a number, not '5'"),
        ({"ttl": 1.5}, "ttl must be a whole number, not 1.5"),
        ({"tools": {"mine": -1}}, "the limit of mine must be 0 or more, not -1"),
        ({"tools": {"mine": "5"}}, "the limit of mine must be a whole number, not '5'"),
        ({"tools": {"mine": Limits(1, -2)}}, "max_lines of mine must be 0 or more, not -2"),
        ({"tokenizer": "gpt-4"}, "tokenizer must be a function, not 'gpt-4'"),
        ({"strategy": 5}, "strategy must be one of overspill.previews.cut, such as PREVIEW, not 5"),
        ({"style": None}, "style must be one of overspill.previews.styles, such as MARKED, not None"),
        ({"exempt": "my_tool"}, "exempt must be a set of names of tools, not 'my_tool'"),
        (
            {"bands": [Band(above=5), Band()]},
            r"each band must be above the one before it; .* \[5, 0\]",
        ),
        ({"bands": [{"above": 5}]}, r"bands must be a sequence of Band, not"),
        ({"bands": iter([Band()])}, "bands must be a sequence of Band, not"),
        ({"exempt": [5]}, r"exempt must be a set of names of tools, not \[5\]"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Policy(**settings)


@pytest.mark.parametrize("setting", [field.name for field in fields(Policy) if field.init])
def test_a_value_of_another_type_is_refused_by_the_name_of_its_setting(setting: str) -> None:
    wrong: Any = object()

    with pytest.raises(ValueError, match=f"^{setting} must be"):
        Policy(**{setting: wrong})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"destinations": ("service", "moon")}, "destinations must be a sequence of service and spool, not"),
        ({"destinations": "service"}, "destinations must be a sequence of service and spool, not 'service'"),
        ({"destinations": 5}, "destinations must be a sequence of service and spool, not 5"),
        ({"destinations": iter(("spool",))}, "destinations must be a sequence of service and spool, not <"),
        ({"above": -1}, "above must be 0 or more, not -1"),
        ({"preview_bytes": 0.5}, "preview_bytes must be a whole number, not 0.5"),
    ],
)
def test_a_band_that_cannot_be_meant_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Band(**settings)


def test_by_default_every_output_is_tried_in_the_service_and_then_in_the_spool() -> None:
    assert {Policy().band(size) for size in (0, 1, 10**12)} == {Band()}
    assert Band().destinations == ("service", "spool")


def test_bands_say_by_size_where_an_output_goes_and_what_is_shown() -> None:
    huge = Band(above=1_000_000, destinations=(), preview_bytes=500)
    large = Band(above=1_000, destinations=("spool",))
    policy = Policy(bands=(large, huge))

    assert [policy.band(size) for size in (1_000, 1_001, 1_000_000, 1_000_001)] == [
        Band(),
        large,
        large,
        huge,
    ]


def test_a_limit_in_tokens_holds_for_every_tool_beside_its_bytes() -> None:
    policy = Policy(max_tokens=100, chars_per_token=4)

    assert policy.limits("grep_search") == Limits(20_000, 2_000, None, 100, TokenCounter(None, 4))
    assert not exceeds("x" * 400, policy.limits("mine"))
    assert exceeds("x" * 401, policy.limits("mine"))


def test_a_share_of_the_context_window_is_a_limit_in_tokens() -> None:
    assert Policy(context_tokens=128_000).limits("mine").max_tokens == 38_400
    assert Policy(context_tokens=128_000, context_share=0.5).limits("mine").max_tokens == 64_000
    assert Policy(context_tokens=128_000, max_tokens=5_000).limits("mine").max_tokens == 5_000


def test_a_tools_own_limit_in_tokens_is_counted_by_the_policys_tokenizer() -> None:
    policy = Policy(tools={"mine": Limits(1_000, max_tokens=2)}, tokenizer=str.split)

    assert not exceeds("one two", policy.limits("mine"))
    assert exceeds("one two three", policy.limits("mine"))


def test_a_changed_policy_keeps_its_other_settings() -> None:
    policy = replace(Policy(tools={"mine": 7}, max_tokens=9), max_lines=5)

    assert policy.limits("mine") == Limits(7, 5, None, 9)


def test_file_based_management_counts_characters_and_lines_for_every_tool() -> None:
    policy = Policy.file_based()

    assert policy.limits("read_file") == policy.limits("anything") == Limits(20_000, 100, 5_000)


def test_the_deadline_leaves_a_slow_link_time_for_a_large_output() -> None:
    policy = Policy(wait=5)

    assert policy.deadline(0) == 5
    assert policy.deadline(40 * 1024 * 1024) == 165
