"""curl as a client of a reverse proxy: asks for everything that `upstream.py` answers, through the proxy.

usage: proxy_curl.py --url https://localhost:PORT --ca PEM --protocol h1|h2|h3 [--size BYTES]

It prints `ok NAME` or `FAILED NAME: why` for each check, and ends with 1 if any failed. `--size` is the length of
the large bodies.
"""

import argparse
import hashlib
import json
import queue
import sys
import threading
import time
import uuid

import pycurl

from checks import Failed, Suite, expect, same

# What is asked of curl, and how it writes the status line then.
VERSIONS = {
    "h1": (pycurl.CURL_HTTP_VERSION_1_1, "HTTP/1.1"),
    "h2": (pycurl.CURL_HTTP_VERSION_2_0, "HTTP/2"),
    "h3": (pycurl.CURL_HTTP_VERSION_3ONLY, "HTTP/3"),
}


class Answer:
    """What came back: final status, header fields by name (trailers among them), and the body or its hash."""

    def __init__(self):
        self.version = None
        self.blocks = []
        self.length = 0
        self.digest = hashlib.sha256()
        self.start = b""

    def header_line(self, line):
        text = line.decode("latin-1").rstrip("\r\n")
        if text.startswith("HTTP/"):
            self.version, status = text.split(" ")[:2]
            self.blocks.append((int(status), []))
        elif ":" in text:
            name, _, value = text.partition(":")
            self.blocks[-1][1].append((name.lower(), value.strip()))

    def body_piece(self, piece):
        self.length += len(piece)
        self.digest.update(piece)
        if len(self.start) < 1 << 20:
            self.start += piece

    @property
    def status(self):
        return self.blocks[-1][0]

    def all(self, name):
        return [value for known, value in self.blocks[-1][1] if known == name]

    def header(self, name):
        return next(iter(self.all(name)), None)

    def json(self):
        return json.loads(self.start)


class Client:
    """One curl handle, whose connection is kept from request to request."""

    def __init__(self, options):
        self.options = options
        self.handle = pycurl.Curl()

    def ask(self, path, method="GET", headers=(), body=None, sink=None, stop_after=None, follow=False):
        """Sends a request. `body` is bytes, or an iterator of pieces whose length is not told."""
        wanted, version = VERSIONS[self.options.protocol]
        curl, answer = self.handle, Answer()
        curl.reset()
        curl.setopt(pycurl.URL, self.options.url + path)
        curl.setopt(pycurl.CAINFO, self.options.ca)
        curl.setopt(pycurl.HTTP_VERSION, wanted)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.TIMEOUT, 300)
        curl.setopt(pycurl.FOLLOWLOCATION, int(follow))
        curl.setopt(pycurl.BUFFERSIZE, 256 << 10)
        curl.setopt(pycurl.HEADERFUNCTION, answer.header_line)
        fields = list(headers)
        if method == "HEAD":
            curl.setopt(pycurl.NOBODY, 1)
        elif method != "GET" or body is not None:
            curl.setopt(pycurl.CUSTOMREQUEST, method)
        if body is not None:
            curl.setopt(pycurl.UPLOAD, 1)
            curl.setopt(pycurl.UPLOAD_BUFFERSIZE, 256 << 10)
            if isinstance(body, bytes):
                curl.setopt(pycurl.INFILESIZE_LARGE, len(body))
            curl.setopt(pycurl.READFUNCTION, reader(body))
            if not any(field.lower().startswith("expect") for field in fields):
                fields.append("expect:")
        curl.setopt(pycurl.HTTPHEADER, fields)

        def write(piece):
            answer.body_piece(piece)
            if sink:
                sink(piece)
            return -1 if stop_after is not None and answer.length >= stop_after else len(piece)

        curl.setopt(pycurl.WRITEFUNCTION, write)
        curl.perform()
        expect("the protocol", answer.version, version)
        return answer


