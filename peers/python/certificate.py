"""What certificate a server shows over HTTP/1.1, HTTP/2 and HTTP/3.

    certificate.py show --ca PEM --name NAME PORT   prints `PROTOCOL SHA256 SECONDS-LEFT` for each protocol, where
                                                    the chain and the name have been verified
    certificate.py fetch --ca PEM URL               prints what is at an https:// URL
    certificate.py post URL BODY                    sends it to an http:// URL

Everything is on 127.0.0.1, whatever the name.
"""

import argparse
import asyncio
import datetime
import hashlib
import socket
import ssl
import sys
import urllib.request

from aioquic.asyncio.client import connect
from aioquic.quic.configuration import QuicConfiguration
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

LIMIT = 20


def over_tcp(ca, name, port, alpn):
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols([alpn])
    with socket.create_connection(("127.0.0.1", port), LIMIT) as plain:
        with context.wrap_socket(plain, server_hostname=name) as stream:
            if stream.selected_alpn_protocol() != alpn:
                raise ValueError(f"{alpn} was not agreed on")
            return stream.getpeercert(binary_form=True)


async def over_quic(ca, name, port):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["h3"], server_name=name)
    configuration.load_verify_locations(cafile=ca)
    async with asyncio.timeout(LIMIT):
        async with connect("127.0.0.1", port, configuration=configuration) as connection:
            return connection._quic.tls._peer_certificate.public_bytes(Encoding.DER)


def line(protocol, der):
    end = x509.load_der_x509_certificate(der).not_valid_after_utc
    left = (end - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    print(protocol, hashlib.sha256(der).hexdigest(), int(left))


def show(arguments):
    for protocol, alpn in (("h1", "http/1.1"), ("h2", "h2")):
        line(protocol, over_tcp(arguments.ca, arguments.name, arguments.port, alpn))
    line("h3", asyncio.run(over_quic(arguments.ca, arguments.name, arguments.port)))


def fetch(arguments):
    context = ssl.create_default_context(cafile=arguments.ca)
    with urllib.request.urlopen(arguments.url, timeout=LIMIT, context=context) as response:
        sys.stdout.write(response.read().decode())


def post(arguments):
    with urllib.request.urlopen(arguments.url, data=arguments.body.encode(), timeout=LIMIT) as response:
        response.read()


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("show")
    command.add_argument("--ca", required=True)
    command.add_argument("--name", required=True)
    command.add_argument("port", type=int)
    command.set_defaults(run=show)
    command = commands.add_parser("fetch")
    command.add_argument("--ca", required=True)
    command.add_argument("url")
    command.set_defaults(run=fetch)
    command = commands.add_parser("post")
    command.add_argument("url")
    command.add_argument("body")
    command.set_defaults(run=post)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
