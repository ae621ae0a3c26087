"""The language of events for readers that do not speak Python: JSON Schemas and an AsyncAPI document.

The models say it once; what is written here is made from them. `python -m petard_schema.export <folder>`.
"""

import json
import sys
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path

from pydantic import JsonValue
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from petard_schema.envelope import MAX_EVENT_BYTES, Envelope
from petard_schema.game_events import (
    AbandonedGame,
    FinishedGame,
    GameAbandoned,
    GameFinished,
    Side,
    UnrankedSide,
)
from petard_schema.keys import Keys
from petard_schema.names import OWN_SOURCE, POOL_PATTERN
from petard_schema.period_events import ClosedPeriod, PeriodClosed
from petard_schema.rating_events import Cause, Change, Explanation, LedgerEntry, RatingChanged, Standing
from petard_schema.signing import ID, MAX_SIGNATURES, SIGNATURE, SOURCE, TIMESTAMP

CONSUMED: tuple[type[Envelope], ...] = (GameFinished, GameAbandoned)
PRODUCED: tuple[type[Envelope], ...] = (RatingChanged,)
KEPT: tuple[type[Envelope], ...] = (PeriodClosed,)
"""What stands in the ledger without having come through a list; the change stream names it as a cause."""

_ended = datetime(2026, 11, 30, 12, tzinfo=UTC)
_winner, _loser = Side(players=("alice",), rank=1), Side(players=("bob",), rank=2)
EXAMPLES: dict[type[Envelope], Envelope] = {
    GameFinished: GameFinished(
        id="01JE0000000000000000000001",
        source="/servers/eu-1",
        time=_ended,
        data=FinishedGame(pool="chess-blitz", game="g-1", sides=(_winner, _loser)),
    ),
    GameAbandoned: GameAbandoned(
        id="01JE0000000000000000000011",
        source="/servers/eu-1",
        time=_ended,
        data=AbandonedGame(
            pool="chess-blitz",
            game="g-11",
            sides=(UnrankedSide(players=("alice",)), UnrankedSide(players=("bob",))),
            abandoned_by=("bob",),
        ),
    ),
    PeriodClosed: PeriodClosed(
        id="chess-blitz/period-closed/4711",
        time=_ended,
        data=ClosedPeriod(
            pool="chess-blitz", days=7, first_day=date(2026, 11, 26), next_first_day=date(2026, 12, 3)
        ),
    ),
    # Two new players under Glicko: 1500 ± 350 each, one game.
    RatingChanged: RatingChanged(
        id="chess-blitz/1-1",
        source=OWN_SOURCE,
        time=_ended,
        subject="chess-blitz",
        data=LedgerEntry(
            pool="chess-blitz",
            epoch=1,
            seq=1,
            cause=Cause(
                id="01JE0000000000000000000001",
                source="/servers/eu-1",
                type="petard.game.finished.v1",
                game="g-1",
            ),
            outcome="rated",
            changes=tuple(
                Change(
                    player=player,
                    player_seq=1,
                    before=Standing(rating=1500, rd=350, bomb=0, games=0),
                    after=Standing(rating=rating, rd=290.2305060910912, bomb=0, games=1),
                    explanation=Explanation(expected=0.5, actual=score, rd_aged=350),
                )
                for player, rating, score in (
                    ("alice", 1662.2120026057648, 1),
                    ("bob", 1337.7879973942352, 0),
                )
            ),
        ),
    ),
}
"""One of each message, as the files beside the package tell it at length."""


def documents() -> dict[str, str]:
    """Return the text of every generated file by its path in the folder."""
    schemas = {
        f"json/{event_type(model)}.json": json_schema(model) for model in (*CONSUMED, *PRODUCED, *KEPT)
    }
    return {path: to_text(document) for path, document in (schemas | {"asyncapi.json": asyncapi()}).items()}


def write(folder: Path) -> list[Path]:
    """Write the generated files into the folder and return their paths."""
    written = []
    for name, text in documents().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        written.append(path)
    return written


