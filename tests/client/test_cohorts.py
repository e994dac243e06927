"""The arm and group of a session: the same everywhere, and with a fair share of sessions."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter

import pytest
from overspill.wire import GROUPS, Arm, Cohort

from tests.client.shell import printed_by

OPENSSL = shutil.which("openssl")
GOLDEN = {
    ("previews", "run-42", 0.05): "previews.usual.00",
    ("previews", "run-42", 0.99): "previews.holdout.00",
    ("previews", "sitzung ✓", 0.5): "previews.holdout.05",
}
"""What other programs and later versions have to compute as well."""


@pytest.mark.parametrize(("experiment", "session", "share"), GOLDEN)
def test_the_cohort_of_a_session_never_changes(experiment: str, session: str, share: float) -> None:
    cohort = Cohort.of(experiment, session, share)

    assert cohort.encode() == GOLDEN[experiment, session, share]


@pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")
@pytest.mark.parametrize("session", ["run-42", "sitzung ✓", "", "x" * 10_000])
def test_another_program_computes_the_same(session: str) -> None:
    key = b"previews".hex()
    words = ["mac", "-macopt", f"hexkey:{key}", "-macopt", "size:16", "-in", "-", "BLAKE2BMAC"]
    done = subprocess.run([str(OPENSSL), *words], input=session.encode(), capture_output=True, check=True)
    position, group = (int(done.stdout.strip()[at : at + 16], 16) for at in (0, 16))

    for share in (0.01, 0.3, 0.7, 0.99):
        arm = Arm.HOLDOUT if position / 2**64 < share else Arm.USUAL
        assert Cohort.of("previews", session, share) == ("previews", arm, group % 16)


def test_another_process_computes_the_same() -> None:
    sessions = [f"session {number}" for number in range(200)]
    code = (
        "from overspill.wire import Cohort\n"
        "for number in range(200): print(Cohort.of('a', f'session {number}', 0.3).encode())"
    )

    assert printed_by(code).split() == [Cohort.of("a", session, 0.3).encode() for session in sessions]


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5, 1.0])
def test_the_share_of_sessions_is_as_asked_for(share: float) -> None:
    number = 20_000
    held = sum(Cohort.of("e", f"s{at}", share).arm is Arm.HOLDOUT for at in range(number))

    assert abs(held - number * share) <= 4 * (number * share * (1 - share)) ** 0.5


def test_groups_are_even_in_both_arms() -> None:
    counts = Counter(Cohort.of("e", f"s{at}", 0.5)[1:] for at in range(32_000))
    expected = 32_000 / (2 * GROUPS)
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())

    assert len(counts) == 2 * GROUPS
    assert chi_square < 61.1, "above the 99.9 % quantile of chi-square with 31 degrees of freedom"


def test_a_session_is_in_independent_arms_of_two_experiments() -> None:
    both = sum(
        Cohort.of("one", f"s{at}", 0.5).arm is Cohort.of("two", f"s{at}", 0.5).arm for at in range(10_000)
    )

    assert 4_800 <= both <= 5_200


def test_a_larger_share_holds_out_the_same_sessions_and_more() -> None:
    for at in range(2_000):
        small, large = (Cohort.of("e", f"s{at}", share) for share in (0.1, 0.4))
        assert small.group == large.group
        assert large.arm is Arm.HOLDOUT or small.arm is Arm.USUAL


def test_a_label_is_read_back_as_it_was_written() -> None:
    for cohort in (Cohort("a-B_9" * 12, Arm.HOLDOUT, 0), Cohort("x", Arm.USUAL, GROUPS - 1)):
        assert Cohort.decode(cohort.encode()) == cohort


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.b.c",
        "a.usual.16",
        "a.usual.7",
        "a.usual.\u0660\u0661",
        f"{'a' * 65}.usual.01",
        "a\n.usual.01",
        "a.usual.01\n",
    ],
)
def test_other_labels_are_no_cohort(text: str) -> None:
    assert Cohort.decode(text) is None


def test_a_session_may_hold_any_text() -> None:
    assert Cohort.of("e", "\ud800\0" * 10_000, 0.5).experiment == "e"
