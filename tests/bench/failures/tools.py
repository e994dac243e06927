"""Shells, archives, databases, other languages and commands."""

from __future__ import annotations

import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final

import trustme

from tests.bench.failures.case import Case, files, python, shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def patch(folder: Path) -> str:
    files(folder, {f"a/file_{n:02}.txt": "".join(f"line {m}\n" for m in range(20)) for n in range(120)})
    script = "cp -r a b; sed -i 's/line 9$/LINE 9/' b/*; diff -ru a b > all.patch; sed -i 's/line/row/' a/file_61.txt; cd a; patch --verbose -p1 < ../all.patch"
    return shell(folder, script)


def grep_flood(folder: Path) -> str:
    files(
        folder,
        {
            f"src/dir_{n % 12}/part_{n}.py": f"# TODO: tidy part {n}\nerror_handler = make_handler('errors', {n})\n"
            * 6
            for n in range(90)
        },
    )
    return shell(
        folder,
        "grep -rn error_handler src/dir_0 src/dir_1 src/dir_2 src/dir_3 src/dir_44 src/dir_5 src/dir_6 src/dir_7",
    )


def shell_trace(folder: Path) -> str:
    files(
        folder,
        {
            "deploy.sh": 'set -x\nfor host in $(seq 150); do\n  name=web$host\n  if [ $host = 77 ]; then frobctl --drain $name; fi\n  echo "deployed to $name"\ndone\n'
        },
    )
    return shell(folder, "bash deploy.sh")


def shell_crash(folder: Path) -> str:
    files(
        folder,
        {
            "crash.c": "#include <stdlib.h>\nint main(int n, char **v) { int i = atoi(v[1]); if (i == 61) *(volatile int *)8 = 1; return 0; }\n",
            "run.sh": 'gcc -o crash crash.c\nfor i in $(seq 200); do ./crash $i; echo "case $i ran, its report is in reports/case_$i.xml"; done\n',
        },
    )
    return shell(folder, "bash run.sh")


def tar_list(folder: Path) -> str:
    files(folder, {f"data/part_{n:03}.txt": "x\n" for n in range(160)})
    return shell(
        folder,
        "(seq -f data/part_%03g.txt 0 80; echo data/ledger.db; seq -f data/part_%03g.txt 81 159) > list; tar -cvf all.tar -T list",
    )


def unzip_test(folder: Path) -> str:
    files(folder, {f"data/part_{n:03}.txt": f"{n}\n" * 300 for n in range(120)})
    script = "zip -q0 -r all.zip data; python - <<'X'\nd=bytearray(open('all.zip','rb').read()); i=d.index(b'57\\n57\\n'); d[i]=65; open('all.zip','wb').write(d)\nX\nunzip -t all.zip"
    return shell(folder, script)


def sqlite_import(folder: Path) -> str:
    rows = [
        f"INSERT INTO items VALUES ({n}, 'item {n}'); SELECT 'stored', count(*), 'items' FROM items;\n"
        for n in range(500)
    ]
    rows[311] = "INSERT INTO items VALUES (17, 'again'); SELECT 'stored', count(*), 'items' FROM items;\n"
    files(folder, {"import.sql": "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT);\n" + "".join(rows)})
    return shell(folder, "sqlite3 shop.db < import.sql")


def sqlite_query(folder: Path) -> str:
    reports = "".join(
        f"SELECT 'report {n}', sum(id), max(name) FROM items WHERE id > {n};\n" for n in range(200)
    )
    files(
        folder,
        {
            "report.sql": "CREATE TABLE items (id INTEGER, name TEXT); INSERT INTO items VALUES (1, 'one');\n"
            + reports
            + "SELECT colour FROM items;\n"
            + reports
        },
    )
    return shell(folder, "sqlite3 -echo shop.db < report.sql")


def perl(folder: Path) -> str:
    files(
        folder,
        {
            "report.pl": "use strict; use warnings;\nmy %seen;\nfor my $n (1..300) {\n  my $line = 'row ' . $seen{$n} . \"\\n\";\n  print $line;\n"
            "  eval { Shop->total($n) if $n == 120; 1 } or warn $@;\n}\n"
        },
    )
    return shell(folder, "perl report.pl")


def ruby(folder: Path) -> str:
    files(
        folder,
        {
            "report.rb": '900.times { |n| puts "row #{n}"; (nil.total rescue puts $!.full_message) if n == 400 }\n'
        },
    )
    return shell(folder, "ruby report.rb")


def php(folder: Path) -> str:
    files(
        folder,
        {
            "report.php": '<?php for ($n = 0; $n < 900; $n++) { echo "row $n\\n"; if ($n == 400) try { total(); } catch (Error $e) { echo $e, "\\n"; } }\n'
        },
    )
    return shell(folder, "php report.php")


def go_test(folder: Path) -> str:
    tests = "".join(
        f'func TestCase{n}(t *testing.T) {{ if Half({n * 2}) != {n} {{ t.Fatal("wrong") }} }}\n'
        for n in range(150)
    )
    files(
        folder,
        {
            "go.mod": "module halves\n\ngo 1.19\n",
            "half.go": "package halves\n\nfunc Half(n int) int { return n / 2 }\n",
            "half_test.go": 'package halves\nimport "testing"\n'
            + tests
            + 'func TestRounds(t *testing.T) { if Half(9) != 5 { t.Errorf("Half(9) = %d, want 5", Half(9)) } }\n',
        },
    )
    return shell(folder, "GOFLAGS=-mod=mod GOCACHE=$PWD/.cache go test -v ./...")


