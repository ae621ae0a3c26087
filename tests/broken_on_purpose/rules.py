"""Every safety rule, how to break it, and the tests that must notice.

A rule is broken by replacing a piece of the source. The pieces are short and say what they are about, so a
change of the source that makes one unfindable is a reason to look at the rule again.
"""

from typing import NamedTuple

WORKER = "worker/petard_worker"


class Rule(NamedTuple):
    """A safety rule, the piece of source it rests on, what is put in its place, and who notices."""

    name: str
    file: str
    piece: str
    instead: str
    tests: tuple[str, ...]


RULES = (
    Rule(
        "an event counts once: the unique key",
        f"{WORKER}/postgres/migrations/0001_pipeline.sql",
        "    CONSTRAINT ledger_counts_an_event_once UNIQUE (pool, event_id, source),\n",
        "",
        ("tests/integration/test_constraints.py",),
    ),
    Rule(
        "an event counts once: what has counted is looked up under the lock",
        f"{WORKER}/batch.py",
        "counted = self._bodies.get(key) or self.history.events.get(key)",
        "counted = self._bodies.get(key)",
        ("tests/integration/test_exactly_once.py",),
    ),
    Rule(
        "a game counts once: the unique key",
        f"{WORKER}/postgres/migrations/0001_pipeline.sql",
        "CREATE UNIQUE INDEX ledger_counts_a_game_once",
        "CREATE INDEX ledger_counts_a_game_once",
        ("tests/integration/test_constraints.py",),
    ),
    Rule(
        "a game counts once: another outcome is a conflict",
        f"{WORKER}/batch.py",
        "if outcome_of(counted) == outcome_of(event):",
        "if True:",
        ("tests/integration/test_exactly_once.py",),
    ),
    Rule(
        "one drain at a time: the lock of the pool's row",
        f"{WORKER}/postgres/pools.py",
        "FROM petard.pool WHERE name = %(name)s FOR NO KEY UPDATE",
        "FROM petard.pool WHERE name = %(name)s",
        ("tests/integration/test_order.py", "tests/integration/test_exactly_once.py"),
    ),
    Rule(
        "the head is looked at again under the lock",
        f"{WORKER}/intake.py",
        "if not fresh and not self._begins_and_ends(entries):",
        "if not entries:",
        ("tests/integration/test_overlap.py",),
    ),
    Rule(
        "a batch that was taken for new is done again where it is not",
        f"{WORKER}/apply.py",
        "if new and not batch.all_new:",
        "if False:",
        ("tests/integration/test_expects_new.py",),
    ),
    Rule(
        "what the constraints refuse of a batch that was taken for new is asked for",
        f"{WORKER}/apply.py",
        "except (NotAllNewError, psycopg.errors.UniqueViolation):",
        "except NotAllNewError:",
        ("tests/integration/test_expects_new.py",),
    ),
    Rule(
        "what did not end with COMMIT is not taken for committed",
        f"{WORKER}/postgres/connect.py",
        'if commit.statusmessage != "COMMIT":',
        "if False:",
        ("tests/integration/test_pipelined_transaction.py",),
    ),
    Rule(
        "an answer that nobody has waited for is thrown away",
        f"{WORKER}/server_function.py",
        "if pending:  # nobody",
        "if False:  # nobody",
        ("tests/integration/test_server_function.py",),
    ),
    Rule(
        "a text is usual only if all its quotes are accounted for",
        "schema/petard_schema/usual_event.py",
        """raw.count(b'"') != 2 * counted or """,
        "",
        ("tests/unit/test_usual_event.py", "tests/unit/test_parse.py"),
    ),
    Rule(
        "events leave the list only if they are its head",
        f"{WORKER}/intake.py",
        "    if head[i] ~= event then return 0 end\n",
        "",
        ("tests/integration/test_intake.py", "tests/faults/test_worker_killed.py"),
    ),
    Rule(
        "the whole batch is compared, not its ends",
        f"{WORKER}/intake.py",
        "    if head[i] ~= event then return 0 end\n",
        "    if (i == 1 or i == count) and head[i] ~= event then return 0 end\n",
        ("tests/integration/test_intake.py",),
    ),
    Rule(
        "events leave the list after COMMIT",
        f"{WORKER}/apply.py",
        "        taken = take(connection, intake.pool, locked, arrivals, breaker, known)\n    breaker",
        "        taken = take(connection, intake.pool, locked, arrivals, breaker, known)\n"
        "        trim(intake, [arrival.raw for arrival in arrivals])\n    breaker",
        ("tests/integration/test_exactly_once.py", "tests/faults/test_worker_killed.py"),
    ),
    Rule(
        "the bell is let go of before the last look",
        f"{WORKER}/jobs.py",
        "                self.release()\n"
        "                if self.intake.waiting() == 0:\n"
        "                    return\n",
        "                if self.intake.waiting() == 0:\n"
        "                    self.release()\n"
        "                    return\n",
        ("tests/integration/test_drain.py",),
    ),
    Rule(
        "who rings writes whose drain answers",
        f"{WORKER}/bell.py",
        "if type(owner) == 'string' and owner ~= ARGV[1] then return 0 end",
        "",
        ("tests/integration/test_bell.py",),
    ),
    Rule(
        "a dead drain's bell expires",
        f"{WORKER}/bell.py",
        "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])",
        "redis.call('SET', KEYS[1], ARGV[1])",
        ("tests/integration/test_bell.py",),
    ),
    Rule(
        "an entry is appended only behind its predecessor",
        f"{WORKER}/change_stream.py",
        "if last ~= ARGV[1] then return last end\n",
        "",
        ("tests/integration/test_publish.py",),
    ),
    Rule(
        "a new epoch where Redis is ahead of Postgres",
        f"{WORKER}/publish.py",
        "        elif last.epoch >= pool.epoch:\n",
        "        elif last.epoch > pool.epoch:\n",
        ("tests/integration/test_publish.py",),
    ),
    Rule(
        "the last entry of a stream is compared with the ledger",
        f"{WORKER}/publish.py",
        "        return due == [told(entry.event) for entry in found]\n",
        "        return True\n",
        ("tests/integration/test_publish.py",),
    ),
    Rule(
        "one publisher of the fleet is active",
        f"{WORKER}/run_publisher.py",
        "    while not try_publisher_lock(connection):\n",
        "    while not (try_publisher_lock(connection) or True):\n",
        ("tests/integration/test_publish.py",),
    ),
    Rule(
        "our exception costs one event",
        f"{WORKER}/batch.py",
        "            except Exception as error:  # noqa: BLE001",
        "            except KeyboardInterrupt as error:  # noqa: BLE001",
        ("tests/unit/test_batch.py",),
    ),
    Rule(
        "the end of a stream is compared, not only its last entry",
        f"{WORKER}/publish.py",
        "COMPARED = 500\n",
        "COMPARED = 1\n",
        ("tests/integration/test_publish.py",),
    ),
    Rule(
        "whatever our code does wrong costs one event",
        f"{WORKER}/apply.py",
        "    return not isinstance(error, OF_NO_EVENT)\n",
        "    return False\n",
        ("tests/integration/test_poison.py",),
    ),
    Rule(
        "an event that Postgres refuses is isolated",
        f"{WORKER}/jobs.py",
        "            if is_of_one_event(error) and self.suspect != 1:\n",
        "            if False:\n",
        ("tests/integration/test_poison.py",),
    ),
    Rule(
        "an event that Postgres refuses is buried",
        f"{WORKER}/apply.py",
        "            breaker.check(intake.pool, [True])\n",
        "            raise\n",
        ("tests/integration/test_poison.py",),
    ),
    Rule(
        "a drain that waits waits longer every time",
        f"{WORKER}/jobs.py",
        "        longest = min(LONGEST_WAIT_SECONDS, 0.05 * 2 ** min(self.failures, 16))\n",
        "        longest = 0.0\n",
        ("tests/integration/test_drain.py",),
    ),
    Rule(
        "an outage of Postgres fails no drain",
        f"{WORKER}/jobs.py",
        "            elif isinstance(error, OUTAGES) and not is_of_one_event(error):\n",
        "            elif False:\n",
        ("tests/integration/test_drain.py",),
    ),
    Rule(
        "a stop ends a drain between two batches",
        f"{WORKER}/jobs.py",
        "                if self.workshop.stop.is_set():\n                    self.release()\n",
        "                if False:\n                    self.release()\n",
        ("tests/integration/test_drain.py",),
    ),
    Rule(
        "a stop ends a wait",
        f"{WORKER}/jobs.py",
        "            if self.workshop.stop.wait(min(left, RENEW_SECONDS)):\n                return\n",
        "            time.sleep(min(left, RENEW_SECONDS))\n",
        ("tests/integration/test_drain.py",),
    ),
    Rule(
        "the breaker stops a pool",
        f"{WORKER}/breaker.py",
        "        if not any(failed):\n            return\n",
        "        return\n",
        ("tests/integration/test_breaker_pool.py",),
    ),
    Rule(
        "a commit is on disk before an event leaves the list",
        f"{WORKER}/postgres/connect.py",
        " -c synchronous_commit=on",
        " -c synchronous_commit=off",
        ("tests/integration/test_apply.py",),
    ),
    Rule(
        "what is trimmed stays as a copy",
        f"{WORKER}/intake.py",
        "local kept = wanted and not nearly_full() and keep_copy()\n",
        "local kept = wanted\n",
        ("tests/integration/test_recent.py",),
    ),
    Rule(
        "an event is on the disk before it is sent",
        "producer/petard_producer/spool.py",
        'synchronous="PRAGMA synchronous = FULL") as connection:\n            yield',
        'synchronous="PRAGMA synchronous = OFF") as connection:\n            yield',
        ("tests/unit/test_spool.py",),
    ),
    Rule(
        "a confirmed event is removed after it was sent",
        "producer/petard_producer/send_spool.py",
        "        refused = self._lists.append(\n",
        "        self._spool.remove({pool: events[-1].place for pool, events in chunk.items()})\n"
        "        refused = self._lists.append(\n",
        ("tests/unit/test_send_spool.py",),
    ),
    Rule(
        "what Redis refuses holds up what is behind it in its pool",
        "producer/petard_producer/send_spool.py",
        " for pool, events in chunk.items() if pool not in refused}\n",
        " for pool, events in chunk.items()}\n",
        ("tests/unit/test_send_spool.py",),
    ),
    Rule(
        "a replay notes what it pushed in the same step",
        f"{WORKER}/replay.py",
        "if pushed > 0 then redis.call('SET', KEYS[2], string.format('%.0f', last), 'EX', ARGV[1]) end\n",
        "",
        ("tests/integration/test_replay_runs.py",),
    ),
    Rule(
        "a signed event is verified",
        "schema/petard_schema/signing.py",
        "    fits = False\n",
        "    fits = True\n",
        ("tests/unit/test_signing.py",),
    ),
    Rule(
        "nobody speaks in the name of another source",
        f"{WORKER}/signing_keys.py",
        "    if signed_by is not None and event.source != signed_by:\n",
        "    if False:\n",
        ("tests/unit/test_signing.py",),
    ),
    Rule(
        "nobody speaks unsigned in the name of a source that signs",
        f"{WORKER}/signing_keys.py",
        "    if signed_by is None:\n",
        "    if False:\n",
        ("tests/integration/test_signed_events.py",),
    ),
    Rule(
        "a source speaks in its pools only",
        f"{WORKER}/signing_keys.py",
        "    if source.pools is not None and event.data.pool not in source.pools:\n",
        "    if False:\n",
        ("tests/integration/test_signed_events.py",),
    ),
    Rule(
        "a pool may demand signatures",
        f"{WORKER}/batch.py",
        "    elif signed_only:\n",
        "    elif False:\n",
        ("tests/integration/test_signed_events.py",),
    ),
)
