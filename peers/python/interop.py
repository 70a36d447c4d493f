"""The interop runner's contract: the environment says what to do, and 127 is the status for what is not supported."""

import argparse
import asyncio
import functools
import os
import pathlib
import ssl
import sys
from urllib.parse import urlsplit

from aioquic.asyncio import connect, serve
from aioquic.h3.connection import H3_ALPN
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite

import peer

UNSUPPORTED = 127
CASES = ["handshake", "transfer", "retry", "resumption", "zerortt", "multiconnect", "http3", "keyupdate", "chacha20", "v2"]


class Tickets:
    """The session tickets that a server has issued."""

    def __init__(self):
        self.tickets = {}

    def add(self, ticket):
        self.tickets[ticket.ticket] = ticket

    def pop(self, label):
        return self.tickets.pop(label, None)


def settings(case, is_client):
    alpn = H3_ALPN if case == "http3" else peer.HQ_ALPN
    configuration = peer.configuration(is_client, alpn)
    configuration.max_stream_data = 256 << 10
    configuration.max_data = 512 << 10
    if keys := os.environ.get("SSLKEYLOGFILE"):
        configuration.secrets_log_file = open(keys, "a")
    if case == "chacha20":
        configuration.cipher_suites = [CipherSuite.CHACHA20_POLY1305_SHA256]
    if case == "v2":
        configuration.supported_versions = [QuicProtocolVersion.VERSION_2, QuicProtocolVersion.VERSION_1]
        if is_client:
            configuration.original_version = QuicProtocolVersion.VERSION_1
    else:
        configuration.supported_versions = [QuicProtocolVersion.VERSION_1]
    return configuration


# The server ----------------------------------------------------------------------------------------------


async def run_server(options, case):
    configuration = settings(case, False)
    certs = pathlib.Path(options.certs)
    configuration.load_cert_chain(certs / "cert.pem", certs / "priv.key")
    host, _, port = options.listen.rpartition(":")
    protocol = peer.H3Server if case == "http3" else peer.HqServer
    tickets = Tickets()
    server = await serve(
        host.strip("[]"),
        int(port),
        configuration=configuration,
        create_protocol=functools.partial(protocol, root=options.www),
        session_ticket_fetcher=tickets.pop,
        session_ticket_handler=tickets.add,
        retry=case == "retry",
    )
    host, port = server._transport.get_extra_info("sockname")[:2]
    print(f"listening [{host}]:{port}" if ":" in host else f"listening {host}:{port}", flush=True)
    await asyncio.Future()


# The client ----------------------------------------------------------------------------------------------


async def fetch(options, case, urls, configuration, early=False, on_ticket=None):
    """Fetches URLs at the same time over one connection."""
    host = urls[0].hostname
    configuration.server_name = host
    protocol = peer.H3Client if case == "http3" else peer.Client
    slots = asyncio.Semaphore(100)
    options.method, options.range = "GET", None
    async with connect(
        "127.0.0.1" if host == "localhost" else host,
        urls[0].port,
        configuration=configuration,
        create_protocol=protocol,
        session_ticket_handler=on_ticket,
        wait_connected=not early,
    ) as client:

        async def one(url):
            async with slots:
                answer = peer.Answer(url.path, options.downloads)
                client.request(options, url, answer)
                if not early:
                    client.transmit()
                return await answer.done

        requests = [asyncio.ensure_future(one(url)) for url in urls]
        if early:
            await asyncio.sleep(0)
            client.transmit()
        if case == "keyupdate":
            client._quic.request_key_update()
        await asyncio.gather(*requests)


async def run_client(options, case):
    urls = [urlsplit(url) for url in os.environ.get("REQUESTS", "").split()]
    configuration = settings(case, True)
    configuration.verify_mode = ssl.CERT_NONE
    if case == "multiconnect":
        for url in urls:
            await fetch(options, case, [url], configuration)
    elif case in ("resumption", "zerortt"):
        tickets = []
        await fetch(options, case, urls[:1], configuration, on_ticket=tickets.append)
        if not tickets:
            raise ConnectionError("no session ticket came")
        configuration.session_ticket = tickets[-1]
        await fetch(options, case, urls[1:], configuration, early=case == "zerortt")
    else:
        await fetch(options, case, urls, configuration)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--www", default="/www")
    parser.add_argument("--downloads", default="/downloads")
    parser.add_argument("--certs", default="/certs")
    parser.add_argument("--listen", default="[::]:443")
    options = parser.parse_known_args(arguments)[0]
    case = os.environ.get("TESTCASE", "")
    if case not in CASES:
        print("peer: unsupported test case", case, file=sys.stderr)
        sys.exit(UNSUPPORTED)
    run = run_server if os.environ.get("ROLE") == "server" else run_client
    try:
        asyncio.run(run(options, case))
    except (ConnectionError, OSError) as error:
        sys.exit(f"peer: {error}")
