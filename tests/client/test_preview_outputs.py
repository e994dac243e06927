"""The exact text that a model sees of outputs as tools print them."""

from __future__ import annotations

import pytest
from overspill.previews.preview import preview

STAGES = "lex parse bind emit link load"
PARTS = "core util text node type path pool sort hash tree list math"
NAMES = [f"{stage}-{part}" for stage in STAGES.split() for part in PARTS.split()]


def build() -> str:
    """A build that goes on after an error, with warnings on both sides of it."""
    lines = []
    for name in (f"{stage}_{part}" for stage in STAGES.split() for part in PARTS.split()):
        lines.append(f"cc -O2 -Wall -Iinclude -c src/{name}.c -o build/{name}.o\n")
        if name.endswith(("pool", "hash")):
            lines.append(f"src/{name}.c:31:9: warning: unused variable 'spare' [-Wunused-variable]\n")
            lines.append("   31 |     int spare = 0;\n      |         ^~~~~\n")
        if name == "bind_tree":
            lines.append(f"src/{name}.c: In function 'insert':\n")
            lines.append(f"src/{name}.c:58:17: error: 'struct node' has no member named 'lft'\n")
            lines.append("   58 |     return node->lft;\n      |                ^~\n")
            lines.append(f"make: *** [Makefile:12: build/{name}.o] Error 1\n")
    return "".join([*lines, "make: Target 'all' not remade because of errors.\n"])


def service() -> str:
    """A service's log: warnings again and again, and one exception."""
    lines = [
        f"2026-11-12T10:{n // 60:02}:{n % 60:02}Z INFO  served /items/{n * 37 % 1000} in {n * 7 % 90} ms\n"
        for n in range(2_000)
    ]
    for n in range(900, 1_400, 5):
        lines[n] = f"2026-11-12T10:15:{n % 60:02}Z WARN  pool is short of connections, {n % 7} waiting\n"
    lines[1_102:1_102] = [
        "2026-11-12T10:18:22Z ERROR request 1102 failed\n",
        "Traceback (most recent call last):\n",
        '  File "/app/shop/orders.py", line 88, in price\n',
        "    rate = self.rates[order.currency]\n",
        "KeyError: 'XAU'\n",
    ]
    return "".join(lines)


def test_the_preview_of_a_build_has_its_error_with_what_surrounds_it() -> None:
    assert preview(build(), 1_200) == (
        "cc -O2 -Wall -Iinclude -c src/lex_core.c -o build/lex_core.o\n"
        "cc -O2 -Wall -Iinclude -c src/lex_util.c -o build/lex_util.o\n"
        "cc -O2 -Wall -Iinclude -c src/lex_text.c -o build/lex_text.o\n"
        "… [103 lines, 5,681 bytes not shown but for lines that stand out:] …\n"
        "line 44: src/bind_pool.c:31:9: warning: unused variable 'spare' [-Wunused-variable]\n"
        "line 49: src/bind_hash.c:31:9: warning: unused variable 'spare' [-Wunused-variable]\n"
        "line 52: cc -O2 -Wall -Iinclude -c src/bind_tree.c -o build/bind_tree.o\n"
        "line 53: src/bind_tree.c: In function 'insert':\n"
        "line 54: src/bind_tree.c:58:17: error: 'struct node' has no member named 'lft'\n"
        "line 55: 58 |     return node->lft;\n"
        "line 56: |                ^~\n"
        "line 57: make: *** [Makefile:12: build/bind_tree.o] Error 1\n"
        "…\n"
        "cc -O2 -Wall -Iinclude -c src/load_hash.c -o build/load_hash.o\n"
        "src/load_hash.c:31:9: warning: unused variable 'spare' [-Wunused-variable]\n"
        "   31 |     int spare = 0;\n"
        "      |         ^~~~~\n"
        "cc -O2 -Wall -Iinclude -c src/load_tree.c -o build/load_tree.o\n"
        "cc -O2 -Wall -Iinclude -c src/load_list.c -o build/load_list.o\n"
        "cc -O2 -Wall -Iinclude -c src/load_math.c -o build/load_math.o\n"
        "make: Target 'all' not remade because of errors.\n"
    )


def test_the_preview_of_a_log_has_its_exception_and_folds_what_repeats() -> None:
    assert preview(service(), 1_024) == (
        "2026-11-12T10:00:00Z INFO  served /items/0 in 0 ms\n"
        "2026-11-12T10:00:01Z INFO  served /items/37 in 7 ms\n"
        "2026-11-12T10:00:02Z INFO  served /items/74 in 14 ms\n"
        "… [1,394 lines, 76,202 bytes not shown but for lines that stand out:] …\n"
        "line 901: 2026-11-12T10:15:00Z WARN  pool is short of connections, 4 waiting"
        " (and 99 more lines like it, to line 1,401)\n"
        "line 1,103: 2026-11-12T10:18:22Z ERROR request 1102 failed\n"
        'line 1,105: File "/app/shop/orders.py", line 88, in price\n'
        "line 1,106: rate = self.rates[order.currency]\n"
        "line 1,107: KeyError: 'XAU'\n"
        "…\n"
        "2026-11-12T10:23:12Z INFO  served /items/504 in 24 ms\n"
        "2026-11-12T10:23:13Z INFO  served /items/541 in 31 ms\n"
        "2026-11-12T10:23:14Z INFO  served /items/578 in 38 ms\n"
        "2026-11-12T10:15:15Z WARN  pool is short of connections, 2 waiting\n"
        "… [601 lines like the next] …\n"
        "2026-11-12T10:33:17Z INFO  served /items/889 in 29 ms\n"
        "2026-11-12T10:33:18Z INFO  served /items/926 in 36 ms\n"
        "2026-11-12T10:33:19Z INFO  served /items/963 in 43 ms\n"
    )


