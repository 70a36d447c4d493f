"""An upstream for a reverse proxy, in Python: HTTP/1.1 with everything that tests ask of it.

usage: upstream.py [--listen ADDR:PORT]

It prints `listening ADDR:PORT` when it does. `peers/README.md` says what its paths answer; `peers/node/upstream.mjs`
answers the same.
"""

import argparse
import asyncio
import gzip
import hashlib
import json
from urllib.parse import parse_qs, urlsplit

import h11
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    Request,
    TextMessage,
)

CHUNK = 64 << 10
# Its length is a prime: whatever is lost, doubled or out of order shows.
PATTERN = bytes((index * 31 + (index >> 8) * 7) & 0xFF for index in range(65521))
TEXT = b"".join(b"line %d of a text that compresses well\n" % line for line in range(3000))


def pattern(length):
    """`length` bytes that are the same every time, in pieces."""
    at = 0
    while at < length:
        start = at % len(PATTERN)
        piece = PATTERN[start : start + min(CHUNK, length - at)]
        yield piece
        at += len(piece)


class State:
    """What outlives a connection: how uploads and downloads ended, and which events were acknowledged."""

    def __init__(self):
        self.ends = {}
        self.acks = {}

    def ack(self, name):
        return self.acks.setdefault(name, asyncio.Event())


class Gone(Exception):
    """The client is no longer there."""


class Exchange:
    """One request and its response."""

    def __init__(self, connection, request):
        self.connection = connection
        self.method = request.method.decode()
        self.target = request.target.decode("latin-1")
        self.headers = [(name.decode(), value.decode("latin-1")) for name, value in request.headers]
        url = urlsplit(self.target)
        self.path = url.path
        self.query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.trailers = []

    def header(self, name):
        return next((value for known, value in self.headers if known == name), None)

    async def body(self):
        """The request's content, in pieces; at its end `trailers` is known."""
        while True:
            event = await self.connection.next_event()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self.trailers = [(n.decode(), v.decode("latin-1")) for n, v in event.headers]
                return
            else:
                raise Gone

    async def digest(self):
        digest, length = hashlib.sha256(), 0
        async for piece in self.body():
            digest.update(piece)
            length += len(piece)
        return digest.hexdigest(), length

    async def begin(self, status, headers=()):
        await self.connection.send(h11.Response(status_code=status, headers=list(headers)))

    async def piece(self, data):
        if self.method != "HEAD":
            await self.connection.send(h11.Data(data=data))

    async def end(self, trailers=()):
        await self.connection.send(h11.EndOfMessage(headers=list(trailers)))

    async def answer(self, status, body=b"", headers=(), kind="text/plain"):
        length = [("content-length", str(len(body)))] if status not in (204, 304) else []
        await self.begin(status, [("content-type", kind), *length, *headers])
        if body and status not in (204, 304):
            await self.piece(body)
        await self.end()

    async def json(self, value):
        await self.answer(200, json.dumps(value).encode(), kind="application/json")


class Connection:
    def __init__(self, reader, writer, state):
        self.reader, self.writer, self.state = reader, writer, state
        self.http = h11.Connection(h11.SERVER, max_incomplete_event_size=256 << 10)

    async def next_event(self):
        while True:
            event = self.http.next_event()
            if event is h11.NEED_DATA:
                if self.http.they_are_waiting_for_100_continue:
                    await self.send(h11.InformationalResponse(status_code=100, headers=[]))
                try:
                    self.http.receive_data(await self.reader.read(256 << 10))
                except ConnectionError:
                    raise Gone from None
                continue
            return event

    async def send(self, event):
        data = self.http.send(event)
        if data:
            self.writer.write(data)
            try:
                await self.writer.drain()
            except ConnectionError:
                raise Gone from None

    async def run(self):
        try:
            while True:
                event = await self.next_event()
                if not isinstance(event, h11.Request):
                    return
                exchange = Exchange(self, event)
                if exchange.path == "/ws" and (exchange.header("upgrade") or "").lower() == "websocket":
                    await self.websocket(event)
                    return
                await answer(exchange, self.state)
                if self.http.our_state is h11.MUST_CLOSE:
                    return
                if self.http.they_are_waiting_for_100_continue:
                    return
                while self.http.their_state is not h11.DONE:
                    if isinstance(await self.next_event(), (h11.ConnectionClosed, h11.EndOfMessage)):
                        break
                self.http.start_next_cycle()
        except (Gone, h11.ProtocolError, ConnectionError):
            pass
        finally:
            self.writer.close()

    async def websocket(self, request):
        socket = WSConnection(ConnectionType.SERVER)
        socket.initiate_upgrade_connection(request.headers, request.target.decode())
        left, _ = self.http.trailing_data
        if left:
            socket.receive_data(left)
        messages = []
        while True:
            for event in socket.events():
                if isinstance(event, Request):
                    chosen = "echo" if "echo" in event.subprotocols else None
                    self.writer.write(socket.send(AcceptConnection(subprotocol=chosen)))
                elif isinstance(event, (TextMessage, BytesMessage)):
                    messages.append(event.data)
                    if event.message_finished:
                        whole = ("" if isinstance(event, TextMessage) else b"").join(messages)
                        messages.clear()
                        kind = TextMessage if isinstance(event, TextMessage) else BytesMessage
                        self.writer.write(socket.send(kind(data=whole)))
                elif isinstance(event, Ping):
                    self.writer.write(socket.send(event.response()))
                elif isinstance(event, CloseConnection):
                    self.writer.write(socket.send(event.response()))
                    await self.writer.drain()
                    return
            await self.writer.drain()
            data = await self.reader.read(256 << 10)
            socket.receive_data(data or None)
            if not data:
                return


