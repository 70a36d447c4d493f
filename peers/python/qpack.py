"""QPACK between Godwit and ls-qpack.

    qpack.py DIR QIFS   decodes the files that GODWIT_QIFS_OURS=DIR left (see crates/godwit-http3/tests/qifs.rs) and
                        compares them with the collection in QIFS
    qpack.py --sample DIR   writes the sample of crates/godwit-http3/tests/data anew
"""

import os
import sys

import pylsqpack

# A page and what belongs to it, thrice: what comes again is what tables are for.
PATHS = ["/", "/style.css", "/script.js", "/images/one.png", "/images/two.png", "/data.json?page=1"]


def lists(path):
    found, current = [], []
    for line in open(path, "rb").read().split(b"\n") + [b""]:
        if line.startswith(b"#"):
            continue
        if line:
            name, value = line.split(b"\t", 1)
            current.append((name, value))
        elif current:
            found.append(current)
            current = []
    return found


def blocks(data):
    while data:
        stream, size = int.from_bytes(data[:8], "big"), int.from_bytes(data[8:12], "big")
        yield stream, data[12 : 12 + size]
        data = data[12 + size :]


def decode(path):
    capacity, blocked = (int(part) for part in path.split(".")[-3:-1])
    decoder, found = pylsqpack.Decoder(capacity, blocked), {}
    for stream, data in blocks(open(path, "rb").read()):
        if stream == 0:
            for ready in decoder.feed_encoder(data):
                found[ready] = decoder.resume_header(ready)[1]
            continue
        try:
            found[stream] = decoder.feed_header(stream, data)[1]
        except pylsqpack.StreamBlocked:
            pass
    return [found[stream] for stream in sorted(found)]


def compare(ours, qifs):
    names = sorted(os.listdir(ours))
    for name in names:
        expected = lists(os.path.join(qifs, "qifs", name.split(".")[0] + ".qif"))
        assert decode(os.path.join(ours, name)) == expected, name
    assert names
    print(f"{len(names)} files decoded")


def sample(directory):
    exchanges = []
    for turn in range(3):
        for path in PATHS:
            exchanges.append([
                (b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"www.example.org"),
                (b":path", path.encode()), (b"user-agent", b"sample/1.0"), (b"accept-language", b"en,de;q=0.5"),
                (b"cookie", b"session=0123456789abcdef%d" % turn),
            ])
            exchanges.append([
                (b":status", b"200"), (b"server", b"sample"), (b"content-length", b"%d" % (len(path) * 1000 + turn)),
                (b"cache-control", b"max-age=60"), (b"x-turn", b"turn %d" % turn),
            ])
    with open(os.path.join(directory, "page.qif"), "wb") as file:
        for fields in exchanges:
            file.writelines(b"%s\t%s\n" % field for field in fields)
            file.write(b"\n")
    for capacity in (256, 4096):
        encoder, decoder = pylsqpack.Encoder(), pylsqpack.Decoder(capacity, 16)
        out = [(0, encoder.apply_settings(capacity, 16))]
        decoder.feed_encoder(out[0][1])
        for stream, fields in enumerate(exchanges, 1):
            inserts, section = encoder.encode(stream, fields)
            decoder.feed_encoder(inserts)
            encoder.feed_decoder(decoder.feed_header(stream, section)[0])
            # Sections come before what they need now and then.
            out += [(stream, section), (0, inserts)] if stream % 5 == 0 else [(0, inserts), (stream, section)]
        with open(os.path.join(directory, f"page.out.{capacity}.16"), "wb") as file:
            for stream, data in out:
                if data:
                    file.write(stream.to_bytes(8, "big") + len(data).to_bytes(4, "big") + data)


if __name__ == "__main__":
    if sys.argv[1] == "--sample":
        sample(sys.argv[2])
    else:
        compare(sys.argv[1], sys.argv[2])
