"""Does once what each service does again at its start: who forks from here finds it done.

Python remembers the patterns that it has compiled, and where distributions lie. No thread is started.
"""

from __future__ import annotations

from overspill_service.app import make_app
from overspill_service.arguments import parser
from overspill_service.settings.settings import Settings

parser().parse_args(["serve"])
make_app(Settings(store="memory:", catalog="memory:"))
