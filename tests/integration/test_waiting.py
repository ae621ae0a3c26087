"""What became of an event: `unknown` only when it is nowhere, also while it is on its way."""

import pytest
from redis import Redis

from integration.arena import POOL, apply_all, finished, games, push
from petard_schema import Keys
from petard_worker import waiting
from petard_worker.postgres.connect import Connection
from petard_worker.waiting import CHUNK, find_waiting, trace


@pytest.mark.usefixtures("pool")
def test_an_event_that_is_applied_between_two_looks_is_not_unknown(
    connection: Connection, client: Redis, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(client, keys, [finished(1)])

    def look_too_late(*arguments: object) -> object:
        apply_all(connection, client, keys)
        return find_waiting(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(waiting, "find_waiting", look_too_late)

    (fate,) = trace(connection, client, keys, "e-1")

    assert (fate.outcome, fate.seq, len(fate.changes)) == ("rated", 1, 2)


def test_an_event_is_found_while_the_list_moves_under_the_search(
    client: Redis, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two looks a drain takes events off the head, and a producer adds some at the tail."""
    events = games(3 * CHUNK)
    push(client, keys, events)
    look = client.lrange

    def look_while_it_moves(*arguments: object) -> object:
        found = look(*arguments)  # type: ignore[arg-type]
        client.ltrim(keys.events(POOL), CHUNK // 2, -1)
        push(client, keys, games(CHUNK // 2, first=10 * CHUNK))
        return found

    monkeypatch.setattr(client, "lrange", look_while_it_moves)

    fate = find_waiting(client, keys, f"e-{CHUNK + 200}")

    assert fate is not None
    assert (fate.outcome, fate.pool) == ("waiting", POOL)
