"""The signing keys in force: they follow their file, so that a key can be revoked without a restart."""

import math
import time
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from petard_worker.signing_keys import NO_KEYS, BadSigningKeysError, SigningKeys, read_signing_keys

log = structlog.get_logger()

LOOK_SECONDS = 1.0


@dataclass
class Keyring:
    """The keys by which events are judged, one for all drains of a process."""

    keys: SigningKeys = field(default_factory=lambda: NO_KEYS, repr=False)
    """Another object whenever they are others."""
    file: Path | None = None
    """Where they come from, if they come from a file."""
    look_seconds: float = LOOK_SECONDS
    _content: bytes | None = field(default=None, init=False, repr=False)
    _problem: str | None = field(default=None, init=False, repr=False)
    _next_look: float = field(default=-math.inf, init=False, repr=False)

    def look_again(self) -> None:
        """Take over what has changed in the file, at most once a second.

        It is read and not only looked at: it is small, and a second change within one tick of the file
        system's clock would not show. A file that is broken or gone changes nothing and is logged once.
        """
        if self.file is None or (now := time.monotonic()) < self._next_look:
            return
        self._next_look = now + self.look_seconds
        try:
            content = self.file.read_bytes()
            if content == self._content:
                return
            keys = read_signing_keys(content.decode().strip())
        except OSError as error:
            self.keep(f"{error.strerror}: {error.filename}")
        except UnicodeDecodeError:
            self.keep("is not UTF-8")
        except BadSigningKeysError as error:
            self.keep(str(error))
        else:
            if self._content is not None or self._problem is not None:
                log.info("signing_keys_changed", file=str(self.file), sources=len(keys))
            self.keys, self._content, self._problem = keys, content, None

    def keep(self, problem: str) -> None:
        """Say once why the keys stay what they are."""
        self._content = None  # what was good before is read again, and said to be
        if problem != self._problem:
            log.error("signing_keys_unusable", file=str(self.file), reason=problem, kept=len(self.keys))
        self._problem = problem
