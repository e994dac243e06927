"""Guards, policies and wrapped tools where they are copied, or sent to other processes."""

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from overspill import Client, Guard, Policy, SyncClient
from overspill.previews.notice_forms import is_notice
from overspill.spools.spool import Spool
from pydantic import BaseModel, ConfigDict

LONG = "a line of text\n" * 9_000
GUARD = Guard(policy=Policy(tools={"run": 60_000}), spool=False)
POLICIES = [
    Policy(strategies={"make": "TAIL"}),
    Policy.persisted(),
    Policy.clamped(),
    Policy.token_limited(),
    Policy.capped(9_000),
]


@GUARD.wrap
def run(times: int) -> str:
    return LONG * times


class Agent(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    guard: Guard
    tool: Callable[[int], str]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_policy_is_the_same_wherever_it_goes(policy: Policy, again: Any) -> None:
    made = again(policy)

    assert made.tools.keys() == policy.tools.keys()
    assert made.notice_style.name == policy.notice_style.name
    assert made.cut_strategy("make") == policy.cut_strategy("make")
    assert made.strategies == policy.strategies
    assert made.limits("read_file")[:4] == policy.limits("read_file")[:4]


def test_a_deep_copy_of_an_agent_shares_its_guard() -> None:
    agent = Agent(guard=GUARD, tool=run)
    copied = agent.model_copy(deep=True)

    assert copied.guard is GUARD
    assert is_notice(copied.tool(1))


def test_a_guard_that_was_pickled_has_what_the_first_was_given(tmp_path: Path) -> None:
    with SyncClient("http://127.0.0.1:9", "osk_key", session="s", retries=0) as client:
        first = Guard(client, Policy(max_bytes=1_000), spool=Spool(tmp_path))
        second = pickle.loads(pickle.dumps(first))

        assert (second.session, second.policy) == ("s", first.policy)
        assert second.process_sync("x" * 2_000, tool="t", call_id="c").outcome == "spooled"


def test_a_client_that_was_pickled_has_the_same_address() -> None:
    client = Client("http://127.0.0.1:9", "osk_key", session="s", timeout=3)
    again = pickle.loads(pickle.dumps(client))

    assert (again.address, again.session) == (client.address, "s")


def test_a_spawned_process_runs_a_wrapped_tool() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert is_notice(pool.apply_async(run, (1,)).get(120))


def test_cloudpickle_sends_a_wrapped_tool_that_no_module_has() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")

    async def nested(times: int) -> str:
        return LONG * times

    for tool in (GUARD.wrap(lambda times: LONG * times, name="run"), GUARD.wrap(nested)):
        assert callable(pickle.loads(cloudpickle.dumps(tool)))
    assert is_notice(pickle.loads(cloudpickle.dumps(GUARD.wrap(lambda: LONG, name="t")))())
