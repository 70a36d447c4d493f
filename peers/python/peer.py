"""aioquic as a peer to test against.

Its face is the same as that of every other peer program; peers/README.md describes it.
"""

import argparse
import asyncio
import functools
import hashlib
import ipaddress
import json
import pathlib
import re
import ssl
import sys
import time
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import (
    ConnectionTerminated,
    StopSendingReceived,
    StreamDataReceived,
    StreamReset,
)

HQ_ALPN = ["hq-interop"]
PERF_ALPN = ["perf"]
CHUNK = 64 << 10
# aioquic takes whatever it is given; a sender here waits while more than this is not acknowledged.
SEND_BUFFER = 1 << 20


def configuration(is_client, alpn):
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=alpn,
        idle_timeout=60.0,
        max_stream_data=16 << 20,
        max_data=32 << 20,
    )


# Files ---------------------------------------------------------------------------------------------------


def read_file(root, path):
    """The bytes that a path means, index.html for a folder; None if there is no such file."""
    root = pathlib.Path(root).resolve()
    file = (root / path.lstrip("/")).resolve()
    if file.is_dir():
        file = file / "index.html"
    if not file.is_relative_to(root) or not file.is_file():
        return None
    return file.read_bytes()


def byte_range(value, size):
    """First and last byte of a Range header; None if there is no range to serve."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", value or "")
    if not match or match.group(0) == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        first, last = max(0, size - int(last)), size - 1
    first, last = int(first), min(int(last) if last != "" else size - 1, size - 1)
    return (first, last) if first <= last else None


# Servers -------------------------------------------------------------------------------------------------


class Server(QuicConnectionProtocol):
    """What the three servers share: sending no faster than the peer takes."""

    def __init__(self, *arguments, root=None, **named):
        super().__init__(*arguments, **named)
        self.root = root
        self.stopped = set()
        self.tasks = set()

    def start(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def quic_event_received(self, event):
        if isinstance(event, (StopSendingReceived, StreamReset)):
            self.stopped.add(event.stream_id)
        elif isinstance(event, ConnectionTerminated):
            for task in self.tasks:
                task.cancel()
        else:
            self.on_event(event)

    async def has_room(self, stream_id):
        """Waits until a stream may be given more; False once the peer does not want it any longer."""
        while stream_id not in self.stopped:
            stream = self._quic._streams.get(stream_id)
            if stream is None:
                return False
            if len(stream.sender._buffer) < SEND_BUFFER:
                return True
            await asyncio.sleep(0.001)
        return False


class H3Server(Server):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = H3Connection(self._quic)

    def on_event(self, event):
        for http_event in self.http.handle_event(event):
            if isinstance(http_event, HeadersReceived):
                headers = {name.decode(): value.decode() for name, value in http_event.headers}
                self.start(self.answer(http_event.stream_id, headers))

    async def answer(self, stream_id, headers):
        body, status, extra = read_file(self.root, headers[":path"]), 200, []
        if body is None:
            body, status = b"not found\n", 404
        elif bounds := byte_range(headers.get("range"), len(body)):
            first, last = bounds
            extra = [(b"content-range", f"bytes {first}-{last}/{len(body)}".encode())]
            body, status = body[first : last + 1], 206
        no_body = headers[":method"] == "HEAD" or not body
        self.http.send_headers(
            stream_id,
            [(b":status", str(status).encode()), (b"content-length", str(len(body)).encode()), *extra],
            end_stream=no_body,
        )
        self.transmit()
        for start in range(0, 0 if no_body else len(body), CHUNK):
            if not await self.has_room(stream_id):
                return
            chunk = body[start : start + CHUNK]
            self.http.send_data(stream_id, chunk, end_stream=start + CHUNK >= len(body))
            self.transmit()


class StreamServer(Server):
    """A server that answers each stream by itself, once all of it is there."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.heads = {}

    def on_event(self, event):
        if isinstance(event, StreamDataReceived) and event.stream_id % 4 == 0:
            head = self.heads.setdefault(event.stream_id, bytearray())
            head += event.data[: 4096 - len(head)]
            if event.end_stream:
                self.start(self.answer(event.stream_id, bytes(self.heads.pop(event.stream_id))))

    async def send(self, stream_id, chunks):
        for chunk in chunks:
            if not await self.has_room(stream_id):
                return
            self._quic.send_stream_data(stream_id, chunk)
            self.transmit()
        self._quic.send_stream_data(stream_id, b"", end_stream=True)
        self.transmit()


class HqServer(StreamServer):
    async def answer(self, stream_id, request):
        method, _, path = request.decode().rstrip().partition(" ")
        body = read_file(self.root, path) if method == "GET" else None
        if body is None:
            self._quic.reset_stream(stream_id, 404)
            self.transmit()
            return
        await self.send(stream_id, (body[at : at + CHUNK] for at in range(0, len(body), CHUNK)))


