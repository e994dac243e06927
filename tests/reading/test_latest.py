"""The dict of bounded size for things that a process remembers."""

import copy

from overspill.reading.latest import Latest


def test_a_deep_copy_has_the_items_and_forgets_as_early() -> None:
    known: Latest[str, list[int]] = Latest(2)
    known["a"], known["b"] = [1], [2]
    copied = copy.deepcopy(known)
    copied["c"] = [3]

    assert dict(copied) == {"b": [2], "c": [3]}
    assert dict(known) == {"a": [1], "b": [2]}
