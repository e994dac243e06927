"""Compilers, linkers and what drives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.bench.failures.case import Case, files, shell

if TYPE_CHECKING:
    from pathlib import Path


def gcc_warnings(folder: Path) -> str:
    functions = [f"int f{n}(int a) {{ int unused_{n}; return a + {n}; }}\n" for n in range(160)]
    functions[77] = "int f77(int a) { return a + totl; }\n"
    files(folder, {"sums.c": "".join(functions)})
    return shell(folder, "gcc -Wall -Wextra -c sums.c")


def gxx_templates(folder: Path) -> str:
    files(
        folder,
        {
            "sort.cc": "#include <list>\n#include <algorithm>\n#include <string>\n"
            "int main() { std::list<std::string> names; std::sort(names.begin(), names.end()); }\n"
        },
    )
    return shell(folder, "g++ -std=c++17 -c sort.cc")


def linker(folder: Path) -> str:
    files(folder, {f"part_{n}.c": f"int part_{n}(void) {{ return {n}; }}\n" for n in range(30)})
    calls = "".join(f"int part_{n}(void); " for n in range(30))
    files(
        folder,
        {"main.c": f"{calls}int frobnicate(int);\nint main(void) {{ return frobnicate(part_3()); }}\n"},
    )
    files(
        folder,
        {
            "Makefile": "OBJECTS = $(patsubst %.c,%.o,$(wildcard *.c))\nall: program docs\n"
            "program: $(OBJECTS)\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -O2 -g -fPIC -DNDEBUG -DVERSION=12 -c -o $@ $<\n"
            'docs:\n\t@for page in `seq 120`; do echo "rendered page $$page of the manual"; done\n'
        },
    )
    return shell(folder, "make -k")


def make_parallel(folder: Path) -> str:
    sources = {f"module_{n}.c": f"int module_{n}(int x) {{ return x * {n}; }}\n" for n in range(60)}
    sources["module_23.c"] = "int module_23(int x) {\n  return x *;\n}\n"
    files(folder, sources)
    files(
        folder,
        {
            "Makefile": "all: $(patsubst %.c,%.o,$(wildcard *.c))\n"
            "%.o: %.c\n\tgcc -O1 -Wall -Wextra -Iinclude -Ithird_party/include -c -o $@ $<\n"
        },
    )
    return shell(folder, "make -k -j2")


def javac(folder: Path) -> str:
    names = [f"Report{n}" for n in range(60)]
    sources = {
        f"{name}.java": f"import java.util.*;\nclass {name} {{ List rows = new ArrayList(); void add(Object o) {{ rows.add(o); }} }}\n"
        for name in names
    }
    sources["Report31.java"] = 'class Report31 { int total() { String s = "12"; int n = s; return n; } }\n'
    files(folder, sources)
    return shell(folder, "javac -Xlint:all -Xmaxwarns 500 -d out *.java")


def java_trace(folder: Path) -> str:
    files(
        folder,
        {
            "Shop.java": """
class Shop {
    static void descend(int depth) {
        if (depth > 0) { descend(depth - 1); return; }
        try { lock(); } catch (IllegalStateException e) { throw new RuntimeException("order 17 was not shipped", e); }
    }
    static void lock() { throw new IllegalStateException("the inventory is locked by batch 9"); }
    public static void main(String[] args) {
        for (int i = 0; i < 200; i++) System.out.println("INFO shipped order " + i + " to depot " + i % 7);
        try { descend(60); } catch (RuntimeException e) { e.printStackTrace(System.out); }
        for (int i = 0; i < 200; i++) System.out.println("INFO archived order " + i + " in depot " + i % 7);
    }
}
"""
        },
    )
    return shell(folder, "java Shop.java")


def java_overflow(folder: Path) -> str:
    files(
        folder,
        {
            "Deep.java": "class Deep { static int f(int n) { return f(n + 1) + 1; }\n"
            "public static void main(String[] a) { f(0); } }\n"
        },
    )
    return shell(folder, "java Deep.java")


def rustc(folder: Path) -> str:
    functions = [f"fn step_{n}(x: i32) -> i32 {{ let spare_{n} = {n}; x + {n} }}\n" for n in range(50)]
    functions[20] = "fn step_20(x: i32) -> String { x + 20 }\n"
    files(folder, {"main.rs": "".join(functions) + 'fn main() { println!("{}", step_1(2)); }\n'})
    return shell(folder, "rustc main.rs")


def cargo_test(folder: Path) -> str:
    tests = "".join(
        f"#[test] fn rounds_case_{n}() {{ assert_eq!({n} * 2, {n} + {n}); }}\n" for n in range(150)
    )
    tests += '#[test] fn rounds_halves() { assert_eq!(super::half(9), 5, "halves are rounded up"); }\n'
    files(
        folder,
        {
            "Cargo.toml": '[package]\nname = "rounding"\nversion = "0.1.0"\nedition = "2021"\n',
            "src/lib.rs": f"pub fn half(n: i32) -> i32 {{ n / 2 }}\n#[cfg(test)]\nmod tests {{\n{tests}}}\n",
        },
    )
    return shell(folder, "cargo test --offline")


def cmake(folder: Path) -> str:
    options = "".join(
        f'option(WITH_{n} "part {n}" ON)\nmessage(STATUS "Checking for part {n} of the toolkit - found")\n'
        for n in range(90)
    )
    files(
        folder,
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.20)\nproject(Toolkit NONE)\n"
            + options
            + "find_package(Frobnicator 3 REQUIRED)\n"
            + options
        },
    )
    return shell(folder, "cmake -B build --trace-expand 2>&1")


def ninja(folder: Path) -> str:
    rules = "rule check\n  command = sh check.sh $out\n  description = CHECK $out\n"
    edges = "".join(f"build out/step_{n:03}: check\n" for n in range(150))
    files(
        folder,
        {
            "build.ninja": rules + edges,
            "check.sh": 'case $1 in *041) echo "$1: the checksum differs from the manifest\'s"; exit 3;; esac\nmkdir -p out; touch $1\n',
        },
    )
    return shell(folder, "ninja -v -k 0 -j2")


def maven(folder: Path) -> str:
    files(
        folder,
        {
            "pom.xml": """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>org.example</groupId><artifactId>shop</artifactId><version>1</version>