class Schemas(GenerateJsonSchema):
    """JSON Schemas as the parser reads and to_json writes, not as pydantic alone would."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """Return False: a title that repeats the field's name says nothing."""
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Leave null out of what is produced: to_json does not write it."""
        if self.mode == "serialization":
            return self.generate_inner(schema["schema"])
        return super().nullable_schema(schema)

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        """Say of produced fields that they are there, unless they may be null and are left out then."""
        if self.mode == "serialization":
            return field["schema"].get("default", ...) is not None
        return super().field_is_required(field, total)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Tell defaults only where somebody may leave a field out, and null is not worth telling."""
        if self.mode == "serialization" or schema.get("default") is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def json_schema(model: type[Envelope]) -> dict[str, JsonValue]:
    """Return the JSON Schema of one message, complete in itself."""
    schema = message_schema(model, ref_template="#/$defs/{model}")
    return {"$schema": Schemas.schema_dialect, **schema}


def message_schema(model: type[Envelope], ref_template: str) -> dict[str, JsonValue]:
    """Return the schema of one message, seen from Petard: read if consumed, written if produced."""
    mode: JsonSchemaMode = "validation" if model in CONSUMED else "serialization"
    schema = model.model_json_schema(mode=mode, ref_template=ref_template, schema_generator=Schemas)
    # The models fill in specversion and type for those who write Python; on the wire both must be there.
    schema["required"] = [name for name in schema["properties"] if name != "traceparent"]
    return schema


def event_type(model: type[Envelope]) -> str:
    """Return the CloudEvents type of a message."""
    return str(model.model_fields["type"].default)


def asyncapi() -> dict[str, JsonValue]:
    """Return the AsyncAPI 3.0 document: who says what on which Redis key."""
    keys = Keys()
    events = (*CONSUMED, *PRODUCED)
    messages: dict[str, JsonValue] = {model.__name__: event_message(model) for model in events}
    messages["pushed"] = poke_message("The pool that has new events.", POOL_PATTERN, "chess-blitz")
    messages["changed"] = poke_message(
        "The pool, and the ID of the last entry in its stream.",
        f"{POOL_PATTERN[:-1]} [1-9][0-9]*-[1-9][0-9]*$",
        "chess-blitz 1-4711",
    )
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Petard",
            "version": "1",
            "description": "A rating service for online games: game servers push events about games onto"
            " Redis lists, followers read what changed from Redis streams. Keys are shown with the default"
            f" prefix `{keys.prefix}`.",
            "license": {"name": "MIT"},
        },
        "defaultContentType": "application/json",
        "servers": {"redis": {"host": "localhost:6379", "protocol": "redis"}},
        "channels": {
            "events": channel(
                keys.events("{pool}"),
                "A list of events that wait, oldest first. Producers RPUSH one JSON text per event, of at"
                f" most {MAX_EVENT_BYTES} bytes, and nothing else. Before the text of a signed event stand"
                " its headers, one a line, and an empty line.",
                CONSUMED,
            ),
            "pushed": poke_channel(
                keys.pushed(), "Pub/sub: an optional poke by producers after a push.", "pushed"
            ),
            "changes": channel(
                keys.changes("{pool}"),
                "A stream with an entry for each entry of the pool's ledger: ID `<epoch>-<seq>`, the JSON"
                " text in the field `event`. Without gaps; trimmed to a configured length.",
                PRODUCED,
            ),
            "changed": poke_channel(
                keys.changed(), "Pub/sub: a poke for followers after entries were added.", "changed"
            ),
        },
        "operations": {
            "receiveEvents": operation("receive", "events", "Rate games and count abandonments.", CONSUMED),
            "receivePushed": operation("receive", "pushed", "Look at a pool's list at once."),
            "sendChanges": operation("send", "changes", "Tell every entry of the ledger.", PRODUCED),
            "sendChanged": operation("send", "changed", "Wake those who follow."),
        },
        "components": {
            "messages": messages,
            "schemas": shared_schemas(events),
        },
    }


