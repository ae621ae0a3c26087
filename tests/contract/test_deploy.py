"""What stands in deploy/ keeps the promises of the service, checked without a container engine."""

import configparser
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from ruamel.yaml import YAML

TOP = Path(__file__).parents[2]
DEPLOY = TOP / "deploy"
CONTAINERFILE = DEPLOY / "Containerfile"
COMPOSE = YAML(typ="safe").load(DEPLOY / "compose.yaml")
SERVICES = COMPOSE["services"]
ROLES = ("migrate", "worker", "publisher")
# fmt: off
COMMANDS = {
    "demo", "up", "migrate", "pool", "push", "simulate", "import", "worker", "publisher", "status", "player",
    "leaderboard", "event", "preview", "dead", "schema", "bench",
}
# fmt: on
SECRET_SETTINGS = {"database_url", "redis_url", "signing_keys"}
SLICE_SECONDS = 5

UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
STAYING_UNITS = ["petard-publisher.service", "petard-worker@.service"]

Unit = dict[str, list[str]]


def unit(name: str) -> Unit:
    """Return every `Key=value` of a unit: keys may repeat, which configparser refuses."""
    lines = (DEPLOY / "systemd" / name).read_text(encoding="utf-8").splitlines()
    settings: Unit = defaultdict(list)
    for line in lines:
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            settings[key].append(value)
    return settings


def seconds(duration: str) -> int:
    return int(duration.removesuffix("s"))


def tool(name: str) -> str:
    """Return the path of a checker, from this environment or the system, or skip the test."""
    beside_python = Path(sys.executable).with_name(name)
    found = str(beside_python) if beside_python.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed here")
    return found


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def instructions(name: str) -> list[str]:
    """Return the arguments of every such instruction of the image's last stage."""
    text = re.sub(r"(?m)^#.*\n", "", CONTAINERFILE.read_text(encoding="utf-8")).replace("\\\n", " ")
    last_stage = text.rpartition("\nFROM ")[2]
    return [line.removeprefix(f"{name} ") for line in last_stage.splitlines() if line.startswith(f"{name} ")]


# --- compose


def test_compose_file_fits_the_compose_specification() -> None:
    check = ("-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec")

    result = run(sys.executable, *check, str(DEPLOY / "compose.yaml"))

    assert result.returncode == 0, result.stdout + result.stderr


def test_redis_keeps_what_waits_in_it() -> None:
    command = SERVICES["redis"]["command"]

    options = dict(zip(command[1::2], command[2::2], strict=True))

    assert command[0] == "redis-server"
    assert options["--appendonly"] == "yes"
    assert options["--maxmemory-policy"] == "noeviction"
    assert "redis-data:/data" in SERVICES["redis"]["volumes"]


def test_real_redis_takes_the_options_of_the_compose_file(tmp_path: Path) -> None:
    server = tool("redis-server")
    options = SERVICES["redis"]["command"][1:]

    # The last option makes Redis refuse to start, so whatever it says about the others comes before.
    result = run(server, *options, "--dir", str(tmp_path), "--port", "0", "--no-such-option", "1")

    assert "no-such-option" in result.stdout + result.stderr
    assert not any(option in result.stdout + result.stderr for option in options[::2])


def test_servers_are_asked_for_their_health_and_publish_no_port() -> None:
    assert SERVICES["postgres"]["healthcheck"]["test"][1] == "pg_isready"
    assert "redis-cli ping" in SERVICES["redis"]["healthcheck"]["test"][1]
    assert not [name for name, service in SERVICES.items() if "ports" in service]


def test_data_of_both_servers_lives_in_named_volumes() -> None:
    mounted = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])]

    assert sorted(mounted) == sorted(COMPOSE["volumes"])


@pytest.mark.parametrize("role", ["worker", "publisher"])
def test_roles_start_after_healthy_servers_and_finished_migrations(role: str) -> None:
    conditions = {name: wait["condition"] for name, wait in SERVICES[role]["depends_on"].items()}

    assert conditions == {
        "postgres": "service_healthy",
        "redis": "service_healthy",
        "migrate": "service_completed_successfully",
    }


@pytest.mark.parametrize("role", ["worker", "publisher"])
def test_one_of_each_role_may_die_and_all_are_started_again(role: str) -> None:
    assert SERVICES[role]["deploy"]["replicas"] >= 2
    assert "container_name" not in SERVICES[role]
    assert SERVICES[role]["restart"] == "unless-stopped"


