"""Logs of programs that go on, floods with the reason among them, and answers in JSON."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Final

from tests.bench.failures.case import Case, files, python, shell

if TYPE_CHECKING:
    from pathlib import Path

SETUP: Final = """
import logging, random, sys, time
logging.Formatter.converter = time.gmtime
logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format='%(asctime)s %(levelname)s %(name)s %(message)s')
log = logging.getLogger('shop.orders')
rng = random.Random(7)
def calm(n):
    for i in range(n):
        log.info('served %s in %d ms for customer %08x', rng.choice(['/cart', '/pay', '/items', '/errors']), rng.randrange(900), rng.getrandbits(32))
"""


def chained(folder: Path) -> str:
    return python(
        folder,
        SETUP
        + """
def rate(order): return {'EUR': 1}[order['currency']]
def price(order):
    try: return rate(order) * 2
    except KeyError as error: raise RuntimeError('order 4711 cannot be priced') from error
calm(3000)
try: price({'currency': 'XAU'})
except RuntimeError: log.exception('giving up on an order')
calm(3000)
""",
    )


def flood(folder: Path) -> str:
    return python(
        folder,
        SETUP
        + """
for n in range(4000):
    log.warning('retrying upload of part %d, attempt %d, error rate %.2f', rng.randrange(9999), n, rng.random())
    if n == 1900: log.error('quota of bucket reports-eu is used up (507)')
""",
    )


def flood_unnamed(folder: Path) -> str:
    """The line that matters has no word of trouble in it."""
    return python(
        folder,
        SETUP
        + """
for n in range(3000):
    log.info('heartbeat %d from worker %d, load %.2f', n, rng.randrange(9), rng.random())
    if n == 1400: log.info('worker 5 left the pool, its lease ran out')
""",
    )


def json_lines(folder: Path) -> str:
    return python(
        folder,
        """
import json, random
rng = random.Random(3)
for n in range(3000):
    record = {'ts': 1700000000 + n, 'level': 'info', 'logger': 'api', 'event': 'request', 'path': f'/items/{rng.randrange(999)}', 'ms': rng.randrange(200), 'errors': []}
    if n == 1234: record.update(level='error', event='the pool has no connections left', errors=['PoolExhausted'])
    print(json.dumps(record))
""",
    )


def api_answer(folder: Path) -> str:
    return python(
        folder,
        """
import json, random
rng = random.Random(4)
results = [{'id': n, 'name': f'item {n}', 'price': rng.randrange(999) / 10, 'tags': ['a', 'b'][: n % 3], 'error': None} for n in range(2000)]
results[1117].update(price=None, error={'code': 'E_RATE', 'message': 'no exchange rate for XAU'})
print(json.dumps({'status': 'partial', 'took_ms': 85, 'results': results}))
""",
    )


def api_pretty(folder: Path) -> str:
    return python(
        folder,
        """
import json
pods = [{'metadata': {'name': f'web-{n}', 'namespace': 'shop'}, 'status': {'phase': 'Running', 'restarts': 0, 'ready': True,
         'conditions': [{'type': 'Ready', 'status': 'True'}]}} for n in range(300)]
pods[170]['status'] = {'phase': 'Failed', 'restarts': 41, 'ready': False, 'reason': 'CrashLoopBackOff', 'message': 'back-off 5m restarting container'}
print(json.dumps({'kind': 'List', 'items': pods}, indent=2))
""",
    )


def asyncio_log(folder: Path) -> str:
    return python(
        folder,
        SETUP
        + """
import asyncio
async def work(n):
    if n == 37: raise ValueError('batch 37 has no rows')
async def main():
    for n in range(80):
        asyncio.ensure_future(work(n)); await asyncio.sleep(0); calm(25)
import gc
asyncio.run(main())
""",
    )


def java_logging(folder: Path) -> str:
    files(
        folder,
        {
            "Jobs.java": """
import java.util.logging.*;
class Jobs {
    public static void main(String[] args) {
        Logger log = Logger.getLogger("jobs");
        for (int i = 0; i < 700; i++) {
            log.info("job " + i + " took " + i % 13 + " s and wrote no errors");
            if (i == 400) log.log(Level.SEVERE, "the queue of region north is gone", new java.io.IOException("broken pipe"));
        }
    }
}
"""
        },
    )
    return shell(folder, "java Jobs.java")


def warnings_then_calm(folder: Path) -> str:
    return python(
        folder,
        """
import warnings
print('config.toml:3: unknown region "nroth", using none')
for n in range(500): print(f'setting part_{n}.timeout = {n % 30}'); print(f'setting part_{n}.name = "unit {n}"')
""",
    )


def segfault(folder: Path) -> str:
    return python(
        folder,
        """