def channel(address: str, description: str, models: Iterable[type[Envelope]]) -> dict[str, JsonValue]:
    """Return a channel of one pool that carries events."""
    return {
        "address": address,
        "description": description,
        "servers": [ref("servers", "redis")],
        "parameters": {"pool": {"description": f"The name of the pool: {POOL_PATTERN}"}},
        "messages": {model.__name__: ref("components", "messages", model.__name__) for model in models},
    }


def poke_channel(address: str, description: str, message: str) -> dict[str, JsonValue]:
    """Return a pub/sub channel that carries pokes, from which nothing follows when one is lost."""
    return {
        "address": address,
        "description": description,
        "servers": [ref("servers", "redis")],
        "messages": {message: ref("components", "messages", message)},
    }


def operation(
    action: str, channel: str, summary: str, models: Iterable[type[Envelope]] = ()
) -> dict[str, JsonValue]:
    """Return what Petard itself does on a channel."""
    names = [model.__name__ for model in models] or [channel]
    return {
        "action": action,
        "channel": ref("channels", channel),
        "summary": summary,
        "messages": [ref("channels", channel, "messages", name) for name in names],
    }


def event_message(model: type[Envelope]) -> dict[str, JsonValue]:
    """Return an event as a message, with its example."""
    signature: dict[str, JsonValue] = {"headers": signature_headers()} if model in CONSUMED else {}
    return {
        "name": event_type(model),
        "summary": model.__doc__,
        "contentType": "application/cloudevents+json",
        **signature,
        "payload": ref("components", "schemas", model.__name__),
        "examples": [{"payload": json.loads(EXAMPLES[model].to_json())}],
    }


def signature_headers() -> dict[str, JsonValue]:
    """Return the headers of a signed event: all of them or none."""
    headers: dict[str, JsonValue] = {
        SOURCE.decode(): {"type": "string", "description": "The source of the event: whose keys they are."},
        ID.decode(): {"type": "string", "pattern": "^[^.]+$", "description": "Part of what is signed."},
        TIMESTAMP.decode(): {
            "type": "string",
            "pattern": "^[0-9]{1,15}$",
            "description": "When it was signed, in seconds since 1970-01-01.",
        },
        SIGNATURE.decode(): {
            "type": "string",
            "pattern": "^v1,[!-~]+( v1,[!-~]+)*$",
            "description": f"Up to {MAX_SIGNATURES} signatures: `v1,` and the base64 of the HMAC-SHA256 of"
            " `<webhook-id>.<webhook-timestamp>.<JSON>`.",
        },
    }
    return {
        "type": "object",
        "description": "Only of signed events, as Standard Webhooks has them.",
        "properties": headers,
        "dependentRequired": {name: [each for each in headers if each != name] for name in headers},
    }


def poke_message(summary: str, pattern: str, example: str) -> dict[str, JsonValue]:
    """Return a poke as a message: a text."""
    return {
        "summary": summary,
        "contentType": "text/plain",
        "payload": {"type": "string", "pattern": pattern, "examples": [example]},
    }


def shared_schemas(models: Iterable[type[Envelope]]) -> dict[str, JsonValue]:
    """Return the schemas of all messages and of their parts by name."""
    schemas: dict[str, JsonValue] = {}
    for model in models:
        schema = message_schema(model, ref_template="#/components/schemas/{model}")
        parts = schema.pop("$defs")
        assert isinstance(parts, dict)
        schemas |= parts | {model.__name__: schema}
    return dict(sorted(schemas.items()))


def ref(*path: str) -> dict[str, JsonValue]:
    """Return a reference to another place of the same document."""
    return {"$ref": "/".join(("#", *path))}


def to_text(document: dict[str, JsonValue]) -> str:
    """Return a document as it stands in its file: the same on every machine."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        sys.stdout.write(f"{path}\n")