def test_migrations_run_once_after_postgres() -> None:
    migrate = SERVICES["migrate"]

    assert migrate["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert migrate["restart"] == "no"


@pytest.mark.parametrize("role", ["worker", "publisher"])
def test_compose_waits_longer_for_a_stop_than_a_slice_takes(role: str) -> None:
    assert seconds(SERVICES[role]["stop_grace_period"]) > 2 * SLICE_SECONDS


@pytest.mark.parametrize("service", SERVICES)
def test_containers_can_change_nothing_but_their_volumes(service: str) -> None:
    facts = SERVICES[service]

    assert facts["read_only"] is True
    assert facts["cap_drop"] == ["ALL"]
    assert facts["security_opt"] == ["no-new-privileges:true"]
    assert not facts.get("privileged")
    assert not facts.get("cap_add")


@pytest.mark.parametrize("role", ROLES)
def test_compose_commands_are_commands_of_the_command_line(role: str) -> None:
    assert SERVICES[role]["command"][0] in COMMANDS
    assert SERVICES[role]["image"] == SERVICES["migrate"]["image"]


def test_no_password_stands_in_the_compose_file() -> None:
    settings = [item for service in SERVICES.values() for item in service.get("environment", {}).items()]

    open_ones = [name for name, _ in settings if "PASSWORD" in name and not name.endswith("_FILE")]
    with_user = [value for _, value in settings if re.search(r"://[^/]*@", str(value))]

    assert open_ones == []
    assert with_user == []
    assert "trust" not in json.dumps(SERVICES["postgres"]["environment"])
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())


def test_secrets_are_given_to_those_who_read_them_and_to_nobody_else() -> None:
    for name, service in SERVICES.items():
        environment = service.get("environment", {})

        read = {
            str(value).removeprefix("/run/secrets/")
            for key, value in environment.items()
            if key.endswith("_FILE")
        }

        assert read == set(service.get("secrets", [])), name


def test_secret_files_are_never_committed() -> None:
    ignored = (DEPLOY / ".gitignore").read_text(encoding="utf-8").splitlines()

    folders = {Path(secret["file"]).parts[0] + "/" for secret in COMPOSE["secrets"].values()}

    assert folders <= set(ignored)


# --- settings


def named_settings() -> dict[str, str]:
    """Return every PETARD_ name in deploy/ and the file that says it."""
    files = [DEPLOY / "compose.yaml", DEPLOY / "README.md", *(DEPLOY / "systemd").iterdir()]
    return {
        name: path.name
        for path in files
        for name in re.findall(r"\bPETARD_[A-Z_]+\b", path.read_text(encoding="utf-8"))
    }


def test_every_setting_that_deploy_names_exists() -> None:
    settings = pytest.importorskip("petard_worker.settings").Settings
    known = {f"PETARD_{name.upper()}" for name in settings.model_fields}
    known |= {f"PETARD_{name.upper()}_FILE" for name in SECRET_SETTINGS & settings.model_fields.keys()}

    named = named_settings()

    assert named
    assert {name: file for name, file in named.items() if name not in known} == {}


# --- rights


def readme_block(language: str, words: str) -> str:
    """Return the one block of code in the README that holds these words."""
    blocks = re.findall(rf"(?ms)^```{language}\n(.*?)^```$", (DEPLOY / "README.md").read_text("utf-8"))
    (block,) = [block for block in blocks if words in block]
    return str(block)


def test_file_of_redis_users_lets_nobody_in_as_it_is() -> None:
    users = (DEPLOY / "redis" / "users.acl").read_text(encoding="utf-8").splitlines()

    assert all(re.fullmatch(r"user \S+ off -@all( \S+)*", line) for line in users), users
    assert not [rule for line in users for rule in line.split() if rule[0] in "<>#" or rule == "nopass"]


def test_documented_commands_give_every_redis_user_but_the_default_a_password(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY / "redis", tmp_path / "deploy" / "redis")
    script = "set -eu\n" + readme_block("sh", "users.acl")

    done = run("bash", "-c", f"cd {tmp_path}\n{script}")

    assert done.returncode == 0, done.stderr
    users = (tmp_path / "deploy/secrets/users.acl").read_text(encoding="utf-8")
    state = dict(re.findall(r"(?m)^user (\S+) (on #[0-9a-f]{64}|off) -@all", users))
    assert {name for name, what in state.items() if what == "off"} == {"default"}
    for name, what in state.items():
        if name != "default":
            url = (tmp_path / f"deploy/secrets/redis_url_{name}").read_text(encoding="utf-8")
            login, _, password = url.removeprefix("redis://").partition("@")[0].partition(":")
            assert login == name
            assert what == "on #" + hashlib.sha256(password.encode()).hexdigest()


# --- container


def test_hadolint_finds_nothing_in_the_containerfile() -> None:
    result = run(tool("hadolint"), "--no-color", str(CONTAINERFILE))

    assert result.returncode == 0, result.stdout + result.stderr


def test_image_runs_petard_as_a_user_that_is_not_root() -> None:
    (user,) = instructions("USER")

    uid, gid = user.split(":")

    assert int(uid) >= 10000
    assert int(gid) >= 10000
    assert instructions("ENTRYPOINT") == ['["petard"]']


