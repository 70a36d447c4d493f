#!/bin/sh
# Makes the files of this folder anew, with OpenSSL 3.0 and Python: keys and certificates protected in all the ways that
# programs have. The password is "secret" where there is one. Certificates end in 2126; no test looks at that.
set -eu
openssl ecparam -name prime256v1 -genkey -noout -out authority.key
openssl req -x509 -new -key authority.key -subj "/CN=Test authority" -days 36500 -out authority.pem \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign"
openssl ecparam -name prime256v1 -genkey -noout -out ec.key
openssl req -new -key ec.key -subj "/CN=Test server" -out server.csr
printf 'subjectAltName=DNS:localhost\n' > extensions
openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -days 36500 -extfile extensions -out own.pem
cat own.pem authority.pem > chain.pem
# A certificate of version 1, and a key of RSA.
openssl genrsa -traditional -out rsa.key 2048
openssl req -new -key rsa.key -subj "/CN=Version 1" -out v1.csr
openssl x509 -req -in v1.csr -CA authority.pem -CAkey authority.key -days 36500 -out v1.pem
# Keys that a password protects: PKCS #8 in both generations of schemes, and the way before it.
pkcs8() { openssl pkcs8 -topk8 -in ec.key -passout pass:secret "$@"; }
pkcs8 -v2 aes-256-cbc -out pkcs8_aes256.pem
pkcs8 -v2 aes-128-cbc -v2prf hmacWithSHA512 -out pkcs8_aes128_sha512.pem
pkcs8 -v2 des3 -v2prf hmacWithSHA1 -out pkcs8_des3_sha1.pem
for bits in 128 192 256; do pkcs8 -v2 aes-$bits-ecb -out pkcs8_aes${bits}_ecb.pem; done
pkcs8 -scrypt -out pkcs8_scrypt.pem
pkcs8 -v1 PBE-SHA1-3DES -out pkcs8_pbe_3des.pem
for cipher in aes128 aes192 aes256 des3; do
    openssl ec -in ec.key -$cipher -passout pass:secret -out traditional_$cipher.pem
done
openssl rsa -in rsa.key -traditional -aes256 -passout pass:secret -out traditional_rsa.pem
# Keys and certificates in one piece.
pkcs12() { openssl pkcs12 -export -inkey ec.key -in own.pem -certfile authority.pem "$@"; }
pkcs12 -passout pass:secret -out modern.p12
pkcs12 -passout pass:secret -legacy -out legacy.p12
pkcs12 -passout pass:secret -legacy -certpbe PBE-SHA1-RC2-128 -keypbe PBE-SHA1-2DES -out odd.p12
pkcs12 -passout pass:secret -macalg sha512 -certpbe NONE -out sha512.p12
pkcs12 -passout pass:secret -nomac -out no_mac.p12
pkcs12 -passout pass: -out empty.p12
pkcs12 -passout pass: -certpbe NONE -keypbe NONE -nomac -out plain.p12
pkcs12 -passout "pass:gehäim" -out wide.p12
openssl pkcs12 -export -nokeys -in own.pem -passout pass:secret -out no_key.p12
# Without a password at all, as .NET writes it: the program has no way to do that.
python3 - <<'P'
import ctypes, ctypes.util
c = ctypes.CDLL(ctypes.util.find_library("crypto"))
for name in ("BIO_new_file", "PEM_read_bio_X509", "PEM_read_bio_PrivateKey", "PKCS12_create"):
    getattr(c, name).restype = ctypes.c_void_p
p = ctypes.c_void_p
read = lambda how, name: p(how(p(c.BIO_new_file(name, b"r")), None, None, None))
key, own = read(c.PEM_read_bio_PrivateKey, b"ec.key"), read(c.PEM_read_bio_X509, b"own.pem")
TRIPLE_DES, AES_256 = 146, 427
for name, scheme in (b"none.p12", TRIPLE_DES), (b"none_aes.p12", AES_256):
    made = c.PKCS12_create(None, None, key, own, None, scheme, scheme, 2000, 1, 0)
    to = p(c.BIO_new_file(name, b"w"))
    assert c.i2d_PKCS12_bio(to, p(made)) == 1
    c.BIO_free(to)
# Certificates in a message of PKCS #7 that nobody signs, made by the calls that MsQuic makes.
c.PKCS7_new.restype = ctypes.c_void_p
SIGNED, DATA = 22, 21
message = p(c.PKCS7_new())
assert c.PKCS7_set_type(message, SIGNED) == 1 and c.PKCS7_content_new(message, DATA) == 1
for name in (b"own.pem", b"authority.pem"):
    assert c.PKCS7_add_certificate(message, read(c.PEM_read_bio_X509, name)) == 1
to = p(c.BIO_new_file(b"chain.p7", b"w"))
assert c.i2d_PKCS7_bio(to, message) == 1
c.BIO_free(to)
P
python3 - <<'P'
# Pieces in BER that is not DER: lengths that are not told ahead, and texts in chunks.
def tlv(b):
    tag, n, at = b[0], b[1], 2
    if n & 0x80:
        k = n & 0x7f; n = int.from_bytes(b[2:2 + k], "big"); at = 2 + k
    return tag, b[at:at + n], b[at + n:]
def items(b):
    while b:
        tag, value, b = tlv(b)
        yield tag, value
def der(tag, value):
    n = len(value)
    length = bytes([n]) if n < 128 else bytes([0x80 | (n.bit_length() + 7) // 8]) + n.to_bytes((n.bit_length() + 7) // 8, "big")
    return bytes([tag]) + length + value
END = b"\0\0"
def open_ended(tag, *parts): return bytes([tag | 0x20, 0x80]) + b"".join(parts) + END
def chunks(tag, value): return open_ended(tag, *[der(4, value[i:i + 100]) for i in range(0, len(value), 100)])
def whole(content):
    parts = []
    for _, info in items(tlv(content)[1]):
        (_, kind), (_, explicit) = items(info)
        tag, inner, _ = tlv(explicit)
        if tag == 4: inner = chunks(4, inner)
        else:
            (_, version), (_, encrypted) = items(inner)
            (_, a), (_, b), (_, c) = items(encrypted)
            inner = open_ended(0x30, der(2, version), open_ended(0x30, der(6, a), der(0x30, b), chunks(0x80, c)))
        parts.append(open_ended(0x30, der(6, kind), open_ended(0xa0, inner)))
    return open_ended(0x30, *parts)
for name, made, inside in ("modern.p12", "ber.p12", lambda same: same), ("no_mac.p12", "ber_inside.p12", whole):
    (_, version), (_, info), *rest = items(tlv(open(name, "rb").read())[1])
    (_, kind), (_, explicit) = items(info)
    content = chunks(4, inside(tlv(explicit)[1]))
    info = open_ended(0x30, der(6, kind), open_ended(0xa0, content))
    open(made, "wb").write(open_ended(0x30, der(2, version), info, *[der(*one) for one in rest]))
P
openssl x509 -in own.pem -outform DER -out own.der
openssl x509 -in authority.pem -outform DER -out authority.der
rm -f authority.key server.csr v1.csr extensions
