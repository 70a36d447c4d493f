"""A server and a client that say hello over QUIC, in one process: python hello_quic.py"""

import asyncio

from godwit import quic


async def answer(connection: quic.Connection) -> None:
    stream = await connection.accept_stream()
    await stream.write(b"hello, " + await stream.read_to_end(limit=1000))
    await stream.finish()
    await connection.wait_closed()


async def serve(listener: quic.Listener) -> None:
    async for connection in listener:
        asyncio.create_task(answer(connection))


async def main() -> None:
    made = quic.self_signed_certificate("localhost")
    async with quic.listen(
        "127.0.0.1:0", certificate=made.certificate, private_key=made.private_key, alpn=["hello"]
    ) as listener:
        serving = asyncio.create_task(serve(listener))
        port = listener.address[1]
        async with quic.connect("localhost", port, alpn=["hello"], verify=made.certificate) as connection:
            stream = await connection.open_stream()
            await stream.write(b"world")
            await stream.finish()
            print((await stream.read_to_end()).decode())
        serving.cancel()


if __name__ == "__main__":
    asyncio.run(main())
