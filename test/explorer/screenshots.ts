/** Takes the pictures of the page that the README shows: `node test/explorer/screenshots.ts`. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Page } from "playwright-core";
import { openPage, type PageOptions, startBrowser } from "./browser.ts";
import { startService } from "./service.ts";

const FOLDER = process.argv[2] ?? join(import.meta.dirname, "../../docs/explorer");

const EXAMPLE = encodeURIComponent(
  JSON.stringify({ pattern: "src/**/*.ts", limit: 3, options: { depth: 2 } }),
);

async function run(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByText("succeeded").waitFor();
}

const PROGRAM = `// Releases what was found.
const files = await tools.files.search({ pattern: "src/**/*.ts", limit: 3 });
console.log(files.length, "files");
await tools.git.commit({ message: "Prepare the release." })
  .catch(({ message }) => console.log(message));
await tools.git.commit({ message: "Prepare the release" });
return await tools.deploy.release({ version: "1.2.3" });`;

async function runProgram(page: Page): Promise<void> {
  await page.getByRole("textbox", { name: "Program" }).fill(PROGRAM);
  await page.keyboard.press("Control+Enter");
  await page.getByText("waits for you").waitFor();
}

/** Each picture: the route, and the actions before it is taken. */
const PICTURES: readonly {
  readonly name: string;
  readonly path: string;
  readonly options: PageOptions;
  readonly prepare: (page: Page) => Promise<void>;
}[] = [
  {
    name: "try-wide-light",
    path: `#/tool/files%3Asearch/try?arguments=${EXAMPLE}`,
    options: { width: 1280, height: 900, scheme: "light" },
    async prepare(page) {
      await run(page);
      await page.getByRole("button", { name: "Table" }).click();
    },
  },
  {
    name: "why-wide-dark",
    path: "#/why",
    options: { width: 1280, height: 620, scheme: "dark" },
    async prepare(page) {
      await page.getByRole("button", { name: "task:approve, impl: role" }).click();
      await page.locator(".trace .bad").waitFor();
    },
  },
  {
    name: "targets-wide-light",
    path: "#/tool/files%3Asearch/targets",
    options: { width: 1280, height: 1000, scheme: "light" },
    prepare: (page) => page.getByText("Losses in").first().waitFor(),
  },
  {
    name: "code-wide-light",
    path: "#/code",
    options: { width: 1280, height: 760, scheme: "light" },
    prepare: runProgram,
  },
  {
    name: "code-phone-dark",
    path: "#/code",
    options: { width: 390, height: 760, scheme: "dark" },
    async prepare(page) {
      await runProgram(page);
      await page.getByRole("link", { name: "Link to this call" }).click();
      await page.getByRole("button", { name: "Approve" }).scrollIntoViewIfNeeded();
    },
  },
  {
    name: "list-phone-light",
    path: "#/tools",
    options: { width: 390, height: 760, scheme: "light" },
    prepare: (page) => page.getByText("not available now").waitFor(),
  },
  {
    name: "try-phone-dark",
    path: "#/tool/shape%3Adraw/try?arguments=" +
      encodeURIComponent(JSON.stringify({ shape: { kind: "circle", radius: 10 } })),
    options: { width: 390, height: 760, scheme: "dark" },
    async prepare(page) {
      await run(page);
      await page.getByAltText("Image 1 of the result").scrollIntoViewIfNeeded();
    },
  },
];

mkdirSync(FOLDER, { recursive: true });
const [browser, service, programs] = await Promise.all([
  startBrowser(),
  startService(),
  startService({ programs: true }),
]);
/** The names of the pictures to take, by default all. */
const names = process.argv.slice(3);
for (const { name, path, options, prepare } of PICTURES) {
  if (names.length > 0 && !names.includes(name)) continue;
  const { url } = path === "#/code" ? programs : service;
  const { page, close } = await openPage(browser, url + path, options);
  await prepare(page);
  // WebP is a fifth of the size of PNG, and the browser writes it by itself.
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 85 });
  writeFileSync(join(FOLDER, `${name}.webp`), data, "base64");
  await close();
}
await Promise.all([browser.close(), service.close(), programs.close()]);
