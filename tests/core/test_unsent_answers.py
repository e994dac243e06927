"""`UnsentAnswers`: what clients do not take is bounded, and costs their own tenant connections."""

from __future__ import annotations

from overspill_service.resources.unsent_answers import UnsentAnswers

MEMORY = 800
"""Of which a tenant's clients may leave 100 untaken, and those of all tenants 200."""


class Client:
    def __init__(self, size: int) -> None:
        self.size, self.is_cut_off = size, False

    def get_write_buffer_size(self) -> int:
        return self.size

    def abort(self) -> None:
        self.size, self.is_cut_off = 0, True


def noted(unsent: UnsentAnswers, tenant: str, *sizes: int) -> list[Client]:
    clients = [*map(Client, sizes)]
    for each in clients:
        unsent.note(tenant, each)
    return clients


def test_of_a_tenant_s_clients_that_take_too_little_the_oldest_is_cut_off() -> None:
    told: list[str] = []
    unsent = UnsentAnswers(MEMORY, told.append)
    clients = noted(unsent, "greedy", 40, 40, 40)

    assert [each.is_cut_off for each in clients] == [True, False, False]
    assert told == ["greedy"]
    assert unsent.total == 80


def test_other_tenants_clients_stay() -> None:
    unsent = UnsentAnswers(MEMORY)
    modest = noted(unsent, "modest", 40, 40)
    noted(unsent, "greedy", *[40] * 10)

    assert not any(each.is_cut_off for each in modest)
    assert unsent.total <= unsent.limit


def test_of_all_tenants_the_one_with_the_most_gives_back() -> None:
    unsent = UnsentAnswers(MEMORY)
    largest = noted(unsent, "largest", 50, 50)
    others = [each for tenant in "abc" for each in noted(unsent, tenant, 40)]

    assert [each.is_cut_off for each in largest] == [True, False]
    assert not any(each.is_cut_off for each in others)


def test_a_client_that_takes_something_is_not_cut_off_for_those_that_take_nothing() -> None:
    unsent = UnsentAnswers(MEMORY)
    moving, stalled = noted(unsent, "one", 40, 40)
    moving.size = 30
    noted(unsent, "one", 40)

    assert (moving.is_cut_off, stalled.is_cut_off) == (False, True)


def test_one_answer_alone_may_be_longer_than_all_may_be_together() -> None:
    unsent = UnsentAnswers(MEMORY)
    (client,) = noted(unsent, "one", 1000)

    assert not client.is_cut_off


def test_what_is_taken_or_over_counts_no_more() -> None:
    unsent = UnsentAnswers(MEMORY)
    (client,) = noted(unsent, "one", 90)
    client.size = 0
    unsent.note("one", client)
    with unsent.held("one", client, 90):
        assert unsent.total == 90

    assert unsent.total == 0
