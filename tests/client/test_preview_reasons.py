"""A preview shows why something failed, however a tool, a logger or a build server writes it."""

from functools import partial
from itertools import pairwise
from timeit import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.previews import candidates, excerpt, presence, spans
from overspill.previews.preview import preview
from overspill.previews.vocabulary import judge

STEPS = ["resolve", "fetch", "unpack", "patch", "configure", "compile", "check", "strip", "install"]
PARTS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
CALM = [f"{step} {part} {other}\n" for step in STEPS for part in PARTS for other in PARTS]
"""900 lines of a build in which nothing goes wrong."""

PREFIXES = [
    "2026-11-12T10:18:22Z ",
    "2026-11-12T10:18:22.7718342Z ",
    "2026-11-12 10:18:22,123 ",
    "[2026-11-12 10:18:22] ",
    "10:02:03 ",
    "[10:02:03.123] ",
    "12/Nov/2026:10:18:22 +0000 ",
    "Nov 12 10:11:40 web1 worker[812]: ",
    "[ 2599.400099] ",
    "web-1  | ",
    "10:02:03 web.1  | ",
    "[pod/web-5d8/app] ",
    "build\tRun the tests\t2026-11-12T10:18:22.1Z ",
    "[Pipeline] ",
    "[gw3] ",
    "[my-app] ",
    "#12 3.456 ",
    "[task 2026-11-12T10:18:22.123Z] 10:18:22     ",
    "(pid=812) ",
    "│ ",
    "\x1b[36mweb-1  |\x1b[0m ",
    "travis_time:end:0a1b\r\x1b[0K",
]

REASONS = [
    "ValueError: the batch has no rows",
    "Minitest::Assertion: Expected true to not be truthy.",
    "orders.rb:12:in 'price': undefined method 'rate' for nil (NoMethodError)",
    "** (ArgumentError) argument error",
    "  1) test prices an order (Shop.OrderTest)",
    "Fatal error: Index out of range: file Swift/ContiguousArrayBuffer.swift, line 600",
    "Test Case '-[ShopTests.OrderTests testPrice]' failed (0.012 seconds).",
    "INFO: task kworker/u8:2:123 blocked for more than 120 seconds.",
    "BUG: unable to handle page fault for address: ffffa1b2",
    "Kernel panic - not syncing: Attempted to kill init!",
    "Out of memory: Killed process 4242 (java) total-vm:9831224kB",
    '{"test":"prices an order","status":"FAIL","ms":12}',
    '{"level":50,"msg":"the pool is gone"}',
    '{"Action":"fail","Package":"shop/orders","Test":"TestPrice"}',
    '{"ok":false,"took":12}',
    "--- FAIL: TestPrice (0.00s)",
    "panic: runtime error: index out of range [5] with length 3",
    "./orders.go:12:9: undefined: rate",
    "error[E0308]: mismatched types",
    "thread 'main' panicked at src/main.rs:2:5:",
    "src/orders.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.",
    "src/orders.ts:3:5 - error TS2322: Type 'string' is not assignable to type 'number'.",
    "  12:5  error  'rate' is not defined  no-undef",
    "npm ERR! code ERESOLVE",
    "ERROR in ./src/orders.js 3:4",
    "Module not found: Error: Can't resolve './rate'",
    "[ERROR] /shop/src/main/java/Orders.java:[12,5] cannot find symbol",
    "Execution failed for task ':shop:compileJava'.",
    "error CS1002: ; expected",
    "PHP Fatal error:  Uncaught TypeError: price() must be int",
    "Failed asserting that 3 matches expected 4.",
    "src/Shop/Orders.hs:94:10: error: Variable not in scope: rate",
    "undefined reference to `rate'",
    "==812==ERROR: AddressSanitizer: heap-use-after-free on address 0x602",
    "orders.c:12:5: runtime error: signed integer overflow",
    "CMake Error at CMakeLists.txt:12 (find_package):",
    "ERROR: /shop/BUILD:3:1: C++ compilation of rule '//shop:orders' failed (Exit 1)",
    "//shop:orders_test FAILED in 1 out of 1 in 0.1s",
    "Error: Invalid value for variable",
    'fatal: [web1]: FAILED! => {"changed": false}',
    'Error from server (NotFound): pods "web" not found',
    "Back-off restarting failed container",
    "Error: UPGRADE FAILED: timed out waiting for the condition",
    'ERROR: failed to solve: process "/bin/sh -c make" did not complete successfully: exit code: 2',
    'ERROR:  relation "orders" does not exist',
    "ERROR 1045 (28000): Access denied for user 'shop'@'localhost'",
    "shop.service: Failed with result 'exit-code'.",
    "##[error]The process '/usr/bin/make' failed with exit code 2",
    "E   assert 3 == 4",
    "FAILED tests/test_orders.py::test_price - assert 3 == 4",
    "not ok 12 - prices an order",
    "  ● orders: prices an order",
    "[  FAILED  ] Orders.Price (0 ms)",
    "[info] - prices an order *** FAILED ***",
    "flag provided but not defined: -fast",
    "E: Unable to locate package libshop",
    "bash: shop: command not found",
    "CONFLICT (content): Merge conflict in orders.c",
    "curl: (6) Could not resolve host: shop.example",
]  # fmt: skip


def amid(*lines: str) -> str:
    """`lines` in the middle of a build in which nothing else goes wrong."""
    return "".join([*CALM, *(f"{line}\n" for line in lines), *CALM])


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("line", ["ValueError: the batch has no rows", "--- FAIL: TestPrice (0.00s)"])
def test_what_stands_before_the_message_of_a_line_does_not_hide_it(prefix: str, line: str) -> None:
    text = "".join(f"{prefix}{calm}" for calm in [*CALM, f"{line}\n", *CALM])

    assert line in preview(text, 2_048)
    assert judge([prefix + line]) == judge([line])


