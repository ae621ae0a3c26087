"""Rule 5 of the pipeline: one drain answers for a pool, and everybody can see which."""

from collections.abc import Callable

import pytest
from redis import Redis

from petard_schema import Keys
from petard_worker.bell import QUEUED_MS, WORKING_MS, Bell


@pytest.fixture
def ours(client: Redis, keys: Keys) -> Bell:
    return Bell.of(client, keys, "p", "ours")


@pytest.fixture
def theirs(client: Redis, keys: Keys) -> Bell:
    return Bell.of(client, keys, "p", "theirs")


def test_a_bell_nobody_holds_can_be_taken(client: Redis, ours: Bell) -> None:
    assert ours.hold()

    assert client.get(ours.key) == b"ours"
    assert 0 < client.pttl(ours.key) <= WORKING_MS


def test_a_bell_somebody_holds_cannot_be_taken(client: Redis, ours: Bell, theirs: Bell) -> None:
    theirs.hold()

    assert not ours.hold()

    assert client.get(ours.key) == b"theirs"


def test_holding_on_renews_the_bell(client: Redis, ours: Bell) -> None:
    ours.hold()
    client.pexpire(ours.key, 100)

    assert ours.hold()

    assert client.pttl(ours.key) > 1000


def test_only_its_holder_releases_a_bell(client: Redis, ours: Bell, theirs: Bell) -> None:
    ours.hold()

    theirs.release()
    kept = client.get(ours.key)
    ours.release()

    assert kept == b"ours"
    assert not client.exists(ours.key)


def test_a_bell_that_was_passed_on_belongs_to_the_next(client: Redis, ours: Bell, theirs: Bell) -> None:
    ours.hold()

    ours.pass_on("theirs")

    assert not ours.hold()
    assert WORKING_MS < client.pttl(ours.key) <= QUEUED_MS
    assert theirs.hold()


def test_the_bell_of_a_dead_drain_expires(
    client: Redis, ours: Bell, theirs: Bell, wait_until: Callable[..., None]
) -> None:
    theirs.hold()
    client.pexpire(theirs.key, 30)

    wait_until(ours.hold, "the bell to expire", 5)


def test_each_pool_has_a_bell_of_its_own(client: Redis, keys: Keys, theirs: Bell) -> None:
    theirs.hold()

    assert Bell.of(client, keys, "q", "ours").hold()


def test_a_bell_of_the_wrong_type_is_replaced(client: Redis, ours: Bell) -> None:
    client.rpush(ours.key, "not a bell")

    assert ours.hold()

    assert client.get(ours.key) == b"ours"


def test_releasing_a_bell_of_the_wrong_type_does_no_harm(client: Redis, ours: Bell) -> None:
    client.rpush(ours.key, "not a bell")

    ours.release()

    assert client.type(ours.key) == b"list"
