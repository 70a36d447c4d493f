// Loads a page in headless Chromium and prints, as one line of JSON, which protocol brought what.
//
// usage: node chromium.mjs forced|alt-svc --url URL --pin PIN --browser FILE [--screenshot FILE] [--netlog FILE]
//
// forced: QUIC from the first byte on. alt-svc: the first page comes over TCP and its Alt-Svc header leads to
// QUIC; naming an unused port of the host as forced allows a private certificate authority there without
// forcing anything.

import { commandLine, launch } from "./browser.mjs";

const { values, positionals } = commandLine({ screenshot: { type: "string" }, netlog: { type: "string" } });
const mode = positionals[0];
const url = new URL(values.url);
const forced = mode === "forced" ? url.host : `${url.hostname}:1`;

const args = ["--enable-quic", `--origin-to-force-quic-on=${forced}`];
if (values.netlog) {
  args.push(`--log-net-log=${values.netlog}`, "--net-log-capture-mode=Everything");
}
const browser = await launch({ ...values, args });
try {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(20000);
  const first = await visit(page, url);
  if (values.screenshot) {
    await page.screenshot({ path: values.screenshot, fullPage: true });
  }
  const fetched = await fetchUntilH3(page);
  const second = await visit(page, new URL("?second", url));
  console.log(JSON.stringify({ mode, browser: browser.version(), first, fetched, second }));
} finally {
  await browser.close();
}

// The protocol of the page itself and of what it loaded; what came from the cache is left out.
async function visit(page, address) {
  const response = await page.goto(address.href, { waitUntil: "networkidle" });
  const entries = await page.evaluate(() =>
    ["navigation", "resource"].flatMap((type) =>
      performance.getEntriesByType(type).map((entry) => ({
        type,
        path: new URL(entry.name).pathname,
        protocol: entry.nextHopProtocol,
        transferred: entry.transferSize,
      })),
    ),
  );
  const of = (type) =>
    entries
      .filter((entry) => entry.type === type && entry.transferred > 0)
      .map(({ path, protocol }) => ({ path, protocol }));
  return { status: response.status(), navigation: of("navigation")[0], resources: of("resource") };
}

// Fetches the page again and again, past the cache, until QUIC brings it, and returns every protocol seen.
async function fetchUntilH3(page) {
  return page.evaluate(async () => {
    const seen = [];
    for (let turn = 0; turn < 50 && seen.at(-1) !== "h3"; turn += 1) {
      const address = new URL(`?turn=${turn}`, location.href).href;
      await (await fetch(address, { cache: "no-store" })).arrayBuffer();
      // The entry appears a moment after the body.
      await new Promise((resolve) => setTimeout(resolve, 100));
      seen.push(performance.getEntriesByName(address).at(-1)?.nextHopProtocol ?? "unknown");
    }
    return seen;
  });
}
