import pytest
from overspill.measure import Limits
from overspill.policy import Policy


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


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="max_bytes must be 0 or more, not -1"):
        Policy(max_bytes=-1)


def test_a_negative_limit_of_one_tool_is_refused() -> None:
    with pytest.raises(ValueError, match="mine"):
        Policy(tools={"mine": -1})


def test_file_based_management_counts_characters_and_lines_for_every_tool() -> None:
    policy = Policy.file_based()

    assert policy.limits("read_file") == policy.limits("anything") == Limits(20_000, 100, 5_000)


def test_the_deadline_leaves_a_slow_link_time_for_a_large_output() -> None:
    policy = Policy(wait=5)

    assert policy.deadline(0) == 5
    assert policy.deadline(40 * 1024 * 1024) == 15
