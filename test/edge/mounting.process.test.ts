/** The lines of docs/http.md that mount the handler in another framework, unchanged. */

import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const GUIDE = new URL("../../docs/http.md", import.meta.url);

/** The exports of the code after `heading`. The code is written next to the frameworks. */
async function codeAfter(heading: string): Promise<Record<string, unknown>> {
  const text = readFileSync(GUIDE, "utf8");
  const [, code = ""] = /```js[^\n]*\n(.*?)```/s.exec(text.slice(text.indexOf(heading))) ?? [];
  const folder = mkdtempSync(join(import.meta.dirname, "node_modules", ".mounting-"));
  try {
    const file = join(folder, "app.mjs");
    writeFileSync(file, code);
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const CALL = {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: '{"arguments":{"text":"hi"}}',
};

/** The response of a mounted handler to a call, and of its app to another request. */
async function ask(server: Server): Promise<readonly unknown[]> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const called = await fetch(`${origin}/agent/tools/echo/execute`, CALL);
    const { content } = await called.json() as { readonly content: unknown };
    const rest = await fetch(origin);
    return [called.status, content, await rest.text()];
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const EXPECTED = [200, "hi", "the rest of the app"];

describe("docs/http.md", () => {
  it("mounts the tools under Express", async () => {
    const { app } = await codeAfter("\nExpress:") as { readonly app: () => void };
    assertEquals(await ask(createServer(app)), EXPECTED);
  });

  it("mounts the tools under Fastify", async () => {
    const { app } = await codeAfter("\nFastify reads") as {
      readonly app: { ready(): Promise<void>; readonly server: Server };
    };
    await app.ready();
    assertEquals(await ask(app.server), EXPECTED);
  });

  it("mounts the tools as a route of Next", async () => {
    const { POST } = await codeAfter("\nNext, in") as {
      readonly POST: (request: Request) => Promise<Response>;
    };
    const response = await POST(new Request("http://localhost/agent/tools/echo/execute", CALL));
    assertEquals((await response.json() as { readonly content: unknown }).content, "hi");
  });
});