<dependencies><dependency><groupId>org.example</groupId><artifactId>frobnicator</artifactId><version>7</version></dependency></dependencies>
</project>\n"""
        },
    )
    return shell(folder, "mvn -o -B -X -Dmaven.repo.local=repository package")


def sanitizer(folder: Path) -> str:
    files(
        folder,
        {
            "fill.c": "#include <stdlib.h>\n#include <stdio.h>\nvoid fill(int *a, int n) { for (int i = 0; i <= n; i++) a[i] = i; }\n"
            'int main(void) { for (int i = 0; i < 150; i++) printf("block %d is filled\\n", i); fflush(stdout);\n'
            "  int *a = malloc(40); fill(a, 10); return a[3]; }\n"
        },
    )
    return shell(folder, "gcc -g -fsanitize=address -o fill fill.c && ./fill")


def valgrind(folder: Path) -> str:
    files(
        folder,
        {
            "leak.c": "#include <stdlib.h>\n"
            + "".join(f"int *leak_{n}(void) {{ return malloc({n} + 8); }}\n" for n in range(40))
            + "int main(void) { "
            + "".join(f"leak_{n}(); " for n in range(20))
            + "int *a = malloc(8); a[2] = 1; "
            + "".join(f"leak_{n}(); " for n in range(20, 40))
            + "return 0; }\n"
        },
    )
    return shell(folder, "gcc -g -O0 -o leak leak.c && valgrind --leak-check=full ./leak")


CASES: Final = (
    Case("gcc: an undeclared name among warnings", r"error: .totl. undeclared", gcc_warnings, ("gcc",)),
    Case(
        "g++: std::sort on a list", r"error: no match for .operator-.", gxx_templates, ("g++",), held_out=True
    ),
    Case(
        "ld: an undefined reference, then docs",
        r"undefined reference to .frobnicate",
        linker,
        ("gcc", "make"),
    ),
    Case(
        "make -k -j: a syntax error in one of 60 modules",
        r"module_23\.c:2:\d+: error: expected expression",
        make_parallel,
        ("gcc", "make"),
    ),
    Case(
        "javac: wrong type among lint warnings",
        r"error: incompatible types: String cannot be converted to int",
        javac,
        ("javac",),
    ),
    Case(
        "java: a cause below 60 frames, in a log",
        r"Caused by: java\.lang\.IllegalStateException: the inventory is locked",
        java_trace,
        ("java",),
    ),
    Case("java: a stack overflow", r"java\.lang\.StackOverflowError", java_overflow, ("java",)),
    Case("rustc: mismatched types among warnings", r"error\[E0308\]", rustc, ("rustc",)),
    Case("cargo test: one of 151 panics", r"halves are rounded up", cargo_test, ("cargo",)),
    Case("cmake: a package is missing, in a trace", r"Frobnicator", cmake, ("cmake",)),
    Case("ninja: one of 150 steps", r"the checksum differs from the manifest", ninja, ("ninja",)),
    Case(
        "maven: offline, in a debug log",
        r"\[ERROR\].*(?:Cannot access|resolve|resolution)",
        maven,
        ("mvn",),
        held_out=True,
    ),
    Case("gcc -fsanitize=address", r"AddressSanitizer: heap-buffer-overflow", sanitizer, ("gcc",)),
    Case(
        "valgrind: a write among leaks",
        r"Invalid write of size 4",
        valgrind,
        ("gcc", "valgrind"),
        held_out=True,
    ),
)
