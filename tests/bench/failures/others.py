"""Cases added once the previews were built, to see whether these do as well on what nobody had in mind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.bench.failures.case import Case, files, python, shell

if TYPE_CHECKING:
    from pathlib import Path


def compileall(folder: Path) -> str:
    files(folder, {f"shop/part_{n}.py": f"errors = {n}\n" for n in range(120)})
    files(folder, {"shop/part_50.py": "def total(rows:\n    return sum(rows)\n"})
    return shell(folder, "python -m compileall -f shop")


def gzip_test(folder: Path) -> str:
    files(folder, {f"part_{n:03}.txt": f"{n}\n" * 200 for n in range(150)})
    return shell(
        folder,
        "gzip part_*.txt; printf 'xxxxxxxx' | dd of=part_071.txt.gz bs=1 seek=40 conv=notrunc status=none; gzip -tv *.gz",
    )


def jq(folder: Path) -> str:
    files(
        folder,
        {f"row_{n:03}.json": f'{{"id": {n}, "name": "row {n}", "tags": ["a", "b"]}}' for n in range(100)},
    )
    files(folder, {"row_061.json": '{"id": 61, "name": "row 61", "tags": ["a", "b"}'})
    return shell(folder, "for f in *.json; do jq . $f; done")


def json_schema(folder: Path) -> str:
    files(
        folder,
        {
            "schema.json": '{"type": "object", "properties": {"size": {"type": "integer"}}}',
            **{f"rows/{n:03}.json": f'{{"size": {n}}}' for n in range(90)},
            "rows/044.json": '{"size": "large"}',
        },
    )
    return shell(
        folder,
        'check-jsonschema -v --schemafile schema.json rows/*.json; for f in rows/*.json; do echo "would publish $f to the shop"; done',
    )


def ctest(folder: Path) -> str:
    tests = "".join(f'add_test(NAME part_{n} COMMAND sh -c "echo part {n}")\n' for n in range(90))
    files(
        folder,
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.20)\nproject(Parts NONE)\nenable_testing()\n"
            + tests
            + 'add_test(NAME drawer COMMAND sh -c "echo the drawer is 3 mm too wide; false")\n'
            + tests.replace("part_", "more_")
        },
    )
    return shell(folder, "cmake -B build > /dev/null; ctest --test-dir build -V")


def psql(folder: Path) -> str:
    return shell(
        folder,
        "for n in $(seq 200); do echo \"dumped table part_$n: $n rows\"; [ $n = 90 ] && psql -h 127.0.0.1 -p 9 -c 'select 1'; done; true",
    )


def gdb(folder: Path) -> str:
    files(
        folder,
        {
            "walk.c": "#include <stdio.h>\nint walk(int n, int *p) { return n ? walk(n - 1, p) : *p; }\n"
            'int main(void) { for (int i = 0; i < 120; i++) printf("visited node %d of the tree\\n", i); fflush(stdout); return walk(150, 0); }\n'
        },
    )
    return shell(folder, "gcc -g -O0 -o walk walk.c && gdb -q -batch -ex run -ex bt ./walk")


def node_modules(folder: Path) -> str:
    files(folder, {f"part_{n}.mjs": f"export const part = {n};\n" for n in range(80)})
    files(
        folder,
        {
            "part_33.mjs": "import { price } from './part_32.mjs';\nexport const part = price;\n",
            "main.mjs": "for (let n = 0; n < 80; n++) { try { const m = await import(`./part_${n}.mjs`); console.log(`loaded part ${m.part} of the shop`, {size: n}); }\n"
            "catch (e) { console.log(String(e)); } }\nfor (let n = 0; n < 90; n++) console.log(`rendered page ${n} of the shop`);\n",
        },
    )
    return shell(folder, "node main.mjs")


def build_script(folder: Path) -> str:
    files(
        folder,
        {
            "Cargo.toml": '[package]\nname = "frob"\nversion = "0.1.0"\nedition = "2021"\nbuild = "build.rs"\n',
            "src/lib.rs": "",
            "build.rs": 'fn main() { for n in 0..150 { println!("cargo:rerun-if-changed=part_{n}.c"); }\n'
            'eprintln!("frob.h was not found in any of 3 folders"); for n in 0..60 { eprintln!("looked at folder {n}"); } std::process::exit(2) }\n',
        },
    )
    return shell(folder, "cargo build --offline -v")


def process_pool(folder: Path) -> str:
    return python(
        folder,
        """
import os, time
from concurrent.futures import ProcessPoolExecutor
def work(n):
    if n == 60: os._exit(3)
    return n
if __name__ == '__main__':
    for n in range(300): print(f'queued tile {n} of the map')
    with ProcessPoolExecutor(1) as pool:
        for n in range(61):
            try: print(f'drew tile {pool.submit(work, n).result()} of the map')
            except Exception as e: print(type(e).__name__, e)
    for n in range(200): print(f'removed scratch file {n}')
""",
    )


def dpkg(folder: Path) -> str:
    files(
        folder,
        {
            f"p{n}/DEBIAN/control": f"Package: part-{n}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: part {n}\n"
            for n in range(40)
        },
    )
    return shell(
        folder,
        "for n in $(seq 0 39); do dpkg-deb -b p$n out$n.deb; done; echo x > out17.deb; for n in $(seq 0 39); do dpkg-deb --info out$n.deb; done",
    )


def helm_like(folder: Path) -> str:
    """A deployment's events, as a cluster's command line prints them."""
    events = [
        f"{n % 60}s   Normal    Scheduled   pod/web-{n}   Successfully assigned shop/web-{n} to node-{n % 5}\n"
        for n in range(400)
    ]
    events[210] = (
        '12s   Warning   Failed      pod/web-210   Failed to pull image "registry.example.org/shop:v7": manifest unknown\n'
    )
    return "".join(events)


CASES: Final = tuple(
    Case(name, decisive, make, needs, held_out=True)
    for name, decisive, make, needs in (
        ("compileall: one bad file of 120", r"SyntaxError: '\(' was never closed", compileall, ()),
        (
            "gzip -t: one bad file of 150",
            r"part_071\.txt\.gz: +(?:invalid|crc|unexpected|gzip)|invalid compressed data",
            gzip_test,
            ("gzip",),
        ),
        ("jq: one bad file of 100", r"parse error: ", jq, ("jq",)),
        (
            "check-jsonschema: one bad file of 90",
            r"'large' is not of type 'integer'",
            json_schema,
            ("check-jsonschema",),
        ),
        (
            "ctest -V: one of 181",
            r"the drawer is 3 mm too wide|drawer.*\*\*\*Failed|drawer \(Failed\)",
            ctest,
            ("cmake", "ctest"),
        ),
        ("psql: no server, in a script", r"Connection refused", psql, ("psql",)),
        ("gdb: a crash below 150 frames", r"received signal SIGSEGV", gdb, ("gdb", "gcc")),
        ("node: one of 80 modules", r"does not provide an export named 'price'", node_modules, ("node",)),
        ("cargo build: a build script fails", r"frob\.h was not found", build_script, ("cargo",)),
        ("python: a worker process ends", r"BrokenProcessPool", process_pool, ()),
        (
            "dpkg-deb: one bad archive of 40",
            r"not a Debian format archive|unexpected end of file",
            dpkg,
            ("dpkg-deb",),
        ),
        ("events of a cluster: one image", r"manifest unknown", helm_like, ()),
    )
)