def diff() -> str:
    """A diff of code that handles errors, behind the message of a commit."""
    files = []
    for name in (f"{stage}_{part}" for stage in STAGES.split() for part in PARTS.split()[:3]):
        files.append(f"diff --git a/src/{name}.py b/src/{name}.py\nindex 1f0c2a9..8d1e3b4 100644\n")
        files.append(
            f"--- a/src/{name}.py\n+++ b/src/{name}.py\n@@ -88,7 +88,7 @@ def failed(error: OSError):\n"
        )
        files.append("     except ValueError as error:\n-        raise Failure('it failed') from error\n")
        files.append("+        raise Failure('error: it failed') from error\n" + "     return None\n" * 5)
    message = "commit 1f0c2a9d\nAuthor: A <a@example.com>\nDate:   Sat Nov 28\n\n    Fix an error\n\n"
    return message + "".join(files)


def test_the_preview_of_a_diff_has_its_files_and_no_lines_of_code_about_errors() -> None:
    shown = preview(diff(), 2_048)
    standing_out = [line for line in shown.splitlines() if line.startswith("line ")]

    assert len(standing_out) > 10
    assert all(": diff --git a/src/" in line for line in standing_out)


def test_what_failed_beside_a_diff_stands_out() -> None:
    half = len(diff()) // 2
    cut = diff().rindex("diff --git", 0, half)
    shown = preview(f"{diff()[:cut]}fatal: unable to read 8d1e3b4\n{diff()[cut:]}", 2_048)

    assert ": fatal: unable to read 8d1e3b4" in shown


@pytest.mark.parametrize("steps", range(2, 42))
def test_lines_around_one_that_the_tail_shows_do_not_stand_alone(steps: int) -> None:
    packages = "".join(f"Collecting {name}\n  Fetching the archive of {name}\n" for name in NAMES * 3)
    error = (
        "ERROR: no version of it is known\nERROR: process pip did not complete successfully: exit code: 1\n"
    )
    rest = "".join(f"left out: {name}\n" for name in NAMES[:steps])
    shown = preview(f"{packages}{error}{rest}", 2_048)
    lines = shown.splitlines()
    standing_out = [line for line in lines if line.startswith("line ")]

    assert any("ERROR: no version" in line for line in lines)
    assert not standing_out or any("ERROR" in line for line in standing_out)
    assert len(shown) > 1_800


def test_the_only_error_among_many_kinds_of_warnings_stands_out() -> None:
    warnings = [f"warning: unused variable: `{name}`\n  --> src/{name}.rs:12:9\n\n" for name in NAMES]
    warnings += [f"warning: function `{name}` is never used\n  --> src/{name}.rs:4:4\n\n" for name in NAMES]
    error = "error[E0502]: cannot borrow `self.items` as mutable\n  --> src/cart.rs:88:13\n\n"
    end = "error: could not compile `shop` due to 1 previous error; 120 warnings emitted\n"
    places = range(40, 100)
    shown = [preview("".join([*warnings[:at], error, *warnings[at:], end]), 2_048) for at in places]

    assert all("error[E0502]: cannot borrow `self.items` as mutable" in each for each in shown)


def test_a_line_with_a_word_that_is_also_like_no_other_counts_once() -> None:
    rows = [f" {n:>4} | u{n:04}@example.com | paid   | {n * 7919 % 9973 / 100:6.2f}\n" for n in range(1_200)]
    rows[700] = rows[700].replace("paid  ", "failed")
    lines = preview("".join(rows), 2_048).splitlines()

    assert [line for line in lines if "failed" in line] == [
        "line 701: 700 | u0700@example.com | failed |  82.85"
    ]


def test_no_part_of_a_long_line_of_code_stands_out_in_a_diff() -> None:
    diff = "".join(
        f"diff --git a/{name}.py b/{name}.py\n--- a/{name}.py\n+++ b/{name}.py\n@@ -1 +1 @@\n-old\n+new\n"
        for name in NAMES
    )
    code = (
        "var a = 1; " * 2_000 + "throw new Error('the service cannot be reached'); " + "var b = 2; " * 2_000
    )
    shown = preview(f"{diff}diff --git a/m.js b/m.js\n--- a/m.js\n+++ b/m.js\n-x\n+{code}\n{diff}", 2_048)

    assert "diff --git" in shown.split("stand out", 1)[1]
    assert "cannot be reached" not in shown
