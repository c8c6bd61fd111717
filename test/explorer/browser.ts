/**
 * Opens the page in Chromium. Each open page records violations of its Content-Security-Policy,
 * requests to other hosts, and exceptions.
 */

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import process from "node:process";
import { type Browser, chromium, type Page } from "playwright-core";

/** The names of Chromium. The first program needs a third less processor time. */
const PROGRAMS = ["chromium-headless-shell", "chromium", "chromium-browser"];
/** The path of Chromium, if it is installed. */
export const CHROMIUM: string | undefined = PROGRAMS
  .flatMap((name) => (process.env["PATH"] ?? "").split(delimiter).map((path) => join(path, name)))
  .find(existsSync);

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    ...(CHROMIUM === undefined ? {} : { executablePath: CHROMIUM }),
    // Containers lack namespaces and shared memory. One process loads the code of all pages once.
    args:
      "--no-sandbox --disable-dev-shm-usage --renderer-process-limit=1 --disable-site-isolation-trials"
        .split(" "),
  });
}

/** How a page is opened. */
export interface PageOptions {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: "light" | "dark";
}

/** A page and its errors. */
export interface OpenPage {
  readonly page: Page;
  /** Forbidden actions of the page. */
  wrongs(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** The script that is injected into the page. */
type Notes = { noteWrong(what: string): Promise<void> };

/** The open pages that are not in use, by their options. A new page takes longer than a visit. */
const idle = new Map<string, ReusedPage[]>();

interface ReusedPage {
  readonly page: Page;
  readonly wrongs: string[];
  /** The origin of the service that the page shows. */
  origin: string;
}

/** Creates a page that records its errors. */
async function createPage(
  browser: Browser,
  { width = 1280, height = 860, scheme = "light" }: PageOptions,
): Promise<ReusedPage> {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
  const page = await context.newPage();
  const wrongs: string[] = [];
  const own = { page, wrongs, origin: "" };
  await page.exposeFunction("noteWrong", (what: string) => void (what && wrongs.push(what)));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
      (globalThis as unknown as Notes).noteWrong(`policy: ${violatedDirective} ${blockedURI}`);
    });
  });
  page.on("pageerror", (error) => wrongs.push(`threw: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    const isOwn = url.startsWith(`${own.origin}/`) || url.startsWith("data:");
    if (!isOwn) wrongs.push(`asked ${url}`);
  });
  page.on("console", (message) => {
    // Chromium also logs responses such as 404 and 422, which the tests cause intentionally.
    const isAnswer = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isAnswer) wrongs.push(`logged: ${message.text()}`);
  });
  return own;
}

/** Opens a page of a service. */
export async function openPage(
  browser: Browser,
  url: string,
  options: PageOptions = {},
): Promise<OpenPage> {
  const key = [options.width, options.height, options.scheme].join();
  // The browser of an earlier file has closed its pages.
  const free = (idle.get(key) ?? []).filter(({ page }) => !page.isClosed());
  idle.set(key, free);
  const own = free.pop() ?? await createPage(browser, options);
  const { page, wrongs } = own;
  own.origin = new URL(url).origin;
  await page.goto(url);
  return {
    page,
    async wrongs() {
      // Earlier records are reported in the same way.
      await page.evaluate(async () => {
        await new Promise((resolve) => setTimeout(resolve));
        await (globalThis as unknown as Notes).noteWrong("");
      });
      return wrongs;
    },
    async close() {
      await page.unrouteAll();
      // The next visit may have the same address, and must load the page again.
      await page.goto("about:blank");
      wrongs.length = 0;
      free.push(own);
    },
  };
}

/**
 * Returns the findings of axe, one line each.
 *
 * @param rules The rules to check. By default, all.
 */
export async function axe(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  if (!await page.evaluate(() => "axe" in globalThis)) await page.evaluate(AXE);
  return await page.evaluate(async (rules) => {
    const { axe } = globalThis as unknown as { axe: typeof import("axe-core") };
    const { violations } = await axe.run(rules === undefined ? {} : { runOnly: [...rules] });
    return violations.map(({ id, help, nodes }) =>
      `${id}: ${help}: ${nodes.slice(0, 3).map(({ target }) => String(target)).join(" | ")}`
    );
  }, rules);
}