def reader(body):
    """A read function over bytes or over pieces; an exception in the pieces aborts the upload."""
    pieces, left = iter([body] if isinstance(body, bytes) else body), [b""]

    def read(size):
        if not left[0]:
            try:
                left[0] = next(pieces, b"")
            except Failed:
                return pycurl.READFUNC_ABORT
        piece, left[0] = left[0][:size], left[0][size:]
        return piece

    return read


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--protocol", choices=VERSIONS, required=True)
    parser.add_argument("--size", type=int, default=8 << 20)
    options = parser.parse_args()
    client = Client(options)
    suite = Suite()

    @suite.check
    def methods():
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "REPORT"):
            body = b"x" * 10 if method in ("POST", "PUT", "PATCH", "REPORT") else None
            answer = client.ask("/anything/a%20b?c=%26", method, body=body)
            expect(f"the status of {method}", answer.status, 200)
            echo = answer.json()
            expect("the method that arrived", echo["method"], method)
            expect("the target that arrived", echo["target"], "/anything/a%20b?c=%26")
            expect("the length that arrived", echo["length"], 10 if body else 0)

    @suite.check
    def head_has_a_length_and_no_body():
        answer = client.ask("/bytes/12345", "HEAD")
        expect("the status", answer.status, 200)
        expect("content-length", answer.header("content-length"), "12345")
        expect("the body's length", answer.length, 0)

    @suite.check
    def headers_arrive_as_they_were_sent():
        sent = ["x-one: 1", "x-long: " + "v" * 8000, "cookie: a=1; b=2", "connection: x-hop", "x-hop: gone"]
        if options.protocol != "h1":
            sent = sent[:3]
        fields = client.ask("/anything", headers=sent).json()["headers"]
        of = lambda name: [value for known, value in fields if known == name]  # noqa: E731
        expect("x-one", of("x-one"), ["1"])
        expect("the length of x-long", len(of("x-long")[0]), 8000)
        expect("cookie", of("cookie"), ["a=1; b=2"])
        expect("x-hop, named in connection", of("x-hop"), [])
        expect("x-forwarded-proto", of("x-forwarded-proto"), ["https"])
        expect("x-forwarded-for", of("x-forwarded-for"), ["127.0.0.1"])
        expect("host", of("host"), [options.url.removeprefix("https://")])

    @suite.check
    def forged_forwarding_headers_are_replaced():
        forged = ["x-forwarded-for: 6.6.6.6", "forwarded: for=6.6.6.6"]
        fields = client.ask("/anything", headers=forged).json()["headers"]
        if any("6.6.6.6" in value for _, value in fields):
            raise Failed("a client could forge the address it comes from")

    @suite.check
    def response_headers():
        expect("set-cookie", client.ask("/cookies").all("set-cookie"), ["a=1", "b=2; Path=/"])
        expect("the last of many", client.ask("/headers/90").header("x-header-89"), "v" * 100)

    @suite.check
    def bodies_of_every_size_arrive():
        for length in (0, 1, 1000, 65536, 1 << 20):
            body = bytes(length % 251 for _ in range(length))
            echo = client.ask("/anything", "POST", body=body).json()
            expect("the length", echo["length"], length)
            expect("the hash", echo["sha256"], hashlib.sha256(body).hexdigest())
            same("a download", client.ask(f"/bytes/{length}"), length)
            same("a chunked download", client.ask(f"/chunked/{length}"), length)

    @suite.check
    def a_large_body_down():
        same("the body", client.ask(f"/bytes/{options.size}"), options.size)

    @suite.check
    def a_large_body_up():
        digest, piece = hashlib.sha256(), bytes(range(256)) * 256

        def pieces():
            for _ in range(options.size // len(piece)):
                digest.update(piece)
                yield piece

        echo = client.ask("/anything", "POST", body=pieces()).json()
        expect("the length", echo["length"], options.size // len(piece) * len(piece))
        expect("the hash", echo["sha256"], digest.hexdigest())

    @suite.check
    def trailers_of_a_response():
        answer = client.ask("/trailers", headers=["te: trailers"])
        expect("the body", answer.start, b"a body with trailers\n")
        expect("x-checksum", answer.header("x-checksum"), answer.digest.hexdigest())
        expect("x-second", answer.header("x-second"), "2")

    @suite.check
    def redirects_are_the_clients():
        answer = client.ask("/redirect/3")
        expect("the status", (answer.status, answer.header("location")), (302, "/redirect/2"))
        expect("the end", client.ask("/redirect/3", follow=True).status, 200)

    @suite.check
    def every_status():
        for status in (200, 201, 204, 301, 304, 400, 401, 404, 418, 500, 503):
            expect("the status", client.ask(f"/status/{status}").status, status)
        expect("an unchanged page", client.ask("/etag", headers=['if-none-match: "one"']).status, 304)

    @suite.check
    def permission_to_send_is_given():
        answer = client.ask("/anything", "POST", headers=["expect: 100-continue"], body=b"y" * 5000)
        expect("the statuses", (answer.status, answer.json()["length"]), (200, 5000))

    @suite.check
    def a_body_that_is_not_wanted_is_refused():
        answer = client.ask("/reject", "POST", headers=["expect: 100-continue"], body=b"y" * 100_000)
        expect("the status", answer.status, 413)
        if options.protocol == "h1":
            expect("what was sent", client.handle.getinfo(pycurl.SIZE_UPLOAD_T), 0)

    @suite.check
    def events_arrive_one_by_one():
        name, other, seen = uuid.uuid4().hex, Client(options), []

        def sink(piece):
            text = piece.decode()
            for line in text.splitlines():
                if line.startswith("id: "):
                    seen.append(int(line[4:]))
                    number = seen[-1]
                    # The upstream sends the next event only after this: whoever buffers hangs.
                    acks.put(number)

        acks = queue.Queue()

        def acknowledge():
            while (number := acks.get()) is not None:
                other.ask(f"/ack/{name}/{number}")

        thread = threading.Thread(target=acknowledge, daemon=True)
        thread.start()
        client.ask(f"/events/{name}?n=5", sink=sink)
        acks.put(None)
        expect("the events", seen, list(range(5)))

    @suite.check
    def compressed_text():
        packed = client.ask("/text", headers=["accept-encoding: gzip"])
        expect("content-encoding", packed.header("content-encoding"), "gzip")
        if "accept-encoding" not in (packed.header("vary") or "").lower():
            raise Failed("a compressed response does not vary by accept-encoding")
        plain = client.ask("/text", headers=["accept-encoding: identity"])
        expect("content-encoding", plain.header("content-encoding"), None)
        if packed.length * 2 > plain.length:
            raise Failed(f"{plain.length} bytes became {packed.length}")
        ready = client.ask("/gzip", headers=["accept-encoding: gzip"])
        expect("what was compressed before", ready.all("content-encoding"), ["gzip"])

    @suite.check
    def an_aborted_upload_reaches_the_upstream():
        name = uuid.uuid4().hex

        def pieces():
            yield bytes(1 << 20)
            wait_for(f"/ended/{name}", "begun")
            raise Failed("enough")

        try:
            Client(options).ask(f"/upload/{name}", "POST", body=pieces())
            raise Failed("an upload that was given up succeeded")
        except pycurl.error:
            pass
        wait_for(f"/ended/{name}", "aborted")

    @suite.check
    def an_aborted_download_reaches_the_upstream():
        name = uuid.uuid4().hex
        try:
            Client(options).ask(f"/endless/{name}", stop_after=1 << 20)
        except pycurl.error:
            pass
        wait_for(f"/ended/{name}", "aborted")

    def wait_for(path, state):
        asker, seen = Client(options), None
        for _ in range(300):
            seen = asker.ask(path).json()["state"]
            if seen == state:
                return
            time.sleep(0.1)
        raise Failed(f"{path} is {seen}, not {state}")

    @suite.check
    def a_broken_response_is_an_error():
        try:
            Client(options).ask("/broken")
        except pycurl.error:
            return
        raise Failed("a response that broke off was taken for whole")

    @suite.check
    def an_upstream_that_hangs_up_is_a_bad_gateway():
        expect("the status", client.ask("/close", "POST", body=b"once").status, 502)

    @suite.check
    def many_requests_on_a_connection():
        for number in range(200):
            expect("the answer", client.ask(f"/anything/{number}").json()["target"], f"/anything/{number}")

    if options.protocol == "h1":

        @suite.check
        def a_websocket():
            curl = pycurl.Curl()
            curl.setopt(pycurl.URL, options.url.replace("https:", "wss:") + "/ws")
            curl.setopt(pycurl.CAINFO, options.ca)
            curl.setopt(pycurl.CONNECT_ONLY, 2)
            curl.perform()
            for message in (b"hello", b"x" * 1000):
                curl.ws_send(message, pycurl.WS_TEXT)
                got = b""
                while len(got) < len(message):
                    try:
                        got += curl.ws_recv(65536)[0]
                    except BlockingIOError:
                        time.sleep(0.01)
                expect("the echo", got, message)
            curl.close()

    sys.exit(suite.run())


if __name__ == "__main__":
    main()
