"""The service's image, as far as it can be judged without building it."""

from __future__ import annotations

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.e2e.programs import program, run

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "service" / "Dockerfile"
PINNED = re.compile(r"[\w./-]+:\d+\.\d+\.\d+[\w.-]*@sha256:[0-9a-f]{64}")


def instructions(stage: int = -1) -> dict[str, list[str]]:
    """The instructions of one stage of the Dockerfile: name to arguments, in order."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE).replace(
        "\\\n", " "
    )
    stages = re.split(r"^(?=FROM )", text, flags=re.MULTILINE)[1:]
    found: dict[str, list[str]] = {}
    for line in filter(None, stages[stage].splitlines()):
        name, _, arguments = line.partition(" ")
        found.setdefault(name, []).append(arguments.strip())
    return found


def test_the_dockerfile_passes_the_linter() -> None:
    result = run(program("hadolint"), DOCKERFILE)

    assert result.returncode == 0, result.stdout + result.stderr


def test_the_image_is_built_on_a_pinned_one() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)

    assert len(bases) == 2
    assert len(set(bases)) == 1  # the interpreter that the packages were installed for is the one that runs
    assert PINNED.fullmatch(bases[0])


def test_the_image_takes_its_packages_from_the_lock_file() -> None:
    syncs = [command for command in instructions(0)["RUN"] if command.startswith("uv sync")]

    assert len(syncs) == 2
    assert all(
        "--frozen --no-dev" in command and "--package overspill-service" in command for command in syncs
    )
    assert [command for command in instructions()["RUN"] if re.search(r"pip install|uv ", command)] == []


def test_the_image_runs_as_the_unprivileged_user_that_the_compose_file_names() -> None:
    stack = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))

    assert instructions()["USER"] == [stack["services"]["service-a"]["user"]] == ["10001:10001"]


def test_the_image_serves_on_its_published_port_by_default() -> None:
    image = instructions()

    assert json.loads(image["ENTRYPOINT"][0]) == ["overspill-service"]
    assert json.loads(image["CMD"][0]) == ["serve", "--listen", "0.0.0.0:8750"]
    assert image["EXPOSE"] == ["8750"]


def test_everything_that_the_image_copies_exists_and_reaches_the_build() -> None:
    copies = [command.split() for command in instructions(0)["COPY"]]
    sources = {Path(source) for *found, _ in copies for source in found}
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert {source.parts[0] for source in sources} == allowed


class Answering(HTTPServer):
    """A server that answers every GET with `status` and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.status = 200
        self.asked: list[str] = []


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Answering)
        self.server.asked.append(self.path)
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def answering() -> Iterator[Answering]:
    with Answering() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_the_image_s_health_check_follows_readiness(answering: Answering, status: int, healthy: bool) -> None:
    answering.status = status
    command = json.loads(instructions()["HEALTHCHECK"][0].partition("CMD ")[2])
    arguments = [argument.replace(":8750/", f":{answering.server_port}/") for argument in command[1:]]

    result = run(sys.executable, *arguments)

    assert (result.returncode == 0) is healthy
    assert answering.asked == ["/readyz"]