def tcl(folder: Path) -> str:
    files(
        folder,
        {
            "report.tcl": 'proc total {rows} { return [expr {$rows + $tax}] }\nfor {set n 0} {$n < 600} {incr n} { puts "row $n"\n  if {$n == 250} { if {[catch {total $n}]} { puts $errorInfo } } }\n'
        },
    )
    return shell(folder, "tclsh report.tcl")


def strace(folder: Path) -> str:
    files(
        folder,
        {
            "app.py": "import sys\nfor n in range(40):\n    try: open(f'/etc/frob/conf.d/{n}.conf')\n    except OSError: pass\nsys.exit('frob: none of the licences is valid')\n"
        },
    )
    return shell(folder, "strace -f python3 -S app.py")


def redis(folder: Path) -> str:
    commands = [f"SET item:{n} {n}\nINCRBY item:{n} 5" for n in range(400)]
    commands[222] = "LPUSH basket a\nINCRBY basket 5"
    files(folder, {"commands": "\n".join(commands) + "\n"})
    script = "redis-server --port 0 --unixsocket $PWD/s --save '' --daemonize no > log & pid=$!; for i in $(seq 100); do [ -S s ] && break; sleep 0.05; done; "
    return shell(folder, script + "redis-cli -s s < commands; kill $pid; wait")


class Answers(BaseHTTPRequestHandler):
    """Pages, one of which is out of order."""

    def do_GET(self) -> None:
        status = 503 if self.path == "/page/31" else 200
        body = b"<p>the warehouse is closed</p>\n" if status == 503 else b"<p>page of the catalogue</p>\n" * 3
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def served(context: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a server that runs meanwhile."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()


def curl_status(folder: Path) -> str:
    with served() as port:
        return shell(folder, f"for n in $(seq 60); do curl -sv http://127.0.0.1:{port}/page/$n; done")


def curl_tls(folder: Path) -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with served() as port, served(context) as secure:
        pages = f"for n in $(seq 25); do curl -sv http://127.0.0.1:{port}/page/$n; done"
        return shell(folder, f"{pages}; curl -v https://127.0.0.1:{secure}/; {pages}")


def argparse_usage(folder: Path) -> str:
    options = "".join(
        f"parser.add_argument('--option-{n}', help='sets option {n} of the tool')\n" for n in range(120)
    )
    return python(
        folder,
        f"import argparse\nparser = argparse.ArgumentParser('frob')\n{options}parser.add_argument('--rows', type=int)\nparser.parse_args(['--rows', 'many'])\n",
    )


CASES: Final = (
    Case("patch: one hunk of 120", r"Hunk #1 FAILED", patch, ("patch",), held_out=True),
    Case(
        "grep -rn: a folder is missing among matches",
        r"grep: src/dir_44: No such file or directory",
        grep_flood,
        ("grep",),
    ),
    Case("bash -x: a command is not found", r"frobctl: command not found", shell_trace, ("bash",)),
    Case("bash: a program crashes in a loop", r"Segmentation fault", shell_crash, ("bash", "gcc")),
    Case("tar: a file is missing", r"data/ledger\.db: Cannot stat: No such file", tar_list, ("tar",)),
    Case("unzip -t: a bad checksum", r"bad CRC", unzip_test, ("zip", "unzip")),
    Case(
        "sqlite3: a duplicate in a long import",
        r"UNIQUE constraint failed: items\.id",
        sqlite_import,
        ("sqlite3",),
    ),
    Case("sqlite3 -echo: no such column", r"no such column: colour", sqlite_query, ("sqlite3",)),
    Case(
        "perl: a missing package among warnings",
        r'Can.t locate object method "total" via package "Shop"',
        perl,
        ("perl",),
    ),
    Case("ruby: an exception among 900 lines", r"NoMethodError", ruby, ("ruby",)),
    Case("php: an exception among 900 lines", r"Call to undefined function total", php, ("php",)),
    Case("go test -v: one of 151", r"Half\(9\) = 4, want 5", go_test, ("go",)),
    Case("tclsh: an error among 600 lines", r'can.t read "tax": no such variable', tcl, ("tclsh",)),
    Case(
        "strace: what it says before it exits",
        r"none of the licences is valid",
        strace,
        ("strace", "python3"),
    ),
    Case("redis-cli: the wrong type", r"WRONGTYPE", redis, ("redis-server", "redis-cli"), held_out=True),
    Case("curl -v: one 503 among 60 pages", r"HTTP/1\.[01] 503", curl_status, ("curl",)),
    Case(
        "curl -v: an unknown certificate",
        r"SSL certificate problem|unable to get local issuer certificate",
        curl_tls,
        ("curl",),
        held_out=True,
    ),
    Case(
        "argparse: a long usage, then the reason",
        r"argument --rows: invalid int value: 'many'",
        argparse_usage,
    ),
)
