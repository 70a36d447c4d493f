// An upstream for a reverse proxy, in Node: HTTP/1.1 with everything that tests ask of it.
//
// usage: node upstream.mjs [--listen ADDR:PORT] [--h2c]
//
// It prints `listening ADDR:PORT` when it does. `peers/README.md` says what its paths answer;
// `peers/python/upstream.py` answers the same. With --h2c it speaks HTTP/2 without TLS instead (no WebSockets).

import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { WebSocketServer } from "ws";

const { values } = parseArgs({
  options: { listen: { type: "string", default: "127.0.0.1:0" }, h2c: { type: "boolean", default: false } },
});

// Its length is a prime: whatever is lost, doubled or out of order shows.
const PATTERN = Buffer.from(Array.from({ length: 65521 }, (_, index) => (index * 31 + (index >> 8) * 7) & 0xff));
const TEXT = Buffer.from(
  Array.from({ length: 3000 }, (_, line) => `line ${line} of a text that compresses well\n`).join(""),
);
// How uploads and downloads ended, by their names.
const ends = new Map();
// Who waits for the acknowledgement of an event, or that it has come.
const acks = new Map();

function ack(name) {
  if (!acks.has(name)) {
    let come;
    const promise = new Promise((resolve) => (come = resolve));
    acks.set(name, { promise, come });
  }
  return acks.get(name);
}

// Writes and waits until there is room for more; false once the client has gone.
async function write(response, piece) {
  if (response.destroyed || response.closed) return false;
  if (response.write(piece)) return true;
  return new Promise((resolve) => {
    const settle = (there) => () => {
      response.off("drain", drained).off("close", closed);
      resolve(there);
    };
    const [drained, closed] = [settle(true), settle(false)];
    response.on("drain", drained).on("close", closed);
  });
}

async function writePattern(response, length) {
  for (let at = 0; at < length; at += PATTERN.length) {
    if (!(await write(response, PATTERN.subarray(0, Math.min(PATTERN.length, length - at))))) return;
  }
  response.end();
}

async function digest(request) {
  const hash = createHash("sha256");
  let length = 0;
  for await (const piece of request) {
    hash.update(piece);
    length += piece.length;
  }
  return { sha256: hash.digest("hex"), length };
}

function pairs(raw) {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index].toLowerCase(), raw[2 * index + 1]]);
}

function answer(response, status, body = "", headers = {}) {
  const content = [204, 304].includes(status) ? {} : { "content-length": Buffer.byteLength(body) };
  response.writeHead(status, { "content-type": "text/plain", ...content, ...headers });
  response.end([204, 304].includes(status) ? undefined : body);
}

function json(response, value) {
  answer(response, 200, JSON.stringify(value), { "content-type": "application/json" });
}

