"""A proxy between one process and Redis that can hold back one message: the moment between two steps."""

import contextlib
import select
import socket
import threading
from hashlib import sha1
from typing import Self


def script_call(script: str) -> bytes:
    """Return the words that a call holds and nothing else does, be it called as a function or as a script."""
    # An argument that ends with the digest: the source that loads the function holds it in the middle.
    return sha1(script.encode()).hexdigest().encode() + b"\r\n"


class HoldingProxy:
    """Passes everything on, except the one message that it was told to hold."""

    def __init__(self, port: int) -> None:
        """Stand in front of a server on this machine."""
        self._server = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self.held = threading.Event()
        self._go = threading.Event()
        self._dropped = False
        self._request: bytes | None = None
        self._before_server = True
        self._sockets: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        self._listener.close()

    def hold_request(self, words: bytes) -> None:
        """Hold the next request with these words before the server sees it."""
        self._request, self._before_server = words, True

    def hold_reply(self, words: bytes) -> None:
        """Hold the reply to the next request with these words: the server has done it, nobody knows."""
        self._request, self._before_server = words, False

    def let_go(self) -> None:
        """Pass the held message on, however late."""
        self._go.set()

    def drop(self) -> None:
        """Lose the held message, if there is one, with its connection."""
        self._dropped = True
        self._go.set()

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was shut down
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(self._server) as server:
            reply_is_next = False
            while True:
                for speaker in select.select([client, server], [], [])[0]:
                    said = speaker.recv(1 << 20)
                    if not said:
                        return
                    meant = speaker is client and self._request is not None and self._request in said
                    if meant:
                        self._request = None
                        reply_is_next = not self._before_server
                    if (meant and self._before_server) or (speaker is server and reply_is_next):
                        reply_is_next = False
                        self.held.set()
                        self._go.wait()
                        if self._dropped:
                            return
                    (server if speaker is client else client).sendall(said)
