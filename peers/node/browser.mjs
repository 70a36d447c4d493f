// Chromium without a window, that trusts one key and never leaves the loopback.

import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

/** The command line: what stands without a name, and the options that every program has, with `more` of its own. */
export function commandLine(more) {
  const text = { type: "string" };
  return parseArgs({ allowPositionals: true, options: { url: text, pin: text, browser: text, ...more } });
}

/** Starts it; `options.args` are added. Whatever hangs, it is ended after `options.limit` milliseconds. */
export async function launch({ browser, pin, args = [], limit = 90_000 }) {
  const common = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    `--ignore-certificate-errors-spki-list=${pin}`,
    // ::1 is never tried where only 127.0.0.1 is served.
    "--host-resolver-rules=MAP h3.test 127.0.0.1, MAP localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  ];
  const started = await chromium.launch({ executablePath: browser, headless: true, args: [...common, ...args] });
  setTimeout(() => started.close().finally(() => process.exit(2)), limit).unref();
  return started;
}