const PATHS = {
  "": (_request, response) =>
    answer(response, 200, "<!doctype html><title>upstream</title><p>a page\n", { "content-type": "text/html" }),
  ack: (_request, response, rest) => {
    ack(rest).come();
    answer(response, 204);
  },
  anything: async (request, response) => {
    const { sha256, length } = await digest(request);
    const headers = pairs(request.rawHeaders).filter(([name]) => !name.startsWith(":"));
    const trailers = pairs(request.rawTrailers ?? []);
    json(response, { method: request.method, target: request.url, headers, length, sha256, trailers });
  },
  broken: (request, response) => {
    response.writeHead(200, { "content-type": "text/plain", "content-length": 1000 });
    response.write("only this", () => (request.stream ?? request.socket).destroy());
  },
  bytes: async (request, response, rest) => {
    response.writeHead(200, { "content-type": "application/octet-stream", "content-length": rest });
    await (request.method === "HEAD" ? response.end() : writePattern(response, Number(rest)));
  },
  chunked: async (_request, response, rest) => {
    response.writeHead(200, { "content-type": "application/octet-stream" });
    await writePattern(response, Number(rest));
  },
  close: (request) => (request.stream ?? request.socket).destroy(),
  cookies: (_request, response) => answer(response, 200, "", { "set-cookie": ["a=1", "b=2; Path=/"] }),
  delay: (_request, response, rest) => void setTimeout(() => answer(response, 200, "late\n"), Number(rest)),
  ended: (_request, response, rest) => json(response, { state: ends.get(rest) ?? "none" }),
  endless: async (_request, response, rest) => {
    ends.set(rest, "begun");
    response.writeHead(200, { "content-type": "application/octet-stream" });
    while (await write(response, PATTERN));
    ends.set(rest, "aborted");
  },
  etag: (request, response) => {
    const unchanged = request.headers["if-none-match"] === '"one"';
    answer(response, unchanged ? 304 : 200, unchanged ? "" : "one\n", { etag: '"one"' });
  },
  events: async (request, response, rest) => {
    const count = Number(new URL(request.url, "http://h").searchParams.get("n") ?? 5);
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    for (let number = 0; number < count; number += 1) {
      response.write(`id: ${number}\ndata: event ${number}\n\n`);
      // The next one goes out only when somebody says that this one has come.
      await ack(`${rest}/${number}`).promise;
    }
    response.end();
  },
  gzip: (_request, response) => answer(response, 200, gzipSync(TEXT), { "content-encoding": "gzip" }),
  headers: (_request, response, rest) =>
    answer(
      response,
      200,
      "many\n",
      Object.fromEntries(Array.from({ length: Number(rest) }, (_, index) => [`x-header-${index}`, "v".repeat(100)])),
    ),
  hints: (_request, response) => {
    response.writeEarlyHints({ link: "</style.css>; rel=preload" });
    answer(response, 200, "hinted\n");
  },
  redirect: (_request, response, rest) => {
    const left = Number(rest);
    answer(response, 302, "", { location: left > 1 ? `/redirect/${left - 1}` : "/anything" });
  },
  reject: (_request, response) => answer(response, 413, "too much\n", values.h2c ? {} : { connection: "close" }),
  status: (_request, response, rest) => answer(response, Number(rest), "as you like\n"),
  text: (_request, response) => answer(response, 200, TEXT, { etag: '"text"' }),
  trailers: (_request, response) => {
    const body = "a body with trailers\n";
    const checksum = createHash("sha256").update(body).digest("hex");
    response.writeHead(200, { "content-type": "text/plain", trailer: "x-checksum, x-second" });
    response.write(body);
    response.addTrailers({ "x-checksum": checksum, "x-second": "2" });
    response.end();
  },
  upload: async (request, response, rest) => {
    ends.set(rest, "begun");
    try {
      const { length } = await digest(request);
      ends.set(rest, "whole");
      json(response, { length });
    } catch {
      ends.set(rest, "aborted");
    }
  },
};

function handle(request, response) {
  const [, first, rest] = /^\/([^/?]*)\/?([^?]*)/.exec(request.url) ?? [];
  const handler = PATHS[first];
  Promise.resolve(handler ? handler(request, response, rest) : answer(response, 404, "no such path\n")).catch(() => {
    // The client has gone, which those who ask for it learn from /ended.
  });
}

const server = values.h2c ? createHttp2Server() : createServer({ maxHeaderSize: 256 << 10, requestTimeout: 0 });
server.on("request", handle);
server.on("sessionError", () => {});
if (!values.h2c) {
  // Whoever waits for permission gets it only where the body is wanted.
  server.on("checkContinue", (request, response) => {
    if (!request.url.startsWith("/reject")) response.writeContinue();
    handle(request, response);
  });
  const sockets = new WebSocketServer({
    server,
    path: "/ws",
    handleProtocols: (wanted) => (wanted.has("echo") ? "echo" : false),
  });
  sockets.on("connection", (socket) => {
    socket.on("error", () => {});
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
}
const at = values.listen.lastIndexOf(":");
server.listen(Number(values.listen.slice(at + 1)), values.listen.slice(0, at), 4096, () => {
  const { address, port } = server.address();
  console.log(`listening ${address}:${port}`);
});
