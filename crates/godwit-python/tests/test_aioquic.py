"""Connections with another stack, aioquic, both ways."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from godwit import quic

CERTIFICATE = quic.self_signed_certificate("localhost")
SIZE = 300_000


def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async def answer() -> None:
        writer.write(await reader.read())
        writer.write_eof()

    tasks.append(asyncio.ensure_future(answer()))


tasks: "list[asyncio.Future[None]]" = []


async def test_a_client_with_its_server(tmp_path: Path) -> None:
    (tmp_path / "certificate.pem").write_text(CERTIFICATE.certificate)
    (tmp_path / "key.pem").write_text(CERTIFICATE.private_key)
    settings = QuicConfiguration(is_client=False, alpn_protocols=["echo"])
    settings.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    server = await serve("127.0.0.1", 0, configuration=settings, stream_handler=echo)
    port = server._transport.get_extra_info("sockname")[1]
    trust = CERTIFICATE.certificate.encode()
    async with quic.connect("localhost", port, alpn=["other", "echo"], verify=trust) as connection:
        assert connection.alpn == "echo"
        stream = await connection.open_stream()
        await stream.write(bytes(range(256)) * (SIZE // 256))
        await stream.finish()
        assert await stream.read_to_end() == bytes(range(256)) * (SIZE // 256)
    server.close()


async def test_a_server_with_its_client(tmp_path: Path) -> None:
    async def answer(listener: quic.Listener) -> None:
        connection = await listener.accept()
        assert connection is not None
        stream = await connection.accept_stream()
        async for chunk in stream:
            await stream.write(chunk)
        await stream.finish()
        await connection.wait_closed()

    (tmp_path / "certificate.pem").write_text(CERTIFICATE.certificate)
    async with quic.listen(
        "127.0.0.1:0", certificate=CERTIFICATE.certificate, private_key=CERTIFICATE.private_key, alpn=["echo"]
    ) as listener:
        answering = asyncio.create_task(answer(listener))
        settings = QuicConfiguration(alpn_protocols=["echo"], server_name="localhost")
        settings.load_verify_locations(str(tmp_path / "certificate.pem"))
        client: Any
        async with connect(
            "127.0.0.1", listener.address[1], configuration=settings, create_protocol=QuicConnectionProtocol
        ) as client:
            reader, writer = await client.create_stream()
            writer.write(bytes(SIZE))
            writer.write_eof()
            assert len(await reader.read()) == SIZE
        await answering
