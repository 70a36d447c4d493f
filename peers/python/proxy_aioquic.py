"""aioquic as an HTTP/3 client of a reverse proxy, for what other clients cannot do: trailers of requests, WebSockets
over HTTP/3 (RFC 9220), streams that are reset.

usage: proxy_aioquic.py --url https://localhost:PORT --ca PEM [--size BYTES]

It prints `ok NAME` or `FAILED NAME: why` for each check, and ends with 1 if any failed.
"""

import argparse
import asyncio
import functools
import hashlib
import json
import sys
import uuid
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset
from wsproto import ConnectionType
from wsproto.connection import Connection as WebSocket
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage

from checks import Failed, Suite, expect, same

PATIENCE = 60
SEND_BUFFER = 1 << 20


class Stream:
    """What has come on one stream."""

    def __init__(self, client, stream_id):
        self.client, self.id = client, stream_id
        self.events = asyncio.Queue()
        self.head, self.trailers = None, None

    async def event(self):
        async with asyncio.timeout(PATIENCE):
            event = await self.events.get()
        if isinstance(event, Exception):
            raise event
        return event

    async def status(self):
        while self.head is None:
            event = await self.event()
            if isinstance(event, HeadersReceived):
                self.head = [(name.decode(), value.decode("latin-1")) for name, value in event.headers]
                self.ended = event.stream_ended
        return int(dict(self.head)[":status"])

    async def pieces(self):
        """The body, in pieces; at its end `trailers` is known."""
        await self.status()
        while not self.ended:
            event = await self.event()
            self.ended = event.stream_ended
            if isinstance(event, DataReceived):
                yield event.data
            else:
                self.trailers = {name.decode(): value.decode() for name, value in event.headers}

    async def answer(self):
        answer = Answer()
        async for piece in self.pieces():
            answer.length += len(piece)
            answer.digest.update(piece)
            if len(answer.start) < 1 << 20:
                answer.start += piece
        answer.status = await self.status()
        return answer

    async def send(self, data, end=False):
        """Sends content, no faster than the peer takes it."""
        quic = self.client._quic
        while len(quic._streams[self.id].sender._buffer) > SEND_BUFFER:
            if quic._streams[self.id].sender._reset_error_code is not None:
                raise Failed("the proxy does not want the body")
            await asyncio.sleep(0.001)
        self.client.http.send_data(self.id, data, end_stream=end)
        self.client.transmit()

    def send_trailers(self, trailers):
        self.client.http.send_headers(self.id, trailers, end_stream=True)
        self.client.transmit()

    def reset(self):
        self.client._quic.reset_stream(self.id, ErrorCode.H3_REQUEST_CANCELLED)
        self.client._quic.stop_stream(self.id, ErrorCode.H3_REQUEST_CANCELLED)
        self.client.transmit()


class Answer:
    def __init__(self):
        self.status, self.length, self.start, self.digest = None, 0, b"", hashlib.sha256()

    def json(self):
        return json.loads(self.start)


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments, authority, **named):
        super().__init__(*arguments, **named)
        self.authority = authority.encode()
        self.http = H3Connection(self._quic)
        self.streams = {}

    def quic_event_received(self, event):
        if isinstance(event, StreamReset) and event.stream_id in self.streams:
            error = ConnectionResetError(f"stream reset with {event.error_code:#x}")
            self.streams[event.stream_id].events.put_nowait(error)
        elif isinstance(event, ConnectionTerminated):
            for stream in self.streams.values():
                stream.events.put_nowait(ConnectionError(f"connection ended: {event.reason_phrase}"))
        for received in self.http.handle_event(event):
            if stream := self.streams.get(received.stream_id):
                stream.events.put_nowait(received)

    def request(self, path, method="GET", headers=(), end=True, protocol=None):
        stream = Stream(self, self._quic.get_next_available_stream_id())
        self.streams[stream.id] = stream
        fields = [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", self.authority),
            (b":path", path.encode()),
            *([(b":protocol", protocol.encode())] if protocol else []),
            *((name.encode(), value.encode()) for name, value in headers),
        ]
        self.http.send_headers(stream.id, fields, end_stream=end)
        self.transmit()
        return stream

    async def ask(self, path, method="GET", headers=(), body=None):
        stream = self.request(path, method, headers, end=body is None)
        if body is not None:
            await stream.send(body, end=True)
        return await stream.answer()

    async def wait_for(self, name, state):
        seen = None
        for _ in range(300):
            seen = (await self.ask(f"/ended/{name}")).json()["state"]
            if seen == state:
                return
            await asyncio.sleep(0.1)
        raise Failed(f"{name} is {seen}, not {state}")


