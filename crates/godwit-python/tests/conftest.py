"""Servers for the tests, and coroutines as tests."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from upstream import Upstream

#: For one test, however slow the machine is.
PATIENCE = 120.0
ROOT = Path(__file__).resolve().parent.parent


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs coroutines, each in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), PATIENCE))
    return True


class Site:
    """`godwit serve`: all three protocols in front of the upstream."""

    def __init__(self, upstream: Upstream, folder: Path, *options: str) -> None:
        program = os.environ.get("GODWIT_PROGRAM")
        if program is None:
            pytest.fail("GODWIT_PROGRAM names no program; `cargo xtask python` sets it")
        data = folder / "data"
        self.upstream = upstream
        self.authority = data / "godwit" / "ca.pem"
        command = [program, "serve", "--proxy", upstream.url, "--listen", "127.0.0.1:0", "--quiet", *options]
        with open(folder / "serve.err", "wb") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "XDG_DATA_HOME": str(data)},
            )
        self.url = self._address().replace("127.0.0.1", "localhost").rstrip("/")
        self.port = int(self.url.rsplit(":", 1)[1])

    def _address(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            words = line.split()
            if words and words[0] == "address":
                return words[1]
        raise AssertionError(f"godwit serve ended with {self.process.wait()}")

    def kill(self) -> None:
        """Ends it as no server wants to end."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture(scope="session")
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


@pytest.fixture(scope="session")
def site(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    server = Site(upstream, tmp_path_factory.mktemp("site"))
    yield server
    server.close()


@pytest.fixture
def own_site(upstream: Upstream, tmp_path: Path) -> Iterator[Site]:
    """One that a test may kill."""
    server = Site(upstream, tmp_path)
    yield server
    server.close()
