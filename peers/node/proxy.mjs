// Chromium as a client of a reverse proxy: what a page does, through the proxy.
//
// usage: node proxy.mjs h1|h2|h3 --url https://localhost:PORT --pin PIN --browser FILE [--size BYTES]
//
// It prints `ok NAME` or `FAILED NAME: why` for each check, and ends with 1 if any failed.

import { createHash } from "node:crypto";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { commandLine, launch } from "./browser.mjs";

const { values, positionals } = commandLine({ size: { type: "string", default: `${8 << 20}` } });
const [protocol] = positionals;
const url = new URL(values.url);
const size = Number(values.size);
const args = {
  h1: ["--disable-http2", "--disable-quic"],
  h2: ["--disable-quic"],
  h3: ["--enable-quic", `--origin-to-force-quic-on=${url.host}`],
}[protocol];
const seen = { h1: "http/1.1", h2: "h2", h3: "h3" }[protocol];

const browser = await launch({ ...values, args, limit: 600_000 });
let failed = false;
const page = await (await browser.newContext()).newPage();
page.setDefaultTimeout(300_000);
await page.goto(url.href);
await page.evaluate(prepare);

await check("everything comes by the protocol", async () => {
  const protocols = await page.evaluate(() =>
    ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type).map((one) => one.nextHopProtocol)),
  );
  expect("the protocols", [...new Set(protocols)].join(), seen);
});

await check("methods", async () => {
  for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
    const body = method.startsWith("P") ? "0123456789" : undefined;
    const echo = await page.evaluate((init) => asJson("/anything?q=%26", init), { method, body });
    expect(`the method of ${method}`, echo.method, method);
    expect("the length", echo.length, body ? 10 : 0);
  }
});

await check("a large body down", async () => {
  expect("the length", await page.evaluate((length) => patterned(`/bytes/${length}`), size), size);
  expect("the length", await page.evaluate((length) => patterned(`/chunked/${length}`), 1 << 20), 1 << 20);
});

