"""The circuit breaker: when the service is not asked, and when it is tried again."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from overspill.delivery.circuit import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Circuit

from tests.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def circuit(clock: Clock) -> Circuit:
    return Circuit(clock=clock)


def opened(circuit: Circuit) -> Circuit:
    circuit.failed(slow=True)
    return circuit


def test_one_quick_failure_changes_nothing(circuit: Circuit) -> None:
    circuit.failed(slow=False)

    assert circuit.allows()
    assert not circuit.is_open


def test_two_quick_failures_in_a_row_open_it(circuit: Circuit) -> None:
    circuit.failed(slow=False)
    circuit.failed(slow=False)

    assert not circuit.allows()


def test_two_quick_failures_with_a_success_between_do_not(circuit: Circuit) -> None:
    circuit.failed(slow=False)
    circuit.succeeded()
    circuit.failed(slow=False)

    assert circuit.allows()


def test_one_slow_failure_opens_it(circuit: Circuit) -> None:
    assert not opened(circuit).allows()


def test_after_the_pause_one_try_goes_through_and_no_second(circuit: Circuit, clock: Clock) -> None:
    opened(circuit)
    clock.now += FIRST_PAUSE_SECONDS - 0.01
    early = circuit.allows()
    clock.now += 0.01

    assert (early, circuit.allows(), circuit.allows()) == (False, True, False)


def test_of_many_threads_one_gets_the_try(circuit: Circuit, clock: Clock) -> None:
    opened(circuit)
    clock.now += FIRST_PAUSE_SECONDS
    with ThreadPoolExecutor(8) as threads:
        allowed = list(threads.map(lambda _: circuit.allows(), range(200)))

    assert allowed.count(True) == 1


def test_a_try_that_succeeds_closes_it(circuit: Circuit, clock: Clock) -> None:
    opened(circuit)
    clock.now += FIRST_PAUSE_SECONDS
    assert circuit.allows()
    circuit.succeeded()

    assert circuit.allows()
    assert circuit.allows()


def test_each_failed_try_doubles_the_pause_up_to_the_longest(circuit: Circuit, clock: Clock) -> None:
    opened(circuit)
    pauses = []
    for _ in range(6):
        start = clock.now
        while not circuit.allows():
            clock.now += 0.5
        pauses.append(clock.now - start)
        circuit.failed(slow=False)

    assert pauses == [
        FIRST_PAUSE_SECONDS,
        2 * FIRST_PAUSE_SECONDS,
        4 * FIRST_PAUSE_SECONDS,
        8 * FIRST_PAUSE_SECONDS,
        LONGEST_PAUSE_SECONDS,
        LONGEST_PAUSE_SECONDS,
    ]


def test_once_closed_it_opens_with_the_first_pause_again(circuit: Circuit, clock: Clock) -> None:
    opened(circuit)
    clock.now += FIRST_PAUSE_SECONDS
    assert circuit.allows()
    circuit.failed(slow=True)
    circuit.succeeded()
    opened(circuit)
    clock.now += FIRST_PAUSE_SECONDS

    assert circuit.allows()


def test_failures_of_calls_from_before_it_opened_do_not_make_the_pause_longer(
    circuit: Circuit, clock: Clock
) -> None:
    for _ in range(10):
        circuit.failed(slow=True)
    clock.now += FIRST_PAUSE_SECONDS

    assert circuit.allows()


def test_a_try_that_never_reports_lets_another_through_after_a_pause(circuit: Circuit, clock: Clock) -> None:
    opened(circuit)
    clock.now += FIRST_PAUSE_SECONDS
    assert circuit.allows()
    clock.now += FIRST_PAUSE_SECONDS

    assert circuit.allows()