async def answer(exchange, state):
    first, _, rest = exchange.path.lstrip("/").partition("/")
    handler = PATHS.get(first)
    if handler is None:
        await exchange.answer(404, b"no such path\n")
    else:
        await handler(exchange, state, rest)


async def anything(exchange, _state, _rest):
    sha256, length = await exchange.digest()
    await exchange.json(
        {
            "method": exchange.method,
            "target": exchange.target,
            "headers": exchange.headers,
            "length": length,
            "sha256": sha256,
            "trailers": exchange.trailers,
        }
    )


async def send_bytes(exchange, _state, rest):
    await exchange.begin(200, [("content-type", "application/octet-stream"), ("content-length", rest)])
    for piece in pattern(int(rest)) if exchange.method != "HEAD" else ():
        await exchange.piece(piece)
    await exchange.end()


async def chunked(exchange, _state, rest):
    await exchange.begin(200, [("content-type", "application/octet-stream")])
    for piece in pattern(int(rest)):
        await exchange.piece(piece)
    await exchange.end()


async def trailers(exchange, _state, _rest):
    body = b"a body with trailers\n"
    await exchange.begin(200, [("content-type", "text/plain"), ("trailer", "x-checksum, x-second")])
    await exchange.piece(body)
    checksum = hashlib.sha256(body).hexdigest()
    await exchange.end([("x-checksum", checksum), ("x-second", "2")])


async def redirect(exchange, _state, rest):
    left = int(rest)
    place = f"/redirect/{left - 1}" if left > 1 else "/anything"
    await exchange.answer(302, headers=[("location", place)])


async def status(exchange, _state, rest):
    await exchange.answer(int(rest), b"" if rest in ("204", "304") else b"as you like\n")


async def reject(exchange, _state, _rest):
    await exchange.answer(413, b"too much\n", [("connection", "close")])


async def events(exchange, state, rest):
    count = int(exchange.query.get("n", "5"))
    await exchange.begin(200, [("content-type", "text/event-stream"), ("cache-control", "no-cache")])
    for number in range(count):
        await exchange.piece(f"id: {number}\ndata: event {number}\n\n".encode())
        # The next one goes out only when somebody says that this one has come.
        await state.ack(f"{rest}/{number}").wait()
    await exchange.end()


async def ack(exchange, state, rest):
    state.ack(rest).set()
    await exchange.answer(204)


async def upload(exchange, state, rest):
    state.ends[rest] = "begun"
    try:
        _, length = await exchange.digest()
    except (Gone, h11.RemoteProtocolError):
        state.ends[rest] = "aborted"
        raise
    state.ends[rest] = "whole"
    await exchange.json({"length": length})


async def endless(exchange, state, rest):
    state.ends[rest] = "begun"
    await exchange.begin(200, [("content-type", "application/octet-stream")])
    try:
        while True:
            await exchange.piece(PATTERN)
    except (Gone, ConnectionError):
        state.ends[rest] = "aborted"
        raise


async def ended(exchange, state, rest):
    await exchange.json({"state": state.ends.get(rest, "none")})


async def delay(exchange, _state, rest):
    await asyncio.sleep(int(rest) / 1000)
    await exchange.answer(200, b"late\n")


async def hints(exchange, _state, _rest):
    early = h11.InformationalResponse(status_code=103, headers=[("link", "</style.css>; rel=preload")])
    await exchange.connection.send(early)
    await exchange.answer(200, b"hinted\n")


async def cookies(exchange, _state, _rest):
    await exchange.answer(200, headers=[("set-cookie", "a=1"), ("set-cookie", "b=2; Path=/")])


async def text(exchange, _state, _rest):
    await exchange.answer(200, TEXT, [("etag", '"text"')])


async def gzipped(exchange, _state, _rest):
    await exchange.answer(200, gzip.compress(TEXT), [("content-encoding", "gzip")])


async def etag(exchange, _state, _rest):
    unchanged = exchange.header("if-none-match") == '"one"'
    await exchange.answer(304 if unchanged else 200, b"" if unchanged else b"one\n", [("etag", '"one"')])


async def broken(exchange, _state, _rest):
    await exchange.begin(200, [("content-type", "text/plain"), ("content-length", "1000")])
    await exchange.piece(b"only this")
    raise Gone


async def close(_exchange, _state, _rest):
    raise Gone


async def many(exchange, _state, rest):
    count = int(rest)
    await exchange.answer(200, b"many\n", [(f"x-header-{index}", "v" * 100) for index in range(count)])


async def page(exchange, _state, _rest):
    await exchange.answer(200, b"<!doctype html><title>upstream</title><p>a page\n", kind="text/html")


PATHS = {
    "": page,
    "ack": ack,
    "anything": anything,
    "bytes": send_bytes,
    "broken": broken,
    "chunked": chunked,
    "close": close,
    "cookies": cookies,
    "delay": delay,
    "ended": ended,
    "endless": endless,
    "etag": etag,
    "events": events,
    "gzip": gzipped,
    "headers": many,
    "hints": hints,
    "redirect": redirect,
    "reject": reject,
    "status": status,
    "text": text,
    "trailers": trailers,
    "upload": upload,
}


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="127.0.0.1:0")
    host, _, port = parser.parse_args().listen.rpartition(":")
    state = State()
    server = await asyncio.start_server(
        lambda reader, writer: Connection(reader, writer, state).run(), host, int(port), backlog=4096
    )
    address = server.sockets[0].getsockname()
    print(f"listening {address[0]}:{address[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
