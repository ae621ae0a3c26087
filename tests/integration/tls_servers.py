"""Certificates of a throwaway authority, and servers that speak TLS with them."""

import socket
import subprocess
import time
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

GOOD, OF_ANOTHER_HOST, EXPIRED = "good", "of_another_host", "expired"


def openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)


class Authority:
    """A certificate authority nobody else trusts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.certificate = folder / "ca.pem"
        self.key = folder / "ca.key"
        new_key = ("-newkey", "rsa:2048", "-nodes", "-keyout", str(self.key))
        openssl(
            "req", "-x509", *new_key, "-out", str(self.certificate), "-subj", "/CN=throwaway", "-days", "2"
        )

    def issue(self, name: str, addresses: str, days: int = 2) -> tuple[Path, Path]:
        """Return a certificate and its key."""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={addresses}\n")
        new_key = ("-newkey", "rsa:2048", "-nodes", "-keyout", str(key))
        openssl("req", *new_key, "-out", str(request), "-subj", "/CN=server")
        signed_by = ("-CA", str(self.certificate), "-CAkey", str(self.key), "-CAcreateserial")
        files = ("-in", str(request), "-out", str(certificate), "-extfile", str(extensions))
        openssl("x509", "-req", *signed_by, *files, "-days", str(days))
        key.chmod(0o600)
        return certificate, key

    def issue_all(self) -> dict[str, tuple[Path, Path]]:
        """Return what is right for this machine, and what is wrong with each of the others."""
        here = "DNS:localhost,IP:127.0.0.1"
        return {
            GOOD: self.issue(GOOD, here),
            OF_ANOTHER_HOST: self.issue(OF_ANOTHER_HOST, "DNS:elsewhere.example"),
            EXPIRED: self.issue(EXPIRED, here, days=-1),
        }


class TlsRedis:
    """A Redis that speaks nothing but TLS."""

    def __init__(self, authority: Authority, certificate: tuple[Path, Path]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        files = {
            "--tls-cert-file": certificate[0],
            "--tls-key-file": certificate[1],
            "--tls-ca-cert-file": authority.certificate,
            "--dir": certificate[0].parent,
        }
        options = [str(word) for pair in files.items() for word in pair]
        options += ["--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", "no", "--save", ""]
        self.process = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
        self.url = f"rediss://127.0.0.1:{self.port}/0"
        deadline = time.monotonic() + 20
        while not self.answers():
            assert self.process.poll() is None, "redis-server ended at once"
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.02)

    def answers(self) -> bool:
        unverified = f"{self.url}?ssl_cert_reqs=none&ssl_check_hostname=false"
        with redis.Redis.from_url(unverified, retry=Retry(NoBackoff(), 0)) as client:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                return False

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
