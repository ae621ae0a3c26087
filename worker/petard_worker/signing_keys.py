"""Who signs: the keys of every source, as the setting tells them, and what follows for an event."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hmac import HMAC
from typing import TypeAlias

from petard_schema import AnyGameEvent, BadSigningKeyError
from petard_schema.ijson import NotIJsonError, decode, shorten
from petard_schema.names import MAX_SOURCE, check_pool, check_source
from petard_schema.signing import (
    KEY_PREFIX,
    MAX_SIGNATURES,
    SignedElement,
    bad_signature,
    sign_with,
    signing_key,
    split_element,
    verify,
)


class BadSigningKeysError(ValueError):
    """The signing keys are not told as they have to be; the message names the source and never a key."""


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """What is known of one source."""

    keys: tuple[HMAC, ...] = field(repr=False)
    """The newest first; none at all: nobody may speak in its name."""
    pools: frozenset[str] | None = None
    """The pools it may speak in; None is all."""


SigningKeys: TypeAlias = Mapping[str, SourceKeys]
"""Every source that signs. Those that are not in it speak unsigned, where a pool lets them."""

NO_KEYS: SigningKeys = {}


def read_signing_keys(text: str) -> SigningKeys:
    """Return the keys in a JSON object of sources, or raise BadSigningKeysError.

    `{"/servers/eu-1": {"keys": ["whsec_…"], "pools": ["chess-blitz"]}}`; without `pools` in all of them.
    """
    try:
        document = decode(text.encode())
    except UnicodeEncodeError:
        raise BadSigningKeysError("is not UTF-8") from None
    except NotIJsonError as error:
        what = "a key stands where a name has to" if KEY_PREFIX in str(error) else str(error)
        raise BadSigningKeysError(f"is no JSON: {what}") from None
    if not isinstance(document, dict):
        raise BadSigningKeysError('is no JSON object of sources, such as {"/servers/eu-1": {"keys": […]}}')
    return {source: read_source(source, entry) for source, entry in document.items()}


def read_source(source: str, entry: object) -> SourceKeys:
    """Return what is told of one source, or raise BadSigningKeysError with its name."""
    if KEY_PREFIX in source:
        raise BadSigningKeysError("a key stands where the name of a source has to")
    try:
        check_name(source)
        return read_entry(entry)
    except ValueError as error:
        raise BadSigningKeysError(f"source {shorten(source)}: {error}") from None


def check_name(source: str) -> None:
    """Raise ValueError for a name that no source of an event can have."""
    if not 1 <= len(check_source(source)) <= MAX_SOURCE:
        raise BadSigningKeysError(f"its name has {len(source)} characters, 1 to {MAX_SOURCE} are allowed")


def read_entry(entry: object) -> SourceKeys:
    """Return what stands beside the name of a source, or raise ValueError."""
    if not isinstance(entry, dict) or not isinstance(entry.get("keys"), list):
        raise BadSigningKeysError('is no object with a list "keys"')
    if unknown := entry.keys() - {"keys", "pools"}:
        # A limit that is misspelt must not be taken for none.
        raise BadSigningKeysError(f'has {len(unknown)} names besides "keys" and "pools"')
    return SourceKeys(read_keys(entry["keys"]), read_pools(entry["pools"]) if "pools" in entry else None)


def read_keys(given: list[object]) -> tuple[HMAC, ...]:
    """Return the keys of a source, or raise ValueError saying which is none."""
    if len(given) > MAX_SIGNATURES:
        raise BadSigningKeysError(f"{len(given)} keys, the limit is {MAX_SIGNATURES}")
    keys = []
    for number, text in enumerate(given, 1):
        try:
            keys.append(signing_key(text if isinstance(text, str) else ""))
        except BadSigningKeyError as error:
            raise BadSigningKeysError(f"key {number}: {error}") from None
    return tuple(keys)


def read_pools(given: object) -> frozenset[str]:
    """Return the pools a source is limited to, or raise ValueError."""
    if not isinstance(given, list) or not given or not all(isinstance(pool, str) for pool in given):
        raise BadSigningKeysError('"pools" is no list of names; leave it out to allow all')
    return frozenset(check_pool(pool) for pool in given)


def check_signature(raw: bytes, known: SigningKeys) -> SignedElement:
    """Return the parts of a signed element whose source has signed it, or raise EventRefused."""
    signed = split_element(raw)
    source = known.get(signed.source)
    if source is None or not source.keys:
        raise bad_signature(f"no key of source {shorten(signed.source)} is known here, or none any more")
    if not verify(signed, source.keys):
        raise bad_signature(f"no signature fits a key of source {shorten(signed.source)}")
    return signed


def check_speaker(event: AnyGameEvent, signed_by: str | None, known: SigningKeys) -> AnyGameEvent:
    """Return the event if whoever signed it, or nobody, may say this; else raise EventRefused."""
    if signed_by is not None and event.source != signed_by:
        raise bad_signature(
            f"signed by source {shorten(signed_by)}, but its source is {shorten(event.source)}"
        )
    source = known.get(event.source)
    if source is None:
        return event
    if signed_by is None:
        raise bad_signature(f"source {shorten(event.source)} signs its events, and this one is not signed")
    if source.pools is not None and event.data.pool not in source.pools:
        limits = ", ".join(sorted(source.pools))
        raise bad_signature(f"source {shorten(event.source)} may speak in {limits} only")
    return event


def sign_if_known(text: bytes, event: AnyGameEvent, known: SigningKeys, at: datetime) -> bytes:
    """Return the element to push: signed where keys of the event's source are at hand, else as it is."""
    source = known.get(event.source)
    if source is None or not source.keys:
        return text
    return sign_with(source.keys, text, event_id=event.id, source=event.source, at=at)
