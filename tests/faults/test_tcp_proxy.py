"""The proxy does to a connection what it says: else tests of outages would show nothing."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from faults.fleet import wait_until
from faults.tcp_proxy import HOST, TcpProxy

NOT_AT_ONCE = 0.2


class Echo:
    """A server that answers what it is told behind its name, and remembers what it was told."""

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.heard: list[bytes] = []
        self.resets = 0
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                while said := client.recv(1 << 20):
                    self.heard.append(said)
                    client.sendall(self.name + said)
            except ConnectionResetError:
                self.resets += 1

    def close(self) -> None:
        with contextlib.suppress(OSError):  # it is closed already
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    with contextlib.closing(Echo(b"a:")) as echo:
        yield echo


@pytest.fixture
def proxy(echo: Echo) -> Iterator[TcpProxy]:
    with TcpProxy(echo.port) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: TcpProxy) -> Iterator[socket.socket]:
    with connect(proxy) as client:
        assert ask(client, b"hello") == b"a:hello"
        yield client


def connect(proxy: TcpProxy) -> socket.socket:
    client = socket.create_connection((HOST, proxy.port))
    client.settimeout(5)
    return client


def ask(client: socket.socket, said: bytes) -> bytes:
    client.sendall(said)
    return client.recv(1 << 16)


def answers_within(client: socket.socket, seconds: float) -> bool:
    client.settimeout(seconds)
    try:
        return bool(client.recv(1 << 16))
    except TimeoutError:
        return False
    finally:
        client.settimeout(5)


def test_much_passes_unchanged_in_both_directions(client: socket.socket) -> None:
    much = bytes(range(256)) * 40_000
    answer = bytearray()

    threading.Thread(target=client.sendall, args=(much,), daemon=True).start()
    while len(answer.replace(b"a:", b"")) < len(much.replace(b"a:", b"")):
        answer += client.recv(1 << 20)

    assert answer.replace(b"a:", b"") == much.replace(b"a:", b"")


def test_a_cut_connection_is_reset_at_both_ends_and_the_next_one_works(
    proxy: TcpProxy, echo: Echo, client: socket.socket
) -> None:
    proxy.cut()

    with pytest.raises(ConnectionResetError):
        client.recv(1)
    wait_until(lambda: echo.resets == 1, "the server to be reset", 5)
    with connect(proxy) as another:
        assert ask(another, b"again") == b"a:again"


def test_another_server_answers_at_the_same_address(proxy: TcpProxy, client: socket.socket) -> None:
    with contextlib.closing(Echo(b"b:")) as other:
        proxy.point_to(other.port)

        with pytest.raises(ConnectionResetError):
            client.recv(1)
        with connect(proxy) as another:
            assert ask(another, b"who?") == b"b:who?"


def test_a_server_that_is_gone_resets(proxy: TcpProxy, echo: Echo) -> None:
    echo.close()

    with connect(proxy) as client, pytest.raises(ConnectionResetError):
        client.recv(1)


def test_what_hangs_comes_through_afterwards(proxy: TcpProxy, echo: Echo, client: socket.socket) -> None:
    proxy.hang()
    client.sendall(b"1")
    with connect(proxy) as another:
        another.sendall(b"2")
        assert not answers_within(client, NOT_AT_ONCE)
        assert not answers_within(another, 0.01)
        assert echo.heard == [b"hello"]

        proxy.go_on()

        assert client.recv(10) == b"a:1"
        assert another.recv(10) == b"a:2"


def test_what_hangs_can_be_cut(proxy: TcpProxy, echo: Echo, client: socket.socket) -> None:
    proxy.hang()
    client.sendall(b"lost")

    proxy.cut()
    proxy.go_on()

    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert echo.heard == [b"hello"]


def test_delay_counts_each_way_and_holds_nothing_up(proxy: TcpProxy, client: socket.socket) -> None:
    proxy.delay(0.1)
    began = time.monotonic()

    client.sendall(b"1")
    client.sendall(b"2")
    answer = b""
    while len(answer) < len(b"a:1a:2") and answer != b"a:12":
        answer += client.recv(10)

    assert time.monotonic() - began >= 0.2
    assert answer in {b"a:12", b"a:1a:2"}
    proxy.go_on()
    began = time.monotonic()
    assert ask(client, b"3") == b"a:3"
    assert time.monotonic() - began < 0.1


def test_a_swallowed_reply_was_done_and_nobody_knows(
    proxy: TcpProxy, echo: Echo, client: socket.socket
) -> None:
    proxy.swallow_replies()

    client.sendall(b"pay")

    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert echo.heard == [b"hello", b"pay"]
    proxy.go_on()
    with connect(proxy) as another:
        assert ask(another, b"paid?") == b"a:paid?"


def test_who_says_goodbye_is_not_reset(proxy: TcpProxy, echo: Echo, client: socket.socket) -> None:
    client.shutdown(socket.SHUT_WR)

    assert client.recv(1) == b""
    assert echo.resets == 0


def test_nothing_is_left(echo: Echo) -> None:
    before = threading.active_count()
    with TcpProxy(echo.port) as proxy:
        clients = [connect(proxy) for _ in range(5)]
        assert [ask(client, b"x") for client in clients] == [b"a:x"] * 5

    for client in clients:
        client.close()
    wait_until(lambda: threading.active_count() == before, "the proxy's and the server's threads to end", 5)