import ctypes, faulthandler, threading
faulthandler.enable()
for n in range(500): print(f'decoded frame {n}')
def descend(n): return descend(n - 1) if n else ctypes.string_at(0)
descend(90)
""",
    )


def recursion(folder: Path) -> str:
    return python(
        folder,
        "def even(n):\n    return odd(n - 1)\ndef odd(n):\n    return even(n - 1)\nfor n in range(200): print('checked', n)\neven(7)\n",
    )


def yaml_documents(folder: Path) -> str:
    return python(
        folder,
        """
import yaml
for n in range(400):
    text = f'name: part {n}\\nsize: {n}\\n' if n != 222 else 'name: part: 222\\n'
    try: print('loaded', yaml.safe_load(text))
    except yaml.YAMLError as error: print('while loading document 222:', error)
""",
    )


def access_log(folder: Path) -> str:
    return python(
        folder,
        """
import random
rng = random.Random(9)
for n in range(2500):
    status, size = (502, 157) if n == 1600 else (200, rng.randrange(9000))
    print(f'10.0.{rng.randrange(9)}.{rng.randrange(255)} - - [12/Nov/2026:10:{n // 60 % 60:02}:{n % 60:02} +0000] "GET /items/{rng.randrange(9999)} HTTP/1.1" {status} {size} "-" "Mozilla/5.0"')
""",
    )


def kernel(folder: Path) -> str:
    """As `dmesg` prints it; no machine runs out of memory for this."""
    rng = random.Random(5)
    lines = [
        f"[{n * 3.17:12.6f}] eth{rng.randrange(3)}: link is up, {rng.choice((100, 1000))} Mbps, full duplex"
        for n in range(1500)
    ]
    lines[820:820] = [
        "[ 2599.400000] java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        *[f"[ 2599.4000{n:02}] [{n:6}]     0 {n:6} {rng.randrange(99999):8} worker" for n in range(60)],
        "[ 2599.400099] Out of memory: Killed process 4242 (java) total-vm:9831224kB, anon-rss:7912345kB",
    ]
    return "\n".join(lines) + "\n"


def journal(folder: Path) -> str:
    """As `journalctl` prints it."""
    lines = [
        f"Nov 12 10:{n // 60:02}:{n % 60:02} web1 systemd[1]: Started Session {n} of User deploy."
        for n in range(1200)
    ]
    lines[700:700] = [
        "Nov 12 10:11:40 web1 systemd[1]: shop.service: Main process exited, code=exited, status=203/EXEC",
        "Nov 12 10:11:40 web1 systemd[1]: shop.service: Failed with result 'exit-code'.",
    ]
    return "\n".join(lines) + "\n"


def nested_json_log(folder: Path) -> str:
    """One long line of JSON in an ordinary log."""
    answer = json.dumps(
        [{"id": n, "state": "done"} for n in range(800)] + [{"id": 800, "state": "done", "detail": "fine"}]
    )
    lines = [f"step {n} of the import is done\n" for n in range(150)]
    return "".join(
        [*lines, f"answer: {answer}\n", "import: ERROR the answer has 801 rows, 802 were announced\n", *lines]
    )


CASES: Final = (
    Case("a log of 6,000 lines, a chained exception", r"RuntimeError: order 4711 cannot be priced", chained),
    Case("a flood of warnings, the reason once", r"quota of bucket reports-eu is used up", flood),
    Case("a flood of heartbeats, one line unlike them", r"worker 5 left the pool", flood_unnamed),
    Case("JSON Lines: one at level error", r"the pool has no connections left", json_lines),
    Case("JSON: one of 2,000 results has an error", r"no exchange rate for XAU", api_answer),
    Case("JSON, indented: one of 300 pods fails", r"CrashLoopBackOff", api_pretty),
    Case("asyncio: a task's exception in a log", r"ValueError: batch 37 has no rows", asyncio_log),
    Case(
        "java.util.logging: SEVERE among INFO",
        r"the queue of region north is gone",
        java_logging,
        ("java",),
        held_out=True,
    ),
    Case("a bad setting first, then a long dump", r'unknown region "nroth"', warnings_then_calm),
    Case("faulthandler: a crash after a log", r"Fatal Python error: Segmentation fault", segfault),
    Case("python: recursion without end", r"RecursionError: maximum recursion depth exceeded", recursion),
    Case("yaml: one bad document of 400", r"mapping values are not allowed here", yaml_documents),
    Case("an access log: one 502", r'" 502 157', access_log, held_out=True),
    Case("dmesg: out of memory", r"Out of memory: Killed process 4242", kernel, held_out=True),
    Case("journalctl: a unit fails", r"Failed with result 'exit-code'|status=203/EXEC", journal),
    Case(
        "a log with a huge line, then the reason",
        r"the answer has 801 rows, 802 were announced",
        nested_json_log,
    ),
)
