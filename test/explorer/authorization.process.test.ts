/** A call without a credential, in the page: a button opens the URL at which a person permits it. */

import { explorer } from "@plue/tools/explorer";
import { assertEquals } from "@std/assert";
import { describe } from "bun:test";
import { startService } from "../oauth/world.ts";
import { maybe } from "../support/skip.ts";
import { CHROMIUM, openPage, startBrowser } from "./browser.ts";

const test = maybe(CHROMIUM !== undefined, "Chromium is not here");

describe("a call without a credential in the page", () => {
  test("waits with a button that opens the URL, and continues by itself after the callback", async () => {
    await using service = await startService({ explorer });
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
    await opened.getByText("A waiting call continues.").waitFor();
    await page.getByRole("region", { name: "Result" }).getByText("ann-at-the-hub").waitFor();
    assertEquals(service.hub.api.map(({ account }) => account), ["ann-at-the-hub"]);
    assertEquals(await wrongs(), []);
    await browser.close();
  });
});
