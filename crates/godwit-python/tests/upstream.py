"""What stands behind `godwit serve` in the tests: an HTTP/1.1 server that does what its paths say."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


class Handler(BaseHTTPRequestHandler):
    """/ is a page, /echo gives the body back, /about says in JSON what came, /size/N has N bytes, /status/N is N,
    /redirect/N leads on N times, /stall sends a beginning and then waits, /never sends nothing, /deaf does not read
    either, /lines is text.
    """

    protocol_version = "HTTP/1.1"
    server: Server

    def handle_one(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/deaf":
            self.server.listening.wait()
        body = self._body()
        name, _, rest = address.path.lstrip("/").partition("/")
        if name == "":
            self._answer(200, b"a page\n", {"content-type": "text/plain"})
        elif name == "echo":
            self._answer(200, body, {"content-type": self.headers.get("content-type", "application/octet-stream")})
        elif name == "about":
            about = {
                "method": self.command,
                "query": parse_qsl(address.query, keep_blank_values=True),
                "headers": [[key.lower(), value] for key, value in self.headers.items()],
                "length": len(body),
                "body": body[:1000].decode("latin-1"),
            }
            self._answer(200, json.dumps(about).encode(), {"content-type": "application/json"})
        elif name == "size":
            self._answer(200, bytes(range(256)) * (int(rest) // 256) + bytes(int(rest) % 256), {})
        elif name == "status":
            self._answer(int(rest), b"as you wish\n", {"content-type": "text/plain"})
        elif name == "redirect":
            to = f"/redirect/{int(rest) - 1}" if int(rest) > 1 else "/about"
            self._answer(302, b"", {"location": to})
        elif name == "lines":
            self._answer(200, "first\nzweite – Zeile\r\nlast".encode(), {"content-type": "text/plain; charset=utf-8"})
        elif name == "latin":
            self._answer(200, "für".encode("latin-1"), {"content-type": "text/plain; charset=iso-8859-1"})
        elif name in ("stall", "never"):
            self._wait(name == "stall", address.query)
        elif name == "cookies":
            self.send_response(200)
            self.send_header("set-cookie", "a=1")
            self.send_header("set-cookie", "b=2")
            self.send_header("content-length", "0")
            self.end_headers()
        else:
            self._answer(404, b"no such page\n", {"content-type": "text/plain"})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = handle_one

    def _wait(self, begin: bool, who: str) -> None:
        if begin:
            self.send_response(200)
            self.send_header("content-length", "1000000")
            self.end_headers()
            self.wfile.write(b"beginning")
            self.wfile.flush()
        self.server.note(self.server.waiting, who)
        # Until the one who asked is gone: then there is nothing more to read from the connection.
        if not self.rfile.read(1):
            self.server.note(self.server.gone, who)
        self.close_connection = True

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        pieces = []
        while length := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(length))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """The tests say what matters."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.counting = threading.Condition()
        #: The queries of requests that have begun to wait, and of those whose client went.
        self.waiting: set[str] = set()
        self.gone: set[str] = set()
        #: When /deaf reads after all.
        self.listening = threading.Event()

    def note(self, where: set[str], who: str) -> None:
        with self.counting:
            where.add(who)
            self.counting.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go are what some tests are about."""


class Upstream:
    """Such a server on threads of its own."""

    def __init__(self) -> None:
        self.server = Server()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def wait_until_waiting(self, who: str) -> bool:
        """Whether the request with this query has come."""
        return self._wait_for(self.server.waiting, who)

    def wait_until_gone(self, who: str) -> bool:
        """Whether the client with this query has gone."""
        return self._wait_for(self.server.gone, who)

    def _wait_for(self, where: set[str], who: str) -> bool:
        with self.server.counting:
            return self.server.counting.wait_for(lambda: who in where, timeout=60)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
