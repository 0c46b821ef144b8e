"""The Compose file and the images say what the code knows; what they would start is started here, outside of Docker."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from bench import main
from server.settings import Settings
from tests import postgres

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}

SECRETS = {"BENCH_DATABASE_PASSWORD_FILE", "BENCH_TOKEN_FILE"}


def stages() -> dict[str, str]:
    """Return the stages of the Dockerfile by name, each with its text."""
    parts = re.split(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, flags=re.M)
    return dict(zip(parts[2::3], parts[3::3], strict=True))


def test_variables_are_settings() -> None:
    """Every variable that a service is given is a setting of the server or a secret's file."""
    known = {f"BENCH_{name.upper()}" for name in Settings.model_fields} | SECRETS
    given = {name for service in OURS.values() for name in service.get("environment", {})}

    assert {"BENCH_DATABASE", "BENCH_UPGRADE", "BENCH_DATABASE_PASSWORD_FILE"} <= given <= known


def test_settings_can_be_read() -> None:
    """The server's variables are values that its settings take: it upgrades nothing and names PostgreSQL."""
    values = {name.removeprefix("BENCH_").lower(): value for name, value in OURS["server"]["environment"].items()}
    settings = Settings(**values)

    assert not settings.upgrade
    assert settings.database.startswith("postgresql+psycopg://")
    assert ":" not in settings.database.split("//")[1], "a password stands in the URL"


@pytest.mark.parametrize("name", OURS)
def test_commands_have_these_options(name: str) -> None:
    """What a service is told to run is a verb with options that it has."""
    _, verb, *rest = OURS[name]["command"]
    command = typer.main.get_command(importlib.import_module(main.VERBS[verb][0]).app)

    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= known


@pytest.mark.parametrize("name", OURS)
def test_services_are_confined(name: str) -> None:
    """What we start runs as nobody in particular, on a file system that it cannot change, and has a /tmp."""
    service = OURS[name]

    assert (True, ["ALL"], True) == (service["read_only"], service["cap_drop"], service["init"])
    assert any(place.split(":")[0] == "/tmp" for place in service["tmpfs"])
    assert "USER bench" in stages()[service["build"]["target"]]
    assert set(service["secrets"]) <= set(COMPOSE["secrets"])


def test_secrets_are_files() -> None:
    """No secret is a value of the file: each is a file that is mounted where a variable or an option names it."""
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            assert "PASSWORD" not in name or (name.endswith("_FILE") and value.startswith("/run/secrets/"))
        text = str(service.get("environment", "")) + str(service.get("command", ""))
        named = set(re.findall(r"/run/secrets/(\w+)", text))
        assert named == set(service.get("secrets", ()))


def test_order_of_the_start() -> None:
    """The database answers before the schema is upgraded, and that is done before the server starts."""
    assert {"database": {"condition": "service_healthy"}} == OURS["upgrade"]["depends_on"]
    assert {"upgrade": {"condition": "service_completed_successfully"}} == OURS["server"]["depends_on"]
    assert all("healthcheck" in SERVICES[name] for name in ("database", "server"))
    assert any(volume.startswith("database:") for volume in SERVICES["database"]["volumes"])


def test_images_are_pinned() -> None:
    """Whatever an image installs from Python packages is pinned, the server's has no torch, and no address is named."""
    installs = re.findall(r"pip install .*", DOCKERFILE)

    assert 2 == len(installs)
    assert all("-c constraints.txt" in line for line in installs)
    assert "--from=build /opt/bench" in stages()["server"]
    assert "[run]" not in stages()["build"] + stages()["server"]
    assert not re.search(r"https?://", DOCKERFILE)


def test_images_have_what_the_package_needs() -> None:
    """Every folder of the package is copied, and let through by the ignore file."""
    passed = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), flags=re.M))
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"} | {"configs"}

    assert packages <= passed
    assert all(f"COPY {name} {name}" in stages()["build"] for name in packages)


@pytest.fixture
def database() -> Iterator[str]:
    with postgres.server() as server, server.schema() as url:
        yield url


def start(name: str, database: str, password: Path) -> subprocess.Popen[str]:
    """Start what a service would, with its variables and its command; but with a port that is free."""
    _, *command = [word if word != "8000" else "0" for word in OURS[name]["command"]]
    given = {**OURS[name]["environment"], "BENCH_DATABASE": database, "BENCH_DATABASE_PASSWORD_FILE": str(password)}
    plain = {key: value for key, value in os.environ.items() if not key.startswith("BENCH_")}
    return subprocess.Popen(
        [sys.executable, "-m", "bench.main", *command],
        env={**plain, **given, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tempfile.gettempdir(),
    )


def test_started_in_this_order(database: str, tmp_path: Path) -> None:
    """A server refuses a database without a schema; upgraded by the one-shot service it answers, and ends when told."""
    password = tmp_path / "password"
    password.write_text("secret\n")
    refused = start("server", database, password)
    assert "Upgrade it first: bench db upgrade" in refused.communicate(timeout=60)[0]
    assert 1 == refused.returncode

    upgraded = start("upgrade", database, password)
    assert "Created with schema" in upgraded.communicate(timeout=60)[0]
    assert 0 == upgraded.returncode

    server = start("server", database, password)
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        address = said.removeprefix("Dashboard: ").strip()
        check = OURS["server"]["healthcheck"]["test"][-1]
        probe = check.replace("http://127.0.0.1:8000/", address)
        assert probe != check
        assert 0 == subprocess.run([sys.executable, "-c", probe], timeout=60, check=False).returncode
        with urllib.request.urlopen(f"{address}api/v1/runs", timeout=20) as answer:
            assert b"[]" == answer.read()
    finally:
        server.terminate()
        server.communicate(timeout=30)
    assert server.returncode in (0, -15)
