// Opens a WebTransport session in headless Chromium to a server that sends back what comes, uses everything there is in it,
// and prints what happened as one line of JSON.
//
// usage: node webtransport.mjs --url URL --certificate FILE --browser FILE [--netlog FILE]
//
// The certificate is the server's, which the page names by its hash: nobody else need trust it.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { commandLine, launch } from "./browser.mjs";

const { values } = commandLine({ certificate: { type: "string" }, netlog: { type: "string" } });
const args = [];
if (values.netlog) {
  args.push(`--log-net-log=${values.netlog}`, "--net-log-capture-mode=Everything");
}

const certificate = new X509Certificate(readFileSync(values.certificate));
const hash = certificate.fingerprint256.replaceAll(":", "");

// A page of the loopback is a secure context, which WebTransport asks for.
const pages = createServer((_, response) => response.end("<!doctype html><title>a page</title>"));
await new Promise((resolve) => pages.listen(0, "127.0.0.1", resolve));
const browser = await launch({ ...values, args });
try {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`http://127.0.0.1:${pages.address().port}/`);
  const seen = await page.evaluate(exercise, { url: values.url, hash });
  console.log(JSON.stringify({ browser: browser.version(), ...seen }));
} finally {
  await browser.close();
  pages.close();
}

// Runs in the page.
async function exercise({ url, hash }) {
  const value = Uint8Array.from(hash.match(/../g), (byte) => parseInt(byte, 16));
  const open = (path) =>
    new WebTransport(new URL(path, url).href, { serverCertificateHashes: [{ algorithm: "sha-256", value }] });
  const all = async (readable) => new Uint8Array(await new Response(readable).arrayBuffer());
  const sent = (length) => Uint8Array.from({ length }, (_, index) => index % 251);
  const same = (a, b) => a.length === b.length && a.every((byte, index) => byte === b[index]);
  const write = async (writable, bytes) => {
    const writer = writable.getWriter();
    await writer.write(bytes);
    await writer.close();
  };
  const seen = {};

  const session = open("/echo");
  await session.ready;
  seen.ready = true;

  const content = sent(300_000);
  const both = await session.createBidirectionalStream();
  const [back] = await Promise.all([all(both.readable), write(both.writable, content)]);
  seen.bidirectional = same(back, content);

  const incoming = session.incomingUnidirectionalStreams.getReader();
  await write(await session.createUnidirectionalStream(), content);
  seen.unidirectional = same(await all((await incoming.read()).value), content);

  const many = await Promise.all(
    Array.from({ length: 50 }, async (_, number) => {
      const stream = await session.createBidirectionalStream();
      const [answer] = await Promise.all([all(stream.readable), write(stream.writable, sent(number))]);
      return same(answer, sent(number));
    }),
  );
  seen.many = many.every(Boolean);

  // Datagrams may get lost: one of several comes back.
  const datagrams = session.datagrams.readable.getReader();
  const writer = (session.datagrams.writable ?? session.datagrams.createWritable()).getWriter();
  for (let turn = 0; turn < 5; turn += 1) {
    await writer.write(new TextEncoder().encode("datagram"));
  }
  seen.datagram = new TextDecoder().decode((await datagrams.read()).value);

  // The server is asked to reset a stream with a code.
  const resetting = open("/reset");
  await resetting.ready;
  const stream = await resetting.createBidirectionalStream();
  await write(stream.writable, sent(1));
  seen.reset = await stream.readable.getReader().read().then(
    () => "an end",
    (error) => ({ source: error.source, code: error.streamErrorCode }),
  );
  resetting.close();

  // And to open a stream of its own, and to close a session with a code and a reason.
  const closing = open("/close");
  await closing.ready;
  const opened = (await closing.incomingBidirectionalStreams.getReader().read()).value;
  seen.opened = new TextDecoder().decode(await all(opened.readable));
  await opened.writable.close();
  seen.closed = await closing.closed.then(
    ({ closeCode, reason }) => ({ closeCode, reason }),
    (error) => String(error),
  );

  const refused = open("/refused");
  seen.refused = await refused.ready.then(
    () => "a session",
    (error) => error.name,
  );

  session.close({ closeCode: 4_000_000_000, reason: "that was all" });
  seen.end = await session.closed;
  return seen;
}
