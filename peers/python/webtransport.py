"""Opens a WebTransport session with aioquic to a server that sends back what comes, and says what it saw as JSON.

usage: webtransport.py --port PORT --ca FILE
"""

import argparse
import asyncio
import json
import ssl

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, FrameType, H3Connection
from aioquic.h3.events import DatagramReceived, DataReceived, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic.configuration import QuicConfiguration

SIZE = 300_000


class Session(QuicConnectionProtocol):
    """One session on a connection of its own."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic, enable_webtransport=True)
        self.status = asyncio.get_running_loop().create_future()
        self.datagram = asyncio.get_running_loop().create_future()
        self.tunnel = b""
        self.ended = asyncio.Event()
        self.content = {}
        self.finished = asyncio.Queue()

    def quic_event_received(self, event):
        for seen in self.http.handle_event(event):
            match seen:
                case HeadersReceived(headers=headers):
                    self.status.set_result(dict(headers)[b":status"])
                case DatagramReceived(data=data) if not self.datagram.done():
                    self.datagram.set_result(data)
                case WebTransportStreamDataReceived(stream_id=stream, data=data, stream_ended=ended):
                    self.content[stream] = self.content.get(stream, b"") + data
                    if ended:
                        self.finished.put_nowait(stream)
                case DataReceived(data=data, stream_ended=ended):
                    self.tunnel += data
                    if ended:
                        self.ended.set()

    async def open(self, authority, path):
        """Asks for the session and returns the status."""
        self.id = self._quic.get_next_available_stream_id()
        self.http.send_headers(
            self.id,
            [
                (b":method", b"CONNECT"),
                (b":scheme", b"https"),
                (b":authority", authority.encode()),
                (b":path", path.encode()),
                (b":protocol", b"webtransport"),
                (b"sec-webtransport-http3-draft02", b"1"),
            ],
        )
        self.transmit()
        return await self.status

    async def echo(self, unidirectional):
        """Sends something on a new stream, and says whether it comes back."""
        content = bytes(index % 251 for index in range(SIZE))
        stream = self.http.create_webtransport_stream(self.id, is_unidirectional=unidirectional)
        if not unidirectional:
            # aioquic does not remember what it has opened the stream for, and would read frames on it.
            with self.http._get_or_create_stream(stream) as state:
                state.frame_type, state.session_id = FrameType.WEBTRANSPORT_STREAM, self.id
        self._quic.send_stream_data(stream, content, end_stream=True)
        self.transmit()
        answered = await self.finished.get()
        return self.content[answered] == content and (answered == stream) != unidirectional


async def main(port, ca):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, max_datagram_frame_size=65536)
    configuration.load_verify_locations(ca)
    configuration.verify_mode = ssl.CERT_REQUIRED
    configuration.server_name = "localhost"
    seen = {}
    client = lambda: connect("127.0.0.1", port, configuration=configuration, create_protocol=Session)
    async with client() as session:
        seen["status"] = (await session.open(f"localhost:{port}", "/echo")).decode()
        seen["bidirectional"] = await session.echo(False)
        seen["unidirectional"] = await session.echo(True)
        session.http.send_datagram(session.id, b"datagram")
        session.transmit()
        seen["datagram"] = (await session.datagram).decode()
    async with client() as session:
        await session.open(f"localhost:{port}", "/close")
        read = await session.finished.get()
        session._quic.send_stream_data(read, b"", end_stream=True)
        session.transmit()
        await session.ended.wait()
        seen["capsule"] = session.tunnel.hex()
    async with client() as session:
        seen["refused"] = (await session.open(f"localhost:{port}", "/elsewhere")).decode()
    print(json.dumps(seen))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ca", required=True)
    arguments = parser.parse_args()
    asyncio.run(asyncio.wait_for(main(arguments.port, arguments.ca), 60))
