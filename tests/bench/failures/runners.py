"""Runners of tests, linters and type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.bench.failures.case import Case, files, shell

if TYPE_CHECKING:
    from pathlib import Path

PYTEST: Final = "python -m pytest -p no:cacheprovider -p no:asyncio"


def pytest_one(folder: Path) -> str:
    files(
        folder,
        {
            f"test_module_{n}.py": "import pytest\n@pytest.mark.parametrize('x', range(40))\ndef test_adds(x): assert x + 0 == x\n"
            for n in range(12)
        },
    )
    files(
        folder,
        {
            "test_module_5.py": "import pytest\ndef price(x): return 1007 if x == 20 else x\n@pytest.mark.parametrize('x', range(40))\ndef test_price(x): assert price(x) == x\n"
        },
    )
    return shell(folder, f"{PYTEST} -v")


def pytest_setup(folder: Path) -> str:
    files(
        folder,
        {
            "conftest.py": "import pytest\n@pytest.fixture\ndef database():\n    raise RuntimeError('no database answers at port 5999')\n",
            **{
                f"test_part_{n}.py": f"def test_rows_{n}(database): assert database\ndef test_plain_{n}(): pass\n"
                for n in range(30)
            },
        },
    )
    return shell(folder, PYTEST)


def pytest_collection(folder: Path) -> str:
    files(
        folder,
        {
            f"test_feature_{n}.py": f"from shop import cart\n\ndef test_cart_{n}(): assert cart.total([]) == 0\n"
            for n in range(25)
        },
    )
    files(
        folder, {"shop/__init__.py": "", "shop/cart.py": "import frobnicator\n\ndef total(rows): return 0\n"}
    )
    return shell(folder, PYTEST)


def pytest_many(folder: Path) -> str:
    files(
        folder,
        {
            "test_api.py": """
import logging, socket
import pytest
log = logging.getLogger('api')

def connect(n):
    for attempt in range(5):
        log.warning('attempt %d to reach the inventory', attempt)
    return socket.create_connection(('127.0.0.1', 9))

@pytest.mark.parametrize('n', range(25))
def test_inventory_is_reachable(n):
    connection = connect(n)
    assert connection
"""
        },
    )
    return shell(folder, PYTEST)


def pytest_long_diff(folder: Path) -> str:
    files(
        folder,
        {
            "test_rows.py": "def rows(n): return [f'row {i} of the table' for i in range(n)]\n\ndef test_rows():\n    ours = rows(900)\n    ours[512] = 'row 512 of the cable'\n    assert ours == rows(900)\n"
        },
    )
    return shell(folder, f"{PYTEST} -vv")


def unit_test(folder: Path) -> str:
    tests = "".join(
        f"    def test_spelling_{n}(self): self.assertEqual('gray', 'gray')\n" for n in range(220)
    )
    files(
        folder,
        {
            "test_words.py": "import unittest\nclass Words(unittest.TestCase):\n"
            + tests
            + "    def test_colour(self): self.assertEqual('grey', 'gray')\n"
            + "    def tearDown(self): print('checked', self.id())\n"
        },
    )
    return shell(
        folder, "python -m unittest -v test_words; for i in $(seq 100); do echo removed build/tmp/$i; done"
    )


def hypothesis(folder: Path) -> str:
    files(
        folder,
        {
            "test_sort.py": """
from hypothesis import given, settings, strategies as st
def broken(xs): return xs if len(xs) > 3 else sorted(xs)
@settings(database=None, derandomize=True)
@given(st.lists(st.integers()))
def test_sorts(xs):
    print('sorting', xs)
    assert broken(xs) == sorted(xs)
def test_more():
    for i in range(300): print('checked', i)
    assert True
"""
        },
    )
    return shell(folder, f"{PYTEST} -rA")


def mypy(folder: Path) -> str:
    files(
        folder,
        {
            f"parts/part_{n}.py": f"from shop import ship\n\ndef send_{n}(box):\n    label: str = 'box'\n    return ship({n})\n"
            for n in range(60)
        },
    )
    files(
        folder,
        {
            "shop.py": "def ship(number: int) -> str: return str(number)\n",
            "parts/part_31.py": "from shop import ship\n\ndef send() -> None:\n    ship('31')\n",
        },
    )
    return shell(folder, "python -m mypy --cache-dir=/dev/null shop.py parts/*.py")


def ruff(folder: Path) -> str:
    files(
        folder, {f"part_{n}.py": f"import os\nimport sys\nimport json\n\nnumber = {n}\n" for n in range(40)}
    )
    files(folder, {"part_17.py": "def total(rows):\n    return sum(rows) + totl\n"})
    return shell(folder, "ruff check --no-cache --output-format=concise .")


def node_test(folder: Path) -> str:
    tests = "".join(f"test('adds {n}', () => assert.strictEqual({n} + 1, {n + 1}));\n" for n in range(160))
    files(
        folder,
        {
            "sums.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\n"
            + tests[: len(tests) // 2 // 60 * 0]
            + "test('adds tax', () => assert.strictEqual(100 * 1.19, 120, 'tax is wrong'));\n"
            + tests
        },
    )
    return shell(folder, "node --test --test-reporter=tap")


def doctest(folder: Path) -> str:
    examples = "".join(f"    >>> square({n})\n    {n * n}\n" for n in range(80)).replace(
        "    1764\n", "    1765\n"
    )
    files(folder, {"squares.py": f'def square(n):\n    """Squares.\n\n{examples}    """\n    return n * n\n'})
    return shell(folder, "python -m doctest -v squares.py")


CASES: Final = (
    Case("pytest -v: one of 480", r"assert 1007 == 20", pytest_one),
    Case(
        "pytest: a fixture fails in 30 modules",
        r"RuntimeError: no database answers at port 5999",
        pytest_setup,
        held_out=True,
    ),
    Case(
        "pytest: an import fails in 25 modules",
        r"ModuleNotFoundError: No module named 'frobnicator'",
        pytest_collection,
    ),
    Case("pytest: 25 failures with logs, one reason", r"ConnectionRefusedError", pytest_many),
    Case("pytest -vv: a difference in a long list", r"At index 512 diff", pytest_long_diff),
    Case("unittest -v: one of 221, then a clean-up", r"AssertionError: 'grey' != 'gray'", unit_test),
    Case(
        "hypothesis: a falsifying example",
        r"assert \[.*\] == \[.*\]|At index \d+ diff|[Ff]ailing test case|Falsifying example",
        hypothesis,
        held_out=True,
    ),
    Case("mypy: an error among notes", r'error: Argument 1 to "ship" has incompatible type "str"', mypy),
    Case("ruff: an undefined name among unused imports", r"F821 Undefined name `totl`", ruff),
    Case("node --test: one of 161", r"tax is wrong", node_test, ("node",)),
    Case(
        "doctest -v: one of 80 examples",
        r"Failed example|1 of {1,3}\d+ in|\*\*\*Test Failed\*\*\* 1",
        doctest,
    ),
)
