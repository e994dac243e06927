"""The deployment files, held against their specifications and against what the service promises."""

from __future__ import annotations

import re
import tomllib
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from overspill_service.objects.urls import open_store
from overspill_service.settings.settings import Settings
from overspill_service.settings.sources import load
from overspill_service.tenants.directory import read_tenants
from overspill_service.tenants.keys import hash_key

from tests.e2e.programs import program, run

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "service" / "deploy"
COMPOSE = ROOT / "docker-compose.yml"
SAMPLE = ROOT / ".env.example"

PINNED = re.compile(r"[\w./-]+:v?\d+\.\d+(\.\d+)?[\w.-]*@sha256:[0-9a-f]{64}")
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?:(:?[?+-])([^}]*))?\}")
ONE_SHOT = {"bucket", "s3-account", "s3-volume"}
OVERLAY = ROOT / "docker-compose.tls.yml"
OURS = {"bucket", "service-a", "service-b"}

Document = dict[str, Any]


@pytest.fixture(scope="module")
def stack() -> Document:
    document: Document = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return document


@pytest.fixture(scope="module")
def services(stack: Document) -> dict[str, Document]:
    services: dict[str, Document] = stack["services"]
    return services


# --- docker-compose.yml ---------------------------------------------------------------------------


@pytest.mark.parametrize("file", [COMPOSE, OVERLAY], ids=lambda file: file.name)
def test_the_compose_files_follow_the_compose_specification(file: Path) -> None:
    result = run(program("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", file)

    assert result.returncode == 0, result.stdout + result.stderr


def test_two_replicas_stand_behind_the_balancer(services: dict[str, Document]) -> None:
    assert services["service-a"] == services["service-b"]
    assert {"service-a", "service-b"} <= services["balancer"]["depends_on"].keys()
    balancer = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
    assert re.findall(r"server-template \S+ \d+ (\S+):8750 ", balancer) == ["service-a", "service-b"]


def test_every_foreign_image_is_pinned_by_version_and_digest(services: dict[str, Document]) -> None:
    images = {name: service["image"] for name, service in services.items() if name not in OURS}

    assert [name for name, image in images.items() if not PINNED.fullmatch(image)] == []


def test_our_own_image_is_built_here_and_named_after_the_package_s_version(
    services: dict[str, Document],
) -> None:
    project = tomllib.loads((ROOT / "service" / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    for name in OURS:
        assert services[name]["image"] == "overspill-service:${IMAGE_TAG:-" + project["version"] + "}"
        assert services[name]["build"] == {"context": ".", "dockerfile": "service/Dockerfile"}


def test_every_service_has_a_health_check_unless_it_runs_once(services: dict[str, Document]) -> None:
    unchecked = {name for name, service in services.items() if not service.get("healthcheck", {}).get("test")}

    assert unchecked == ONE_SHOT | {"service-a", "service-b"}  # theirs comes with the image
    assert "\nHEALTHCHECK " in (ROOT / "service" / "Dockerfile").read_text(encoding="utf-8")
    assert {name for name, service in services.items() if service["restart"] == "no"} == ONE_SHOT


def test_what_must_be_there_first_is_waited_for(services: dict[str, Document]) -> None:
    conditions = {
        (name, condition["condition"])
        for service in services.values()
        for name, condition in service.get("depends_on", {}).items()
    }

    once = {name for name, condition in conditions if condition == "service_completed_successfully"}
    assert once == ONE_SHOT
    assert {condition for name, condition in conditions if name not in ONE_SHOT} == {"service_healthy"}


def test_every_service_runs_with_as_little_as_it_needs(services: dict[str, Document]) -> None:
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory", "pids"}, name
    assert {name for name, service in services.items() if service.get("privileged")} == set()
    assert {name: service["cap_add"] for name, service in services.items() if "cap_add" in service} == {
        "s3-volume": ["CHOWN"]
    }


def test_nothing_runs_as_root_but_the_one_that_hands_over_the_volume(services: dict[str, Document]) -> None:
    roots = {name for name, service in services.items() if service["user"].split(":")[0] in {"0", "root"}}

    assert roots == {"s3-volume"}
    assert services["s3-volume"]["network_mode"] == "none"
    assert services["s3-volume"]["entrypoint"][1] == services["s3"]["user"]


def test_everything_that_keeps_running_is_given_time_to_stop(services: dict[str, Document]) -> None:
    for name in services.keys() - ONE_SHOT:
        assert int(services[name]["stop_grace_period"].removesuffix("s")) >= 30, name
    grace = int(services["service-a"]["stop_grace_period"].removesuffix("s"))
    assert grace > Settings(data=ROOT).grace


def test_ports_are_published_on_loopback_only(services: dict[str, Document]) -> None:
    ports = {name: service["ports"] for name, service in services.items() if "ports" in service}

    assert ports.keys() == {"balancer", "grafana", "prometheus"}
    assert all(re.match(r"\$\{\w+:-127\.0\.0\.1:\d+\}:\d+$", port) for [port] in ports.values())


def test_the_inner_network_has_no_way_out(stack: Document, services: dict[str, Document]) -> None:
    assert stack["networks"]["inner"]["internal"] is True
    outside = {name for name, service in services.items() if "outer" in service.get("networks", [])}
    assert outside == {"balancer", "grafana", "prometheus"}


def test_files_and_volumes_that_are_mounted_exist(stack: Document, services: dict[str, Document]) -> None:
    sources = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", [])}

    paths = {source for source in sources if source.startswith(".")}
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert sources - paths == stack["volumes"].keys()


def test_the_service_accepts_the_environment_that_it_is_given(services: dict[str, Document]) -> None:
    for name in OURS:
        environment = {variable: filled(value) for variable, value in services[name]["environment"].items()}
        settings = load({}, environment)

        open_store(settings.store, data_dir=ROOT)
        assert settings.store == "s3://overspill?endpoint=http://s3:7070&region=us-east-1&addressing=path"
        assert settings.catalog == "redis://:given@redis:6379/0"
        assert settings.key_secret == "given"


def filled(text: str) -> str:
    """A value with its variables replaced: by their default, or by `given` where they have none."""
    return VARIABLE.sub(lambda match: match[3] if match[2] == ":-" else "given", text)


# --- secrets --------------------------------------------------------------------------------------


def variables() -> dict[str, set[tuple[str, str]]]:
    """Every variable of the compose file with the ways in which it is used: operator and argument."""
    uses: dict[str, set[tuple[str, str]]] = {}
    for name, operator, argument in VARIABLE.findall(COMPOSE.read_text(encoding="utf-8")):
        uses.setdefault(name, set()).add((operator, argument))
    return uses


def sample() -> dict[str, str]:
    lines = [
        line for line in SAMPLE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def test_every_secret_is_asked_for_by_name_and_has_no_default() -> None:
    secrets = {
        name: uses
        for name, uses in variables().items()
        if re.search("SECRET|PASSWORD|ACCESS_KEY", name) and name != "OVERSPILL_PREVIOUS_KEY_SECRET"
    }

    of_s3 = {"S3_ROOT_ACCESS_KEY", "S3_ROOT_SECRET_KEY", "S3_ACCESS_KEY", "S3_SECRET_KEY"}
    assert secrets.keys() == of_s3 | {"REDIS_PASSWORD", "OVERSPILL_KEY_SECRET"}
    for name, uses in secrets.items():
        assert uses == {(":?", f"copy .env.example to .env and set {name}")}


def test_only_the_object_store_and_who_makes_its_accounts_know_its_administrator(
    services: dict[str, Document],
) -> None:
    knowing = {name for name, service in services.items() if "S3_ROOT_" in str(service.get("environment"))}

    assert knowing == {"s3", "s3-account"}
    assert services["s3"]["environment"].keys() == {"ROOT_ACCESS_KEY_ID", "ROOT_SECRET_ACCESS_KEY"}


def test_the_replicas_believe_addresses_from_their_own_network_only(
    stack: Document, services: dict[str, Document]
) -> None:
    [config] = stack["networks"]["inner"]["ipam"]["config"]

    for name in OURS:
        settings = load({}, {key: filled(value) for key, value in services[name]["environment"].items()})
        assert settings.trusted_networks == (ip_network(filled(config["subnet"])),)
        assert settings.scraping_networks == settings.trusted_networks


def test_the_overlay_for_tls_only_changes_how_the_balancer_listens(services: dict[str, Document]) -> None:
    overlay = yaml.safe_load(OVERLAY.read_text(encoding="utf-8"))["services"]

    assert overlay.keys() == {"balancer"}
    assert overlay["balancer"].keys() == {"environment", "volumes"}
    assert "environment" not in services["balancer"]


def test_the_sample_leaves_every_secret_empty_so_that_an_unedited_copy_is_refused() -> None:
    demanded = {name for name, uses in variables().items() if {operator for operator, _ in uses} == {":?"}}

    assert sample() == dict.fromkeys(demanded, "")


def test_the_sample_names_every_variable_that_the_compose_file_reads() -> None:
    named = set(re.findall(r"^#?(\w+)=", SAMPLE.read_text(encoding="utf-8"), re.MULTILINE))

    assert named == variables().keys()


# --- service/deploy -------------------------------------------------------------------------------


def test_the_balancer_s_configuration_is_valid() -> None:
    result = run(program("haproxy"), "-c", "-f", DEPLOY / "haproxy.cfg")

    assert result.returncode == 0, result.stdout + result.stderr
    assert "WARNING" not in result.stdout + result.stderr


def test_prometheus_takes_its_configuration() -> None:
    result = run(program("promtool"), "check", "config", "--lint-fatal", DEPLOY / "prometheus.yml")

    assert result.returncode == 0, result.stdout + result.stderr


def test_prometheus_asks_every_replica_itself(services: dict[str, Document]) -> None:
    document = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
    jobs = {job["job_name"]: job for job in document["scrape_configs"]}

    [discovery] = jobs["overspill"]["dns_sd_configs"]
    assert discovery["names"] == ["service-a", "service-b"]
    assert (discovery["type"], discovery["port"]) == ("A", 8750)
    assert services["prometheus"]["profiles"] == ["observability"]


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = (DEPLOY / "overspill.service").read_text(encoding="utf-8")
    here = re.sub(
        "^User=.*$",
        "User=root",
        unit.replace("/opt/overspill/bin/overspill-service", program("sh")),
        flags=re.MULTILINE,
    )
    (tmp_path / "overspill.service").write_text(here, encoding="utf-8")
    result = run(program("systemd-analyze"), "verify", tmp_path / "overspill.service")

    assert (result.returncode, result.stderr) == (0, "")


def test_systemd_leaves_the_service_nothing_of_the_machine_that_it_does_not_need() -> None:
    analyze = program("systemd-analyze")
    rated = run(analyze, "security", "--offline=true", "--threshold=20", DEPLOY / "overspill.service")
    if "unrecognized option" in rated.stderr:
        pytest.skip("this systemd rates no files")

    assert rated.returncode == 0, rated.stdout


def test_systemd_waits_for_as_long_as_a_stop_takes_with_the_drain_delay_that_the_page_names() -> None:
    unit = (DEPLOY / "overspill.service").read_text(encoding="utf-8")
    stack = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    drain = float(stack["services"]["service-a"]["environment"]["OVERSPILL_DRAIN_DELAY"])

    waits = re.search("^TimeoutStopSec=([0-9]+)$", unit, re.MULTILINE)
    assert waits is not None
    assert float(waits[1]) > drain + Settings().grace


def test_the_example_of_a_tenants_file_is_one() -> None:
    tenants = read_tenants(DEPLOY / "tenants.example.toml")

    assert [tenant.name for tenant in tenants] == ["acme"]
    assert hash_key("") not in {key.hash for key in tenants[0].keys}
