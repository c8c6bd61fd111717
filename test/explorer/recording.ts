/**
 * Records the moving picture of the README: `node test/explorer/recording.ts`. It serves the
 * OpenAPI document of a shop with the command, calls a tool on the page and another one from a
 * terminal, and approves the call on the page. Needs Chromium and ffmpeg.
 */

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { serve } from "../runtime/serve.ts";
import type { Locator } from "playwright-core";
import { openPage, startBrowser } from "./browser.ts";

const ROOT = join(import.meta.dirname, "../..");
const PICTURE = process.argv[2] ?? join(ROOT, "docs/explorer/recording.webp");
const FRAMES_PER_SECOND = 8;
const order = { name: "order", in: "path", required: true, schema: { type: "string" } };
const euros = { euros: { type: "number", minimum: 1 } };
const body = { content: { "application/json": { schema: { type: "object", properties: euros } } } };
const responses = { 200: { description: "The answer" } };
const get = (
  operationId: string,
  summary: string,
  ...parameters: object[]
) => ({ get: { operationId, summary, parameters, responses } });
const DOCUMENT = {
  openapi: "3.1.0",
  info: { title: "A shop", version: "1" },
  paths: {
    "/orders": get("list_orders", "List the open orders"),
    "/orders/{order}": get("get_order", "Get an order", order),
    "/orders/{order}/invoice": get("get_invoice", "Get the invoice of an order", order),
    "/products": get("find_products", "Find products by their names"),
    "/orders/{order}/refund": {
      post: {
        operationId: "refund",
        summary: "Refund an order",
        parameters: [order],
        requestBody: { required: true, ...body },
        responses,
      },
    },
  },
};
const RULES = [{ tool: "shop:refund", when: { "/euros": { maximum: 50 } }, else: "ask" }];
const folder = mkdtempSync(join(tmpdir(), "plue-recording-"));
const products = [{ name: "Lamp", euros: 80 }, { name: "Chair", euros: 45 }];
const shop = await serve(
  async (request) =>
    Response.json(request.method === "GET" ? products : { refunded: (await request.json()).euros }),
  9_080,
);
writeFileSync(join(folder, "shop.json"), JSON.stringify(DOCUMENT));
writeFileSync(join(folder, "rules.json"), JSON.stringify(RULES));
const browser = await startBrowser();
const height = 640;
const terminal = await openPage(browser, "data:text/html,<pre></pre>", { width: 560, height });
const { page } = await openPage(browser, "about:blank", { width: 800, height });
await terminal.page.addStyleTag({
  content: `body { margin: 0; background: #14161a; color: #d8dce2 }
    pre { font: 13px/1.5 monospace; padding: 16px; margin: 0; white-space: pre-wrap }`,
});

let frame = 0;
/** Takes the pictures of this number of seconds. */
async function record(seconds: number): Promise<void> {
  for (let left = Math.ceil(seconds * FRAMES_PER_SECOND); left > 0; left--) {
    const name = String(frame++).padStart(4, "0");
    const [text, shown] = await Promise.all([terminal.page.screenshot(), page.screenshot()]);
    writeFileSync(join(folder, `terminal-${name}.png`), text);
    writeFileSync(join(folder, `page-${name}.png`), shown);
  }
}

const print = (text: string) =>
  terminal.page.evaluate((more) => {
    document.querySelector("pre")?.append(more);
    scrollTo(0, document.body.scrollHeight);
  }, text);

/** Types a command, runs it in a shell, and prints its output. */
async function run(command: string) {
  await print("\n$ ");
  for (const part of command.match(/.{1,9}/gs) ?? []) await print(part).then(() => record(0.1));
  await print("\n");
  const plue = `plue() { exec bun '${ROOT}/src/cli/main.ts' "$@"; }\n`;
  const child = spawn("sh", ["-c", plue + command], { cwd: folder, detached: true });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (output: string) => void print(output));
  }
  return child;
}

/** Moves a dot, in place of the pointer, to an element, and clicks. */
async function click(target: Locator): Promise<void> {
  const box = await target.boundingBox();
  await page.evaluate(([x, y]) => {
    const dot = document.querySelector<HTMLElement>("#dot") ??
      document.body.appendChild(Object.assign(document.createElement("div"), { id: "dot" }));
    Object.assign(dot.style, {
      ...{ position: "fixed", left: `${x}px`, top: `${y}px`, width: "18px", height: "18px" },
      ...{ borderRadius: "9px", background: "#e5484d99", zIndex: "9999", pointerEvents: "none" },
    });
  }, [(box?.x ?? 0) + (box?.width ?? 0) / 2 - 9, (box?.y ?? 0) + (box?.height ?? 0) / 2 - 9]);
  await record(0.8);
  await target.click();
}

const origin = "http://127.0.0.1:8787";
const printed = (text: RegExp) => terminal.page.getByText(text).waitFor({ timeout: 60_000 });
const server = await run(`plue serve shop=shop.json --rules rules.json --base-url ${shop.url}`);
await printed(/8787\/mcp/);
await record(1.5);
await page.goto(origin);
await page.getByText("Try it").first().waitFor();
await record(2);
await click(page.getByText("Try it").first());
await page.getByRole("button", { name: "Run", exact: true }).waitFor();
await record(0.5);
await click(page.getByRole("button", { name: "Run", exact: true }));
await page.getByText("succeeded").waitFor();
await record(2);
const call = JSON.stringify({ arguments: { order: "4711", euros: 80 } });
await run(
  `curl -s --json '${call}' -H "prefer: respond-async" \\\n` +
    `  ${origin}/tools/shop:refund/execute | jq -r .id | tee id`,
);
await printed(/tee id\s+[\w-]{20}/);
await record(0.5);
await page.goto(`${origin}/#/call/${readFileSync(join(folder, "id"), "utf8").trim()}`);
await page.getByRole("button", { name: "Approve" }).waitFor();
await record(2.5);
await click(page.getByRole("button", { name: "Approve" }));
await page.getByText("succeeded").waitFor();
await record(1);
await run(
  `curl -s ${origin}/calls/$(cat id) | jq -c '[.status, .result.content]'`,
);
await printed(/"completed"/);
await record(3);

const pictures = ["terminal", "page"].flatMap((name) => {
  return ["-framerate", `${FRAMES_PER_SECOND}`, "-i", join(folder, `${name}-%04d.png`)];
});
const form = ["-filter_complex", "hstack", "-c:v", "libwebp_anim", "-lossless", "1", "-loop", "0"];
const { status } = spawnSync("ffmpeg", ["-y", "-v", "error", ...pictures, ...form, PICTURE], {
  stdio: "inherit",
});
process.kill(-Number(server.pid));
await Promise.all([browser.close(), shop.stop()]);
rmSync(folder, { recursive: true });
process.exitCode = status ?? 1;