await check("a large body up", async () => {
  // A file that the user chose: of larger bodies that a page makes itself, Chromium sends some and fails others before
  // it has opened a connection.
  const folder = mkdtempSync(join(tmpdir(), "upload-"));
  try {
    const file = join(folder, "body");
    const hash = writePattern(file, size);
    await page.evaluate(() => document.body.append(Object.assign(document.createElement("input"), { type: "file" })));
    await page.setInputFiles("input", file);
    const echo = await page.evaluate(() => {
      const [body] = document.querySelector("input").files;
      return asJson("/anything", { method: "POST", body });
    });
    expect("the length", echo.length, size);
    expect("the hash", echo.sha256, hash);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

if (protocol !== "h1") {
  await check("an upload that streams", async () => {
    // The browser sends bodies of unknown length only over HTTP/2 and HTTP/3.
    const echo = await page.evaluate(() => {
      let left = 64;
      const body = new ReadableStream({
        pull(controller) {
          controller.enqueue(new Uint8Array(10_000));
          if (--left === 0) controller.close();
        },
      });
      return asJson("/anything", { method: "POST", body, duplex: "half" });
    });
    expect("the length", echo.length, 640_000);
  });
}

await check("redirects are followed", async () => {
  const end = await page.evaluate(async () => {
    const response = await fetch("/redirect/3");
    return [response.status, new URL(response.url).pathname, response.redirected];
  });
  expect("the end", end.join(), "200,/anything,true");
});

await check("statuses and compression", async () => {
  for (const status of [200, 204, 400, 404, 418, 503]) {
    expect("the status", await page.evaluate(async (status) => (await fetch(`/status/${status}`)).status, status), status);
  }
  const [text, encoding] = await page.evaluate(async () => {
    const response = await fetch("/text");
    return [(await response.text()).length, response.headers.get("content-encoding")];
  });
  if (text < 100_000 || !["zstd", "br", "gzip"].includes(encoding)) throw new Error(`${text} bytes of ${encoding}`);
});

await check("events one by one", async () => {
  const events = await page.evaluate(
    (name) =>
      new Promise((resolve, reject) => {
        const source = new EventSource(`/events/${name}?n=5`);
        const events = [];
        source.onmessage = async (event) => {
          events.push(event.data);
          // After the last one the stream ends, which is an error to whoever still listens.
          if (events.length === 5) source.close();
          await fetch(`/ack/${name}/${event.lastEventId}`);
          if (events.length === 5) resolve(events);
        };
        source.onerror = () => reject(new Error(`an error after ${events.length} events`));
      }),
    crypto.randomUUID(),
  );
  expect("the last event", events.at(-1), "event 4");
});

await check("a websocket", async () => {
  const result = await page.evaluate(
    () =>
      new Promise((resolve, reject) => {
        const socket = new WebSocket(`wss://${location.host}/ws`, ["echo"]);
        socket.binaryType = "arraybuffer";
        const large = new Uint8Array(2 << 20).fill(7);
        socket.onopen = () => socket.send("grüße");
        socket.onmessage = ({ data }) => {
          if (data === "grüße") socket.send(large);
          else socket.close(1000, data.byteLength === large.length ? "right" : "wrong");
        };
        socket.onclose = ({ code, reason, wasClean }) => resolve([socket.protocol, code, reason, wasClean].join());
        socket.onerror = () => reject(new Error("the WebSocket failed"));
      }),
  );
  if (!result.startsWith("echo,1000,") || !result.endsWith("true") || result.includes("wrong")) throw new Error(result);
});

await check("an aborted upload reaches the upstream", async () => {
  const name = crypto.randomUUID();
  await page.evaluate(async (name) => {
    const controller = new AbortController();
    const body = new Blob(Array.from({ length: 400 }, () => new Uint8Array(1 << 20)));
    const sent = fetch(`/upload/${name}`, { method: "POST", body, signal: controller.signal }).catch(() => {});
    await ended(name, "begun");
    controller.abort();
    await sent;
  }, name);
  const state = await page.evaluate((name) => ended(name, "aborted", "whole"), name);
  // A browser may have handed over everything before it gave up: then nothing is to be seen.
  if (!["aborted", "whole"].includes(state)) throw new Error(`the upload is ${state}`);
});

await check("an aborted download reaches the upstream", async () => {
  const name = crypto.randomUUID();
  const state = await page.evaluate(async (name) => {
    const controller = new AbortController();
    const response = await fetch(`/endless/${name}`, { signal: controller.signal });
    await response.body.getReader().read();
    controller.abort();
    return ended(name, "aborted");
  }, name);
  expect("the download", state, "aborted");
});

await check("a broken response is an error", async () => {
  const outcome = await page.evaluate(() =>
    fetch("/broken")
      .then((response) => response.text())
      .then(
        (text) => `whole: ${text}`,
        () => "error",
      ),
  );
  expect("the outcome", outcome, "error");
});

await browser.close();
process.exit(failed ? 1 : 0);

async function check(name, run) {
  try {
    await run();
    console.log(`ok ${name}`);
  } catch (error) {
    failed = true;
    console.log(`FAILED ${name}: ${error.message}`);
  }
}

function expect(what, seen, wanted) {
  if (seen !== wanted) throw new Error(`${what}: expected ${wanted}, came ${seen}`);
}

/** Fills a file, and gives the hash of it. */
function writePattern(file, size) {
  const piece = Buffer.alloc(1 << 20, "upload ");
  const hash = createHash("sha256");
  const open = openSync(file, "w");
  for (let at = 0; at < size; at += piece.length) {
    const part = piece.subarray(0, size - at);
    hash.update(part);
    writeSync(open, part);
  }
  closeSync(open);
  return hash.digest("hex");
}

/** Runs in the page: functions that the checks use there. */
function prepare() {
  globalThis.asJson = async (path, init) => {
    const response = await fetch(path, { cache: "no-store", ...init });
    if (response.status !== 200) throw new Error(`${path}: status ${response.status}`);
    return response.json();
  };
  // Reads the upstream's pattern and returns its length; throws where it differs.
  globalThis.patterned = async (path) => {
    const pattern = Uint8Array.from({ length: 65521 }, (_, index) => index * 31 + (index >> 8) * 7);
    const reader = (await fetch(path, { cache: "no-store" })).body.getReader();
    let length = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return length;
      for (let index = 0, at = length % 65521; index < value.length; index += 1) {
        if (value[index] !== pattern[at]) throw new Error(`byte ${length + index} is wrong`);
        at = at === 65520 ? 0 : at + 1;
      }
      length += value.length;
    }
  };
  // Waits until an upload or download is in one of the states.
  globalThis.ended = async (name, ...wanted) => {
    let state;
    for (let turn = 0; turn < 300; turn += 1) {
      ({ state } = await asJson(`/ended/${name}`));
      if (wanted.includes(state)) return state;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return state;
  };
}