class PerfServer(StreamServer):
    async def answer(self, stream_id, request):
        await self.send(stream_id, zeros(int.from_bytes(request[:8], "big")))


def zeros(left):
    chunk = bytes(CHUNK)
    while left > 0:
        yield chunk[: min(left, CHUNK)]
        left -= CHUNK


async def run_server(options, alpn, protocol):
    settings = configuration(False, alpn)
    settings.load_cert_chain(options.cert, options.key)
    host, _, port = options.listen.rpartition(":")
    create = functools.partial(protocol, root=getattr(options, "root", None))
    server = await serve(host.strip("[]"), int(port), configuration=settings, create_protocol=create)
    host, port = server._transport.get_extra_info("sockname")[:2]
    print(f"listening [{host}]:{port}" if ":" in host else f"listening {host}:{port}", flush=True)
    await asyncio.Future()


# Clients -------------------------------------------------------------------------------------------------


class Answer:
    """What a client notes of one response."""

    def __init__(self, path, out):
        self.path, self.status, self.declared, self.size = path, "-", "-", 0
        self.hash = hashlib.sha256()
        name = path.rsplit("/", 1)[-1] or "index.html"
        self.file = open(pathlib.Path(out) / name, "wb") if out else None
        self.done = asyncio.get_running_loop().create_future()

    def add(self, data, end):
        self.size += len(data)
        self.hash.update(data)
        if self.file:
            self.file.write(data)
        if end:
            if self.file:
                self.file.close()
            self.finish(None)

    def finish(self, error):
        if self.done.done():
            return
        if error:
            self.done.set_exception(error)
        else:
            self.done.set_result(f"{self.status} {self.size} {self.hash.hexdigest()} {self.declared} {self.path}")


class Client(QuicConnectionProtocol):
    """What the clients share: answers by stream, all of which fail with the connection."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.answers = {}

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            why = event.reason_phrase or f"error {event.error_code}"
            for answer in self.answers.values():
                answer.finish(ConnectionError(f"the connection ended: {why}"))
        elif isinstance(event, StreamReset) and event.stream_id in self.answers:
            self.answers[event.stream_id].finish(ConnectionError(f"reset with code {event.error_code}"))
        else:
            self.on_event(event)

    def on_event(self, event):
        if isinstance(event, StreamDataReceived) and event.stream_id in self.answers:
            self.answers[event.stream_id].add(event.data, event.end_stream)

    def request(self, options, url, answer):
        stream_id = self._quic.get_next_available_stream_id()
        self.answers[stream_id] = answer
        self._quic.send_stream_data(stream_id, f"GET {url.path}\r\n".encode(), end_stream=True)


class H3Client(Client):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = H3Connection(self._quic)

    def on_event(self, event):
        for http_event in self.http.handle_event(event):
            answer = self.answers.get(getattr(http_event, "stream_id", None))
            if answer and isinstance(http_event, HeadersReceived):
                headers = {name.decode(): value.decode() for name, value in http_event.headers}
                answer.status = headers.get(":status", answer.status)
                answer.declared = headers.get("content-length", "-")
                answer.add(b"", http_event.stream_ended)
            elif answer and isinstance(http_event, DataReceived):
                answer.add(http_event.data, http_event.stream_ended)

    def request(self, options, url, answer):
        stream_id = self._quic.get_next_available_stream_id()
        self.answers[stream_id] = answer
        headers = [
            (b":method", options.method.encode()),
            (b":scheme", b"https"),
            (b":authority", url.netloc.encode()),
            (b":path", url.path.encode()),
        ]
        if options.range:
            headers.append((b"range", options.range.encode()))
        if options.method == "HEAD":
            # aioquic does not know that the answer to HEAD declares the length of a body it does not have.
            self.http._check_content_length = lambda stream: None
        self.http.send_headers(stream_id, headers, end_stream=True)


def open_connection(options, alpn, host, port, protocol):
    """localhost is 127.0.0.1 and only addresses are taken besides it: the peers never leave the loopback."""
    settings = configuration(True, alpn)
    settings.server_name = host
    if options.insecure:
        settings.verify_mode = ssl.CERT_NONE
    if options.ca:
        settings.load_verify_locations(options.ca)
    address = "127.0.0.1" if host == "localhost" else str(ipaddress.ip_address(host))
    return connect(address, port, configuration=settings, create_protocol=protocol)


async def run_client(options, alpn, protocol):
    urls = [urlsplit(url) for url in options.urls]
    slots = asyncio.Semaphore(options.parallel)
    async with open_connection(options, alpn, urls[0].hostname, urls[0].port, protocol) as client:

        async def one(url):
            async with slots:
                answer = Answer(url.path, options.out)
                client.request(options, url, answer)
                client.transmit()
                return await answer.done

        for line in await asyncio.gather(*(one(url) for url in urls)):
            print(line)


class PerfClient(Client):
    """Counts what comes on each stream."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.size, self.ends = 0, {}

    def on_event(self, event):
        if isinstance(event, StreamDataReceived):
            self.size += len(event.data)
            if event.end_stream and (end := self.ends.pop(event.stream_id, None)):
                end.set_result(None)

    def ask(self, length, upload=b"", end=True):
        stream_id = self._quic.get_next_available_stream_id()
        self.ends[stream_id] = asyncio.get_running_loop().create_future()
        self._quic.send_stream_data(stream_id, length.to_bytes(8, "big") + upload, end_stream=end)
        self.transmit()
        return stream_id, self.ends[stream_id]


