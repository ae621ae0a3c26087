"""The roles on this machine: whose servers they use, and how fast they are started again."""

from itertools import accumulate
from pathlib import Path

import pytest

from petard_worker.fleet import CALM_SECONDS, SLOWEST_RESTART_SECONDS, next_pause, servers, unset_urls
from petard_worker.settings import BadSettingError, load_settings


def test_roles_that_keep_ending_are_started_slower_and_slower() -> None:
    pauses = list(accumulate([0.0] * 15, next_pause, initial=0.0))

    assert pauses[1:5] == [1, 2, 3, 4]
    assert pauses[-1] == SLOWEST_RESTART_SECONDS


def test_a_calm_time_is_forgiveness() -> None:
    assert next_pause(SLOWEST_RESTART_SECONDS, CALM_SECONDS + 1) == 1


def test_servers_of_the_environment_and_of_files_are_used_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "url"
    file.write_text("redis://:secret@127.0.0.1:1/0\n")
    monkeypatch.setenv("PETARD_DATABASE_URL", "postgresql://127.0.0.1:1/petard")
    monkeypatch.setenv("PETARD_REDIS_URL_FILE", str(file))
    monkeypatch.delenv("PETARD_REDIS_URL", raising=False)
    settings = load_settings()

    with servers(settings, None) as (urls, _):
        assert (urls.database_url, urls.redis_url) == (
            "postgresql://127.0.0.1:1/petard",
            "redis://:secret@127.0.0.1:1/0",
        )

    assert unset_urls(settings) == []


def test_a_server_nobody_has_set_is_to_be_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PETARD_DATABASE_URL", "postgresql://127.0.0.1:1/petard")
    monkeypatch.delenv("PETARD_REDIS_URL", raising=False)

    assert unset_urls(load_settings()) == ["redis_url"]


def test_one_server_without_the_other_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedded ledger would publish over the streams of the Redis that was given."""
    monkeypatch.delenv("PETARD_DATABASE_URL", raising=False)
    monkeypatch.setenv("PETARD_REDIS_URL", "redis://127.0.0.1:1/0")

    with (
        pytest.raises(BadSettingError, match="PETARD_DATABASE_URL is not set"),
        servers(load_settings(), None),
    ):
        pass