@pytest.mark.parametrize("line", REASONS)
def test_the_reason_is_shown_however_a_tool_writes_it(line: str) -> None:
    assert line.strip()[:150] in preview(amid(line), 2_048)


@pytest.mark.parametrize("level", ["INFO", "DEBUG", "[info]"])
def test_a_calm_level_does_not_hide_what_is_decisive(level: str) -> None:
    flood = [f"10:02:03 WARN  {part} {other} is slow\n" for part in PARTS for other in PARTS] * 20
    flood[1_000] = f"10:02:03 {level} - KeyError: 'XAU'\n"

    assert "KeyError: 'XAU'" in preview("".join(flood), 2_048)


def test_a_lone_failed_answer_among_good_ones_is_shown() -> None:
    lines = [f'10.0.0.{n % 250} - - "GET /items/{n} HTTP/1.1" 200 {n}\n' for n in range(3_000)]
    lines[1_500] = '10.0.0.7 - - "GET /items/1500 HTTP/1.1" 500 21\n'

    assert '"GET /items/1500 HTTP/1.1" 500 21' in preview("".join(lines), 2_048)


def test_a_step_that_failed_is_told_from_those_alike_that_did_not() -> None:
    lines = [f"step {number} exited with 0\n" for number in range(2_000)]
    lines[900] = "step 900 exited with 3\n"

    assert "step 900 exited with 3" in preview("".join(lines), 2_048)


def test_the_lines_before_the_end_of_a_failed_step_are_shown() -> None:
    shown = preview(
        amid("$ ./check", "two pages are older than their sources", "./check exited with 1."), 2_048
    )

    assert "two pages are older than their sources" in shown


def test_the_paragraph_after_a_heading_is_shown() -> None:
    shown = preview(amid("There was 1 failure:", "", "1) OrderTest::price", "3 is not 4"), 2_048)

    assert "1) OrderTest::price" in shown
    assert "3 is not 4" in shown


def test_of_many_incidents_the_first_and_the_last_are_shown() -> None:
    lines = [
        f"ConnectionError: {part} {other} is gone\n" for part in PARTS for other in PARTS for _ in range(3)
    ]
    shown = preview("".join([*CALM, *lines, *CALM]), 2_048)

    assert "ConnectionError: alpha alpha is gone" in shown
    assert "ConnectionError: kappa kappa is gone" in shown


@pytest.mark.parametrize(
    "line", ["ValueError: no rows", "--- FAIL: TestPrice (0.00s)", "ERROR the disk is full"]
)
@pytest.mark.parametrize("share", [0.1, 0.35, 0.5, 0.8])
def test_the_middle_of_five_megabytes_is_searched(line: str, share: float) -> None:
    calm = CALM * 300
    calm[int(len(calm) * share)] = f"{line}\n"

    assert line in preview("".join(calm), 2_048)


def test_of_a_text_of_any_length_so_much_is_searched_and_judged() -> None:
    text = "".join(f"{step} failed: {number}\n" for number in range(60_000) for step in STEPS) * 8
    searched = list(spans.spans(excerpt.excerpt_of_text(text), 0, len(text)))

    assert sum(part.end - part.begin for part in searched) < 10_000_000 < len(text)
    assert all(one.end <= other.begin for one, other in pairwise(searched))
    assert (
        len(candidates.CandidateSearch(excerpt.excerpt_of_text(text), 0, len(text)).usual().candidates) < 100
    )


HOSTILE = (
    *(
        "a.",
        "A_",
        "Aa::",
        "aA",
        "a/",
        "(",
        "1) ",
        "0 ",
        "\t",
        "\\",
        "E",
        "error",
        "Error",
        "sanitizer",
        "=-",
        "no ",
    ),
    *(
        "expected ",
        "[x] ",
        "at ",
        "exit with ",
        "failed ",
        "status ",
        "10:00:00 ",
        "web-1 | ",
        "https://a 4 ",
    ),
    *("a.a:1", "without a ", "assert ", "at a line ", "ERR_", '"level":'),
)


@pytest.mark.parametrize("part", HOSTILE)
def test_no_line_takes_long_to_judge(part: str) -> None:
    usual = "2026-11-12T10:18:22Z ERROR worker-12 failed to reach shop: connection refused (10.1.1.1:38)"
    line = part * (320 // len(part))
    cost, usual_cost = (min(repeat(partial(judge, [each]), number=5, repeat=7)) for each in (line, usual))

    assert cost < 60 * usual_cost


def test_a_failed_call_prefers_the_end() -> None:
    usual, failed = (preview("".join(CALM), 2_048, has_failed=failed) for failed in (False, True))

    assert failed.index("not shown") < usual.index("not shown")
    assert len(failed) > 1_900


@given(st.binary(max_size=300), st.integers(0, 300), st.integers(0, 3))
def test_a_word_is_found_by_its_rare_letter_where_it_is_found_as_a_whole(
    data: bytes, begin: int, words: int
) -> None:
    data += b"xxFAIL" * words + data
    word = presence.Word.of(b"FAIL", b"." * 5_000)

    assert word.letter
    assert word.find(data, begin) == data.find(b"FAIL", begin)


def test_a_letter_that_is_not_rare_after_all_hides_no_word() -> None:
    word = presence.Word.of(b"FAIL", b"." * 5_000)

    assert word.find(b"F" * 10_000 + b"FAIL", 0) == 10_000
