"""Load for a reverse proxy, with what it does to the proxy's process: memory, descriptors, lost requests.

usage: proxy_load.py requests|slow|restart|swap|end --url https://localhost:PORT --ca PEM --pid PID [...]

requests  many requests over the three protocols; memory and descriptors must stay as they are after the first tenth
slow      clients that read slowly, all at once; everybody gets everything, and memory does not grow while they do
restart   the upstream (`--upstream COMMAND`, at `--port`) is killed and started again under load: only 502, 503 and 504
          meanwhile, nothing but 200 afterwards
swap      the certificate's files (`--cert`, `--key`) are exchanged again and again under load: nothing may fail
end       the proxy is told to end (SIGTERM) under load: whatever it has taken on is answered

It prints figures, then `ok` or `FAILED why`, and ends with 1 if it failed.
"""

import argparse
import os
import pathlib
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pycurl

from upstream import PATTERN

VERSIONS = {
    "h1": pycurl.CURL_HTTP_VERSION_1_1,
    "h2": pycurl.CURL_HTTP_VERSION_2_0,
    "h3": pycurl.CURL_HTTP_VERSION_3ONLY,
}


class Process:
    """The proxy, as the system sees it."""

    def __init__(self, pid):
        self.pid = pid

    def memory(self):
        """Resident KiB that it has allocated. Pages of the program's file are left out: they count as private or as
        shared by whether another process happens to run the same program."""
        fields = pathlib.Path(f"/proc/{self.pid}/smaps_rollup").read_text().split("\n")
        return sum(int(line.split()[1]) for line in fields if line.startswith("Anonymous:"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def settled(self, before, patience=90):
        """How many descriptors are left once there are no more than `before`, or patience is at its end."""
        for _ in range(patience * 2):
            if self.descriptors() <= before:
                break
            time.sleep(0.5)
        return self.descriptors()


class Transfer:
    """One request at a time on a connection of its own."""

    def __init__(self, options, protocol):
        self.protocol = protocol
        self.curl = pycurl.Curl()
        self.options = options
        self.length, self.right = 0, True

    def prepare(self, path, speed=None):
        curl = self.curl
        self.length, self.right = 0, True
        curl.setopt(pycurl.URL, self.options.url + path)
        curl.setopt(pycurl.CAINFO, self.options.ca)
        curl.setopt(pycurl.HTTP_VERSION, VERSIONS[self.protocol])
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.CONNECTTIMEOUT, 120)
        curl.setopt(pycurl.WRITEFUNCTION, self.take)
        if speed:
            curl.setopt(pycurl.MAX_RECV_SPEED_LARGE, speed)
            curl.setopt(pycurl.BUFFERSIZE, 16384)
        return curl

    def take(self, piece):
        at = self.length % len(PATTERN)
        wanted = PATTERN[at : at + len(piece)]
        if len(wanted) < len(piece):
            wanted = (PATTERN[at:] + PATTERN * (len(piece) // len(PATTERN) + 1))[: len(piece)]
        self.right &= piece == wanted
        self.length += len(piece)

    @property
    def status(self):
        return self.curl.getinfo(pycurl.RESPONSE_CODE)


class Pool:
    """Transfers that run at the same time. `next_path` gives each its next path, or None to rest; `done` is told of
    the end of each, with curl's error code (0 for none)."""

    def __init__(self, transfers, next_path, done, speed=None):
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, self.watch)
        self.multi.setopt(pycurl.M_TIMERFUNCTION, self.wake)
        self.sockets, self.watched, self.deadline = select.epoll(), set(), 0
        self.next_path, self.done, self.speed = next_path, done, speed
        self.by_curl = {}
        self.running = 0
        for transfer in transfers:
            self.add(transfer)

    def watch(self, event, descriptor, _multi, _data):
        """curl says what it waits for: there are too many sockets for select()."""
        if event == pycurl.POLL_REMOVE:
            self.watched.discard(descriptor)
            try:
                self.sockets.unregister(descriptor)
            except (FileNotFoundError, OSError):
                pass
            return
        mask = (select.EPOLLIN if event & pycurl.POLL_IN else 0) | (select.EPOLLOUT if event & pycurl.POLL_OUT else 0)
        if descriptor in self.watched:
            self.sockets.modify(descriptor, mask)
        else:
            self.sockets.register(descriptor, mask)
            self.watched.add(descriptor)

    def wake(self, milliseconds):
        self.deadline = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000

    def add(self, transfer):
        self.by_curl[transfer.curl] = transfer
        self.begin(transfer)

    def begin(self, transfer):
        path = self.next_path(transfer)
        if path is not None:
            self.multi.add_handle(transfer.prepare(path, self.speed))
            self.running += 1

    def step(self):
        """Moves what can be moved; False once nothing runs."""
        left = 0.05 if self.deadline is None else min(0.05, max(0, self.deadline - time.monotonic()))
        for descriptor, events in self.sockets.poll(left):
            flags = (pycurl.CSELECT_IN if events & select.EPOLLIN else 0) | (
                pycurl.CSELECT_OUT if events & select.EPOLLOUT else 0
            )
            self.multi.socket_action(descriptor, flags or pycurl.CSELECT_ERR)
        if self.deadline is not None and self.deadline <= time.monotonic():
            self.deadline = None
            self.multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        while True:
            left, whole, broken = self.multi.info_read(100)
            for curl, code in [(curl, 0) for curl in whole] + [(curl, code) for curl, code, _ in broken]:
                self.multi.remove_handle(curl)
                self.running -= 1
                self.done(self.by_curl[curl], code)
                self.begin(self.by_curl[curl])
            if left == 0:
                break
        return self.running > 0

    def close(self):
        for transfer in self.by_curl.values():
            transfer.curl.close()
        self.multi.close()


def figure(text):
    print(text, flush=True)


class Tally:
    """What became of requests."""

    def __init__(self):
        self.good = 0
        self.bad = {}

    def done(self, transfer, code, length=None):
        fine = code == 0 and transfer.status == 200 and transfer.right
        if fine and (length is None or transfer.length == length):
            self.good += 1
        else:
            key = (transfer.protocol, code, transfer.status)
            self.bad[key] = self.bad.get(key, 0) + 1


def requests(options, proxy):
    count, length = options.count, 1000
    tenth = max(1, count // 10)
    before = proxy.descriptors()
    tally, begun, marks = Tally(), [0], []

    def next_path(_transfer):
        if begun[0] >= count:
            return None
        begun[0] += 1
        return f"/bytes/{length}"

    def done(transfer, code):
        tally.done(transfer, code, length)
        total = tally.good + sum(tally.bad.values())
        if total % tenth == 0:
            marks.append(proxy.memory())
            figure(f"{total} requests: {marks[-1]} KiB, {proxy.descriptors()} descriptors")

    start = time.monotonic()
    pool = Pool([Transfer(options, options.protocols[index % len(options.protocols)]) for index in range(30)], next_path, done)
    while pool.step():
        pass
    figure(f"{count / (time.monotonic() - start):.0f} requests a second")
    pool.close()
    # The pool of upstream connections, the allocator's reserves and the log's buffers fill up at the beginning.
    return left_over(proxy, before, tally) or grown(marks[1:], 10)


def left_over(proxy, before, tally):
    """What went wrong, or was not given back: there were `before` descriptors."""
    left = proxy.settled(before)
    figure(f"descriptors before {before}, after {left}")
    if tally.bad:
        return f"{tally.bad}"
    if left > before:
        return f"{left - before} descriptors are left over"
    return None


def grown(marks, percent):
    if len(marks) > 1 and marks[-1] > marks[0] * (100 + percent) / 100:
        return f"memory grew from {marks[0]} to {marks[-1]} KiB"
    return None


def slow(options, proxy):
    clients, length, speed = options.count, options.size, options.speed
    before, empty = proxy.descriptors(), proxy.memory()
    tally, marks, started, ended = Tally(), [], set(), set()

    def next_path(transfer):
        if transfer in started:
            return None
        started.add(transfer)
        return f"/bytes/{length}"

    def done(transfer, code):
        ended.add(transfer)
        tally.done(transfer, code, length)

    start = time.monotonic()
    transfers = [Transfer(options, options.protocols[index % len(options.protocols)]) for index in range(clients)]
    pool = Pool([], next_path, done, speed)
    shown, waiting, coming = start, transfers[::-1], []
    while pool.step() or waiting:
        # One client's processor makes all these handshakes: each must be done before the server's patience is.
        coming = [transfer for transfer in coming if transfer.length == 0 and transfer not in ended]
        while waiting and len(coming) < 100:
            coming.append(waiting.pop())
            pool.add(coming[-1])
        if time.monotonic() - shown > length / speed / 10:
            shown = time.monotonic()
            there = sum(1 for transfer in transfers if transfer.length > 0)
            if there == clients and pool.running == clients:
                marks.append(proxy.memory())
            memory, running = proxy.memory(), pool.running
            figure(f"{shown - start:.0f} s: {there} have begun, {running} run, {memory} KiB, {proxy.descriptors()} descriptors")
    pool.close()
    figure(f"{clients} clients of {length} bytes in {time.monotonic() - start:.0f} s; memory before {empty} KiB")
    if marks:
        figure(f"memory while all read: {min(marks)} to {max(marks)} KiB, {(max(marks) - empty) / clients:.0f} KiB a client")
    return left_over(proxy, before, tally) or grown(marks, 10)


def under_load(options, act, until, allowed=()):
    """Keeps asking over all protocols while `act`, a generator, does its work bit by bit, and then until `until` more
    requests have succeeded. Returns what went wrong."""
    tally, goal = Tally(), [None]

    def next_path(_transfer):
        return None if goal[0] is not None and tally.good >= goal[0] else "/bytes/20000"

    transfers = [Transfer(options, options.protocols[index % len(options.protocols)]) for index in range(12)]
    for transfer in transfers:
        if options.fresh:
            transfer.curl.setopt(pycurl.FRESH_CONNECT, 1)
    pool = Pool(transfers, next_path, lambda transfer, code: tally.done(transfer, code, 20000))
    for pause in act:
        end = time.monotonic() + pause
        while time.monotonic() < end:
            pool.step()
    failed_by_then = sum(tally.bad.values())
    goal[0] = tally.good + until
    while pool.step():
        pass
    pool.close()
    figure(f"{tally.good} requests succeeded, others: {tally.bad or 'none'}")
    afterwards = sum(tally.bad.values()) - failed_by_then
    wrong = {key: count for key, count in tally.bad.items() if not allowed or not allowed(*key)}
    if wrong:
        return f"not allowed: {wrong}"
    return f"{afterwards} failed after the recovery" if afterwards else None


def restart(options, _proxy):
    """The upstream's command must not use another port than `--port`."""
    command = shlex.split(options.upstream)
    upstream = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def act():
        nonlocal upstream
        yield 2
        for _ in range(options.count):
            upstream.send_signal(signal.SIGKILL)
            upstream.wait()
            yield 1
            upstream = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            # An interpreter starts, and the proxy tries again.
            yield 8

    # A response that had begun breaks off; the others are told that nobody answers.
    # curl's numbers: partial file, receive error, HTTP/2 stream, HTTP/3.
    broken = {18, 56, 92, 95}
    try:
        time.sleep(2)
        return under_load(options, act(), 500, lambda _, code, status: status in (502, 503, 504) or code in broken)
    finally:
        upstream.kill()


def swap(options, _proxy):
    """`--pairs` is a folder with 0.pem, 0.key, 1.pem, 1.key: two certificates of one authority."""
    pairs = pathlib.Path(options.pairs)

    def act():
        yield 1
        for turn in range(options.count):
            for ending, place in (("pem", options.cert), ("key", options.key)):
                fresh = f"{place}.new"
                shutil.copyfile(pairs / f"{turn % 2}.{ending}", fresh)
                os.replace(fresh, place)
            yield options.pause

    options.fresh = True
    return under_load(options, act(), 100)


def end(options, proxy):
    """Requests that were sent before the end, or on a connection that was there, are answered; others are refused."""
    tally, told = Tally(), [False]

    def next_path(transfer):
        # Whoever begins anew after the end is refused, rightly.
        return None if told[0] else "/delay/300"

    def done(transfer, code):
        transfer.right = True
        tally.done(transfer, code)

    pool = Pool([Transfer(options, options.protocols[index % len(options.protocols)]) for index in range(60)], next_path, done)
    for after, act in ((2, lambda: os.kill(proxy.pid, signal.SIGTERM)), (0, lambda: told.__setitem__(0, True))):
        until = time.monotonic() + after
        while time.monotonic() < until:
            pool.step()
        if after:
            told[0] = True
        act()
    while pool.step():
        pass
    pool.close()
    figure(f"{tally.good} requests succeeded, others: {tally.bad or 'none'}")
    return f"{tally.bad}" if tally.bad else None


def main():
    modes = {"requests": requests, "slow": slow, "restart": restart, "swap": swap, "end": end}
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=modes)
    parser.add_argument("--url", required=True)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--protocols", nargs="+", choices=VERSIONS, default=list(VERSIONS))
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--size", type=int, default=1 << 20)
    parser.add_argument("--speed", type=int, default=10_000)
    parser.add_argument("--upstream")
    parser.add_argument("--pairs")
    parser.add_argument("--cert")
    parser.add_argument("--key")
    parser.add_argument("--pause", type=float, default=0.1)
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    problem = modes[options.mode](options, Process(options.pid))
    print(f"FAILED {problem}" if problem else "ok")
    sys.exit(1 if problem else 0)


if __name__ == "__main__":
    main()