async def methods(client, _options):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        body = b"x" * 10 if method.startswith("P") else None
        echo = (await client.ask("/anything?q=1", method, body=body)).json()
        expect("the method that arrived", echo["method"], method)
        expect("the length that arrived", echo["length"], len(body or b""))


async def a_large_body_down(client, options):
    same("the body", await client.ask(f"/bytes/{options.size}"), options.size)


async def a_large_body_up(client, options):
    stream = client.request("/anything", "POST", end=False)
    digest, piece = hashlib.sha256(), bytes(range(256)) * 256
    for _ in range(options.size // len(piece)):
        digest.update(piece)
        await stream.send(piece)
    await stream.send(b"", end=True)
    expect("the hash", (await stream.answer()).json()["sha256"], digest.hexdigest())


async def trailers_both_ways(client, _options):
    stream = client.request("/anything", "POST", [("trailer", "x-sum"), ("te", "trailers")], end=False)
    await stream.send(b"content")
    stream.send_trailers([(b"x-sum", b"7")])
    echo = (await stream.answer()).json()
    expect("the length", echo["length"], 7)
    expect("the trailers that arrived", echo["trailers"], [["x-sum", "7"]])
    stream = client.request("/trailers", headers=[("te", "trailers")])
    answer = await stream.answer()
    expect("the trailers of the response", stream.trailers, {"x-checksum": answer.digest.hexdigest(), "x-second": "2"})


async def cookies_in_several_fields_are_one(client, _options):
    fields = (await client.ask("/anything", headers=[("cookie", "a=1"), ("cookie", "b=2")])).json()["headers"]
    expect("cookie", [value for name, value in fields if name == "cookie"], ["a=1; b=2"])


async def content_flows_while_the_response_does(client, _options):
    """A request's body goes on while events come: neither way waits for the other."""
    name = uuid.uuid4().hex
    stream = client.request(f"/events/{name}?n=3")
    seen = b""
    async for piece in stream.pieces():
        seen += piece
        for line in piece.decode().splitlines():
            if line.startswith("id: "):
                expect("an acknowledgement", (await client.ask(f"/ack/{name}/{line[4:]}")).status, 204)
    expect("the events", seen.count(b"data: event"), 3)


async def a_rejected_body(client, _options):
    stream = client.request("/reject", "POST", [("expect", "100-continue"), ("content-length", "50000000")], end=False)
    expect("the status", await stream.status(), 413)
    stream.reset()


async def an_aborted_upload_reaches_the_upstream(client, _options):
    name = uuid.uuid4().hex
    stream = client.request(f"/upload/{name}", "POST", [("content-length", "10000000")], end=False)
    await stream.send(bytes(1 << 20))
    await client.wait_for(name, "begun")
    stream.reset()
    await client.wait_for(name, "aborted")


async def an_upload_that_ends_early_reaches_the_upstream(client, _options):
    """A FIN before the announced length is a malformed request: the upstream must not take it for whole."""
    name = uuid.uuid4().hex
    stream = client.request(f"/upload/{name}", "POST", [("content-length", "10000000")], end=False)
    await stream.send(bytes(1 << 16))
    await client.wait_for(name, "begun")
    await stream.send(b"", end=True)
    await client.wait_for(name, "aborted")


async def an_aborted_download_reaches_the_upstream(client, _options):
    name = uuid.uuid4().hex
    stream = client.request(f"/endless/{name}")
    length = 0
    async for piece in stream.pieces():
        length += len(piece)
        if length > 1 << 20:
            stream.reset()
            break
    await client.wait_for(name, "aborted")


async def a_broken_response_is_an_error(client, _options):
    try:
        answer = await client.ask("/broken")
    except ConnectionResetError:
        return
    raise Failed(f"a response that broke off was taken for whole: {answer.length} bytes")


async def a_websocket(client, _options):
    headers = [("sec-websocket-version", "13"), ("sec-websocket-protocol", "echo, other"), ("origin", "https://localhost")]
    stream = client.request("/ws", "CONNECT", headers, end=False, protocol="websocket")
    expect("the status", await stream.status(), 200)
    expect("the protocol", dict(stream.head).get("sec-websocket-protocol"), "echo")
    socket = WebSocket(ConnectionType.CLIENT)

    async def until(wanted):
        text, parts = None, []
        while True:
            for event in socket.events():
                if isinstance(event, (TextMessage, BytesMessage)):
                    parts.append(event.data)
                    if not event.message_finished:
                        continue
                    text = ("" if isinstance(event, TextMessage) else b"").join(parts)
                    parts = []
                if isinstance(event, wanted) and (parts == []):
                    return text if wanted in (TextMessage, BytesMessage) else event
            event = await stream.event()
            stream.ended = event.stream_ended
            socket.receive_data(event.data)

    await stream.send(socket.send(TextMessage(data="grüße")))
    expect("a text", await until(TextMessage), "grüße")
    large = bytes(range(256)) * 8192
    await stream.send(socket.send(BytesMessage(data=large)))
    expect("two megabytes", hashlib.sha256(await until(BytesMessage)).digest(), hashlib.sha256(large).digest())
    await stream.send(socket.send(Ping(payload=b"p")))
    expect("a pong", bytes((await until(Pong)).payload), b"p")
    await stream.send(socket.send(CloseConnection(code=1000)), end=True)
    expect("the close", (await until(CloseConnection)).code, 1000)
    # The end comes with the close or after it.
    while not stream.ended:
        stream.ended = (await stream.event()).stream_ended


async def a_websocket_nobody_takes(client, _options):
    stream = client.request("/anything", "CONNECT", [("sec-websocket-version", "13")], end=False, protocol="websocket")
    status = await stream.status()
    if 200 <= status < 300:
        raise Failed(f"a WebSocket that the upstream did not take was opened with {status}")
    stream.reset()


async def a_hundred_at_once(client, _options):
    answers = await asyncio.gather(*(client.ask(f"/bytes/{1000 + number}") for number in range(100)))
    for number, answer in enumerate(answers):
        same("an answer", answer, 1000 + number)


CHECKS = [
    methods,
    a_large_body_down,
    a_large_body_up,
    trailers_both_ways,
    cookies_in_several_fields_are_one,
    content_flows_while_the_response_does,
    a_rejected_body,
    an_aborted_upload_reaches_the_upstream,
    an_upload_that_ends_early_reaches_the_upstream,
    an_aborted_download_reaches_the_upstream,
    a_broken_response_is_an_error,
    a_websocket,
    a_websocket_nobody_takes,
    a_hundred_at_once,
]


async def run(check, options):
    url = urlsplit(options.url)
    settings = QuicConfiguration(
        is_client=True,
        alpn_protocols=H3_ALPN,
        server_name=url.hostname,
        idle_timeout=60.0,
        max_stream_data=16 << 20,
        max_data=32 << 20,
    )
    settings.load_verify_locations(options.ca)
    create = functools.partial(Client, authority=url.netloc)
    async with connect("127.0.0.1", url.port, configuration=settings, create_protocol=create) as client:
        await check(client, options)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--size", type=int, default=8 << 20)
    options = parser.parse_args()
    suite = Suite()
    for check in CHECKS:
        suite.add(check.__name__, lambda check=check: asyncio.run(run(check, options)))
    sys.exit(suite.run())


if __name__ == "__main__":
    main()