def test_image_installs_nothing_without_a_hash_except_our_own_wheel() -> None:
    text = CONTAINERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    installs = re.findall(r"pip (?:--python \S+ )?install ([^&\n]*)", text)

    libraries = [arguments for arguments in installs if "--require-hashes" in arguments]
    others = [arguments for arguments in installs if "--require-hashes" not in arguments]

    assert ["requirements.lock" in arguments or "build.lock" in arguments for arguments in libraries] == [
        True,
        True,
    ]
    assert len(others) == 1
    assert {"--no-deps", "--no-index"} <= set(others[0].split())
    assert "pip wheel" in text
    assert "--no-build-isolation" in text


def test_last_stage_gets_the_environment_and_installs_nothing() -> None:
    assert instructions("COPY") == ["--from=build /opt/petard /opt/petard"]
    assert not [
        command for command in instructions("RUN") if re.search(r"\b(apt|apt-get|pip|curl|wget)\b", command)
    ]


def test_version_label_is_the_version_of_the_project() -> None:
    version = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

    assert f"VERSION={version}" in instructions("ARG")
    assert 'org.opencontainers.image.version="${VERSION}"' in instructions("LABEL")[0]


def test_everything_the_image_copies_exists_and_is_sent_to_the_build() -> None:
    sent = (DEPLOY / "Containerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    text = CONTAINERFILE.read_text(encoding="utf-8")
    copies = re.findall(r"(?m)^COPY (?!--from)(.*) \S+$", text)

    sources = [source for line in copies for source in line.split()]

    assert sources
    assert "*" in sent
    for source in sources:
        assert (TOP / source).exists()
        assert any(Path(source).match(line[1:]) for line in sent if line.startswith("!")), source


# --- systemd


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze")
    copies = []
    for path in UNITS:
        # The program need not be installed here; a template is only checked as an instance of itself.
        copy = tmp_path / path.name.replace("@.", "@1.")
        copy.write_text(
            re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={sys.executable}", path.read_text("utf-8")), "utf-8"
        )
        copies.append(str(copy))

    result = run(analyze, "verify", "--man=no", *copies)

    assert len(copies) == 3
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_parse_and_run_commands_of_the_command_line(path: Path) -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str

    parser.read(path, encoding="utf-8")

    program, command = parser["Service"]["ExecStart"].split()
    assert program == "/opt/petard/bin/petard"
    assert command in COMMANDS
    assert path.name in {f"petard-{command}.service", f"petard-{command}@.service"}


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_get_the_database_url_as_a_credential(path: Path) -> None:
    settings = unit(path.name)

    ((name, _, source),) = [credential.partition(":") for credential in settings["LoadCredential"]]

    assert settings["Environment"] == [f"PETARD_DATABASE_URL_FILE=%d/{name}"]
    assert source.startswith("/etc/petard/")
    assert settings["EnvironmentFile"] == ["/etc/petard/petard.env"]


def test_services_cannot_read_the_login_of_the_migrations() -> None:
    (owner,) = unit("petard-migrate.service")["LoadCredential"]

    services = [unit(name)["LoadCredential"] for name in STAYING_UNITS]

    assert owner.partition(":")[2] not in [source.partition(":")[2] for (source,) in services]


@pytest.mark.parametrize("name", STAYING_UNITS)
def test_bad_configuration_stays_down_and_an_outage_does_not(name: str) -> None:
    settings = unit(name)

    assert settings["Restart"] == ["on-failure"]
    assert settings["RestartPreventExitStatus"] == ["78"]
    assert settings["StartLimitIntervalSec"] == ["0"]
    assert "SuccessExitStatus" not in settings


@pytest.mark.parametrize("name", STAYING_UNITS)
def test_systemd_lets_a_worker_finish_its_batch(name: str) -> None:
    settings = unit(name)

    assert settings["Type"] == ["exec"]
    assert settings["KillMode"] == ["mixed"]
    assert seconds(settings["TimeoutStopSec"][0]) > 2 * SLICE_SECONDS


def test_migrations_are_one_shot_and_come_before_the_roles() -> None:
    migrate = unit("petard-migrate.service")

    assert migrate["Type"] == ["oneshot"]
    assert all("petard-migrate.service" in unit(name)["After"][0].split() for name in STAYING_UNITS)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_run_without_any_privilege(path: Path) -> None:
    settings = unit(path.name)

    assert settings["DynamicUser"] == ["yes"]
    assert settings["NoNewPrivileges"] == ["yes"]
    assert settings["ProtectSystem"] == ["strict"]
    assert settings["CapabilityBoundingSet"] == [""]
    assert settings["SystemCallFilter"] == ["@system-service", "~@privileged"]
