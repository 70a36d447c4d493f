"""QUIC connections, with streams and datagrams, as client and as server.

    async with godwit.quic.connect("localhost", 4433, alpn=["echo"], verify="ca.pem") as connection:
        stream = await connection.open_stream()
        await stream.write(b"hello")
        await stream.finish()
        print(await stream.read_to_end())

A connection and its streams can be used by any event loop. A connection that nobody refers to is closed, and so is a
stream: who was not done sends a reset, who has not read to the end asks the peer to stop.
"""

from .._errors import ConnectionLost, DatagramError, LimitExceeded, StreamReset, StreamStopped
from ._certificate import self_signed_certificate
from ._connect import Connecting, connect
from ._connection import Connection, Statistics
from ._listener import Listener, listen
from ._stream import ReceiveStream, SendStream, Stream

__all__ = [
    "Connecting",
    "Connection",
    "ConnectionLost",
    "DatagramError",
    "LimitExceeded",
    "Listener",
    "ReceiveStream",
    "SendStream",
    "Statistics",
    "Stream",
    "StreamReset",
    "StreamStopped",
    "connect",
    "listen",
    "self_signed_certificate",
]
