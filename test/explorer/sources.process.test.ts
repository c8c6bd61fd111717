import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { afterAll, beforeAll, describe } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { bearer, type Gateway, gatewayIn } from "../cli/gateway/serving.ts";
import { folder } from "../cli/support.ts";
import { maybe } from "../support/skip.ts";
import { axe, CHROMIUM, openPage, type PageOptions, startBrowser } from "./browser.ts";

const test = maybe(CHROMIUM !== undefined, "Chromium is not here");
const files = folder();
const gateway = gatewayIn(files);
let browser: Browser;
beforeAll(async () => {
  if (CHROMIUM !== undefined) browser = await startBrowser();
});
afterAll(() => browser?.close());

const token = (name: string): string => `${name}-of-the-page-test`;

const callers = {
  tokens: {
    op: { token: token("op"), operator: true },
    eye: { token: token("eye"), explain: true },
    ann: { token: token("ann") },
  },
};

const toolList = (names: readonly string[], description: string): string =>
  JSON.stringify({
    tools: names.map((name) => ({ name, description, inputSchema: { type: "object" } })),
  });

/** Serves a source with a changed, a new and a missing tool, and an unavailable source. */
async function serveHeld(name: string): Promise<Gateway> {
  const settings = {
    sources: {
      docs: { from: `${name}-list.json`, pins: `${name}-pins.json` },
      far: { url: "http://127.0.0.1:9/mcp" },
    },
    callers,
  };
  await files.write(`${name}-list.json`, toolList(["read", "old"], "Reads."));
  await using first = await gateway(`${name}.json`, settings);
  assertEquals(await first.tools(bearer(token("op"))), ["docs:old", "docs:read"]);
  await files.write(`${name}-list.json`, toolList(["read", "write"], "Reads all your files."));
  return await gateway(`${name}.json`, settings);
}

/** Opens the page of sources with the token of a caller. */
async function look(
  { url }: Gateway,
  caller: string,
  use: (page: Page) => Promise<void>,
  options: PageOptions = {},
): Promise<void> {
  const { page, wrongs, close } = await openPage(browser, `${url}/#/sources`, options);
  page.setDefaultTimeout(20_000);
  try {
    await page.getByLabel("Bearer token").fill(token(caller));
    await page.getByRole("button", { name: "Use it" }).click();
    await use(page);
    assertEquals(await wrongs(), []);
  } finally {
    await close();
  }
}

const details = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
const approvals = (page: Page) => page.getByRole("button", { name: /^(Approve|Forget) docs:/ });

describe("the page of sources", () => {
  test("shows an operator what has changed, and approves it with the keyboard", async () => {
    await using served = await serveHeld("keyboard");
    await look(served, "op", async (page) => {
      await page.getByText("2 sources, 3 tools held back").waitFor();
      const changes = page.getByRole("region", { name: "Changes of docs:read of docs" });
      assertStringIncludes(await changes.textContent() ?? "", "− Reads.+ Reads all your files.");
      assertEquals(await approvals(page).count(), 3);
      assertEquals(await axe(page), []);

      await page.getByRole("button", { name: "Approve docs:read of docs" }).focus();
      await page.keyboard.press("Enter");
      await page.getByText("Approved docs:read").waitFor();
      assertEquals(await page.evaluate(() => document.activeElement?.textContent), "docs");
      await page.getByRole("link", { name: "Sources 2 held back" }).waitFor();
      assertEquals(await served.tools(bearer(token("ann"))), ["docs:read"]);

      await page.getByRole("button", { name: "Approve all 2" }).click();
      await details(page, "docs").getByText("connected").waitFor();
      assertEquals(await served.tools(bearer(token("ann"))), ["docs:read", "docs:write"]);
    });
  });

  test("shows why a source is unavailable, and since when", async () => {
    await using served = await serveHeld("reason");
    await look(served, "eye", async (page) => {
      const far = details(page, "far");
      await far.getByText(/^Cannot import the MCP server at http:/).waitFor();
      assertMatch(await far.textContent() ?? "", /MCP over HTTP: 127.0.0.1:9unavailable since \d/);
    });
  });

  test("shows other callers no buttons, or no sources", async () => {
    await using served = await serveHeld("rights");
    await look(served, "eye", async (page) => {
      await page.getByText('the token of a caller with "operator": true').waitFor();
      assertEquals(await approvals(page).count(), 0);
    });
    await look(served, "ann", async (page) => {
      await page.getByText("You may not see the sources.").waitFor();
      await page.getByText("live", { exact: true }).waitFor();
      assertEquals(await page.getByRole("link", { name: "Sources" }).count(), 0);
    });
  });

  for (const scheme of ["light", "dark"] as const) {
    test(`fits a phone, and has enough contrast in ${scheme} colours`, async () => {
      await using served = await serveHeld(scheme);
      await look(served, "op", async (page) => {
        await page.getByText("2 sources, 3 tools held back").waitFor();
        assertEquals(await axe(page), []);
        const isWide = () => document.documentElement.scrollWidth > innerWidth;
        assertEquals(await page.evaluate(isWide), false);
      }, { width: 390, height: 844, scheme });
    });
  }
});