async def perf_download(client, options):
    start = time.perf_counter()
    stream_id, _ = client.ask(2**64 - 1)
    await asyncio.sleep(options.download)
    size, took = client.size, time.perf_counter() - start
    client._quic.stop_stream(stream_id, 0)
    client.transmit()
    return throughput("download", size, took)


async def perf_upload(client, options):
    start, size = time.perf_counter(), 0
    stream_id, end = client.ask(0, end=False)
    sender = client._quic._streams[stream_id].sender
    while time.perf_counter() - start < options.upload:
        if len(sender._buffer) < SEND_BUFFER:
            client._quic.send_stream_data(stream_id, bytes(CHUNK))
            client.transmit()
            size += CHUNK
        await asyncio.sleep(0)
    client._quic.send_stream_data(stream_id, b"", end_stream=True)
    client.transmit()
    await end
    return throughput("upload", size, time.perf_counter() - start)


async def perf_requests(client, options):
    start, latencies = time.perf_counter(), []

    async def worker():
        while time.perf_counter() - start < options.duration:
            began = time.perf_counter()
            await client.ask(options.response, bytes(options.request))[1]
            latencies.append((time.perf_counter() - began) * 1e6)

    await asyncio.gather(*(worker() for _ in range(options.streams)))
    took = time.perf_counter() - start
    if client.size != options.response * len(latencies):
        raise ConnectionError(f"{client.size} bytes came for {len(latencies)} requests of {options.response}")
    latencies.sort()
    points = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999, "max": 1}
    return {
        "test": "rps",
        "requests": len(latencies),
        "seconds": took,
        "requests_per_second": len(latencies) / took,
        "latency_us": {name: latencies[int(point * (len(latencies) - 1))] for name, point in points.items()},
    }


def throughput(test, size, took):
    return {"test": test, "bytes": size, "seconds": took, "bits_per_second": size * 8 / took}


async def run_perf(options):
    host, _, port = options.remote.rpartition(":")
    measure = perf_download if options.download else perf_upload if options.upload else perf_requests
    async with open_connection(options, PERF_ALPN, host.strip("[]"), int(port), PerfClient) as client:
        result = await measure(client, options)
    print(json.dumps(result, indent=None if options.json else 2))


# The command line ----------------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    roles = parser.add_subparsers(dest="role", required=True)
    for name in ("h3-server", "hq-server", "perf-server"):
        role = roles.add_parser(name)
        for option in ("--listen", "--cert", "--key"):
            role.add_argument(option, required=True)
        if name != "perf-server":
            role.add_argument("--root", required=True, help="the folder to serve")
    for name in ("h3-client", "hq-client", "perf-client"):
        role = roles.add_parser(name)
        role.add_argument("--ca", help="the certificate authority to trust, PEM")
        role.add_argument("--insecure", action="store_true", help="trust every certificate")
        if name == "perf-client":
            role.add_argument("remote")
            role.add_argument("--download", type=float, help="receive for so many seconds")
            role.add_argument("--upload", type=float, help="send for so many seconds")
            role.add_argument("--rps", action="store_true", help="requests per second")
            role.add_argument("--request", type=int, default=512, help="bytes after the first eight")
            role.add_argument("--response", type=int, default=8192)
            role.add_argument("--streams", type=int, default=1)
            role.add_argument("--duration", type=float, default=2)
            role.add_argument("--json", action="store_true")
        else:
            role.add_argument("--out", help="keep the bodies in this folder")
            role.add_argument("--method", default="GET")
            role.add_argument("--range", help="the value of a Range header")
            role.add_argument("--parallel", type=int, default=100)
            role.add_argument("urls", nargs="+")
    return parser.parse_args()


def main():
    if sys.argv[1:2] == ["interop"]:
        import interop

        return interop.main(sys.argv[2:])
    options = parse()
    runs = {
        "h3-server": lambda: run_server(options, H3_ALPN, H3Server),
        "h3-client": lambda: run_client(options, H3_ALPN, H3Client),
        "hq-server": lambda: run_server(options, HQ_ALPN, HqServer),
        "hq-client": lambda: run_client(options, HQ_ALPN, Client),
        "perf-server": lambda: run_server(options, PERF_ALPN, PerfServer),
        "perf-client": lambda: run_perf(options),
    }
    try:
        asyncio.run(runs[options.role]())
    except (ConnectionError, OSError) as error:
        sys.exit(f"peer: {error}")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
