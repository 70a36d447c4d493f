"""Programs end, whatever they leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from conftest import Site

COMMON = """
import asyncio, os, sys
import godwit
from godwit import quic

url, authority = sys.argv[1:]
certificate = quic.self_signed_certificate()
"""

ENDS = {
    "a client that was never closed": """
        async def main():
            client = godwit.Client(verify=authority)
            print((await client.get(url + "/about")).status_code)
        asyncio.run(main())
    """,
    "a response that was never read, kept by the module": """
        async def main():
            global client, response
            client = godwit.Client(verify=authority)
            response = await client.stream("GET", url + "/stall").__aenter__()
            print(response.status_code)
        asyncio.run(main())
    """,
    "requests under way": """
        async def main():
            global tasks
            client = godwit.Client(verify=authority)
            print((await client.get(url + "/about")).status_code)
            tasks = [asyncio.create_task(client.get(url + "/never")) for _ in range(10)]
            await asyncio.sleep(0.1)
        asyncio.run(main())
    """,
    "an event loop that is closed while somebody waits": """
        client = godwit.Client(verify=authority)
        loop = asyncio.new_event_loop()
        print(loop.run_until_complete(client.get(url + "/about")).status_code)
        task = loop.create_task(client.get(url + "/size/1000000"))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        import time
        time.sleep(0.3)
    """,
    "a listener and a connection that live on": """
        async def main():
            global listener, connection, server
            listener = quic.listen("127.0.0.1:0", certificate=certificate.certificate,
                private_key=certificate.private_key, alpn=["x"])
            connection = await quic.connect("localhost", listener.address[1], alpn=["x"], verify=False)
            server = await listener.accept()
            print(200)
        asyncio.run(main())
    """,
    "an exit in the middle": """
        async def main():
            async with godwit.Client(verify=authority) as client:
                print((await client.get(url + "/about")).status_code, flush=True)
                tasks = [asyncio.create_task(client.get(url + "/size/10000000")) for _ in range(10)]
                await asyncio.sleep(0.01)
                sys.exit()
        asyncio.run(main())
    """,
    "threads with event loops of their own": """
        import threading
        client = godwit.Client(verify=authority)
        async def main():
            return [(await client.get(url + "/echo")).status_code for _ in range(20)]
        threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(asyncio.run(main())[0])
    """,
    "a process that was forked": """
        asyncio.run(godwit.Client(verify=authority).get(url + "/about"))
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                godwit.get(url + "/about", verify=authority)
            except RuntimeError as error:
                assert "before this process was forked" in str(error), error
                os.write(write, b"refused")
            sys.exit()
        os.close(write)
        assert os.read(read, 100) == b"refused"
        assert os.waitpid(child, 0)[1] == 0
        print(200)
    """,
}


@pytest.mark.parametrize("what", ENDS)
def test_a_program_ends(site: Site, what: str) -> None:
    program = COMMON + textwrap.dedent(ENDS[what])
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program, site.url, str(site.authority)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert (ended.returncode, ended.stdout) == (0, "200\n"), ended.stderr
    assert "panicked" not in ended.stderr and "Traceback" not in ended.stderr, ended.stderr
