/** A call without a credential, in the page: a button opens the URL at which a person permits it. */

import { ToolRegistry } from "@plue/tools";
import { memoryCallStore, storedTickets } from "@plue/tools/calls";
import { credentials, oauthCallback } from "@plue/tools/credentials";
import { explorer } from "@plue/tools/explorer";
import { bearerAuth, createToolHandler } from "@plue/tools/hono";
import { assertEquals } from "@std/assert";
import { describe } from "bun:test";
import { startOAuthServer } from "../oauth/server.ts";
import { sourceFor, whoami } from "../oauth/world.ts";
import { serve } from "../runtime/serve.ts";
import { freePort } from "../support/free_port.ts";
import { maybe } from "../support/skip.ts";
import { CHROMIUM, openPage, startBrowser } from "./browser.ts";

const test = maybe(CHROMIUM !== undefined, "Chromium is not here");

/** Serves a tool that needs a credential of ann, whose browser has a cookie. */
async function startService() {
  const port = await freePort();
  const hub = await startOAuthServer(`http://127.0.0.1:${port}/oauth/callback`);
  const source = sourceFor(hub);
  const app = createToolHandler(new ToolRegistry({ tools: [whoami(hub)] }), {
    explorer,
    selection: { maxRisk: "medium" },
    authorize: bearerAuth({ tokens: new Map([["ann-at-the-tools", { principal: "ann" }]]) }),
    dispatch: { credentials: credentials(source), tickets: storedTickets(memoryCallStore()) },
  });
  const callback = oauthCallback(source, {
    authorize: ({ headers }) => ({
      principal: /session=(\w+)/.exec(headers.get("cookie") ?? "")?.[1],
    }),
  });
  app.get(callback.path, ({ req }) => callback(req.raw));
  const served = await serve(app.fetch, port);
  return {
    ...{ hub, url: served.url },
    async [Symbol.asyncDispose]() {
      await served.stop();
      await hub[Symbol.asyncDispose]();
    },
  };
}

describe("a call without a credential in the page", () => {
  test("waits with a button that opens the URL, and continues by itself after the callback", async () => {
    await using service = await startService();
    const browser = await startBrowser();
    const { page, wrongs } = await openPage(browser, `${service.url}/#/tool/whoami/try`);
    await page.context().addCookies([
      { name: "person", value: "ann-at-the-hub", url: service.hub.url },
      { name: "session", value: "ann", url: service.url },
    ]);
    await page.getByLabel("Bearer token").fill("ann-at-the-tools");
    await page.getByRole("button", { name: "Use it" }).click();
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText('Allow "whoami" to act as you at hub (repo)').waitFor();
    const { host } = new URL(service.hub.url);
    const [opened] = await Promise.all([
      page.context().waitForEvent("page"),
      page.getByRole("button", { name: `Open ${host}` }).click(),
    ]);
    await opened.getByText("The call continues by itself.").waitFor();
    await page.getByRole("region", { name: "Result" }).getByText("ann-at-the-hub").waitFor();
    assertEquals(service.hub.api.map(({ account }) => account), ["ann-at-the-hub"]);
    assertEquals(await wrongs(), []);
    await browser.close();
  });
});
