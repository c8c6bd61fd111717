import { assert, assertEquals, assertGreater, assertStringIncludes } from "@std/assert";
import { afterAll, beforeAll, describe } from "bun:test";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import type { Browser, Locator, Page } from "playwright-core";
import { defineTool, type ToolDefinition } from "../../mod.ts";
import { explainTool } from "../../src/adapters/rules/mod.ts";
import { maybe } from "../support/skip.ts";
import { axe, CHROMIUM, openPage, type PageOptions, startBrowser } from "./browser.ts";
import { type RunningService, startService, TOKENS } from "./service.ts";

const test = maybe(CHROMIUM !== undefined, "Chromium is not here");
let browser: Browser;
let open: RunningService;
let closed: RunningService;
let programs: RunningService;
let starting: readonly Promise<Browser | RunningService>[] = [];

beforeAll(async () => {
  if (CHROMIUM === undefined) return;
  const all = [
    startBrowser(),
    startService(),
    startService({ authorizes: true }),
    startService({ programs: true }),
  ] as const;
  starting = all;
  [browser, open, closed, programs] = await Promise.all(all);
});

afterAll(async () => {
  // If one start fails, the others are closed: an open browser would prevent the end of the run.
  for (const start of await Promise.allSettled(starting)) {
    if (start.status === "fulfilled") await start.value.close();
  }
});

/** Runs a function with a page. Fails if the page violates its policy, or logs errors. */
async function look(
  path: string,
  use: (page: Page) => Promise<void>,
  options: PageOptions & { readonly service?: RunningService } = {},
): Promise<void> {
  const { page, wrongs, close } = await openPage(
    browser,
    (options.service ?? open).url + path,
    options,
  );
  page.setDefaultTimeout(20_000);
  try {
    await use(page);
    assertEquals(await wrongs(), []);
  } finally {
    await close();
  }
}

/** Registers a tool, and runs a function with the page of the tool. */
async function having(
  tool: ToolDefinition,
  input: unknown,
  use: (page: Page) => Promise<void>,
  service: RunningService = open,
): Promise<void> {
  service.registry.registerTool(tool);
  try {
    await look(tryPath(tool.name, input), use, { service });
  } finally {
    service.registry.unregisterTool(tool.name);
  }
}

const tryPath = (id: string, input?: unknown): string =>
  `#/tool/${encodeURIComponent(id)}/try` +
  (input === undefined ? "" : `?arguments=${encodeURIComponent(JSON.stringify(input))}`);

const listed = (page: Page): Locator => page.locator("a.tool code");
const tab = (page: Page, name: string): Locator =>
  page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true });
const field = (page: Page, name: string): Locator => page.getByLabel(name, { exact: true });
const button = (page: Page, name: string): Locator =>
  page.getByRole("button", { name, exact: true });
const result = (page: Page): Locator => page.getByRole("region", { name: "Result" });
const editor = (page: Page): Locator => page.getByLabel("The arguments as JSON");
const view = (page: Page, name: string): Locator =>
  page.getByRole("navigation", { name: "Views" }).getByRole("link", { name });

async function sampleOf(page: Page): Promise<string> {
  return await page.locator(".samples pre").textContent() ?? "";
}

/** Runs the tool, and waits for a status of the call. */
async function run(page: Page, status?: string): Promise<void> {
  await button(page, "Run").click();
  if (status !== undefined) await shows(page.locator(".status"), status);
}

/** The arguments, as the editor shows them. */
async function argumentsOf(page: Page): Promise<unknown> {
  await button(page, "JSON").click();
  const text = await editor(page).inputValue();
  await button(page, "Form").click();
  return JSON.parse(text);
}

/** Replaces the arguments in the editor, and shows the form again. */
async function typeJson(page: Page, text: string): Promise<void> {
  await button(page, "JSON").click();
  await editor(page).fill(text);
  await button(page, "Form").click();
}

/** Waits until an element has a text. */
async function shows(element: Locator, text: string | RegExp): Promise<void> {
  await element.filter({ hasText: text }).first().waitFor();
}

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Bearer token").fill(token);
  await button(page, "Use it").click();
}

describe("the start page", () => {
  test("shows the tools by namespace, samples, and tools to try with their examples", () =>
    look("", async (page) => {
      const overview = page.getByRole("region", { name: "Tools by namespace" });
      await shows(overview, "tools in 6 namespaces");
      assertEquals(await overview.locator(".namespace").count(), 6);
      await shows(page.getByRole("region", { name: "Connect a program" }), "files%3Asearch");
      assertEquals(await axe(page), []);
      await page.getByRole("link", { name: "Try it" }).first().click();
      assertEquals(await argumentsOf(page), { pattern: "src/**/*.ts", limit: 3 });
      await tab(page, "Start").click();
      await overview.getByRole("link", { name: "git" }).click();
      await shows(page.getByRole("status"), "1 of 6 tools");
    }));

  test("shows a waiting call, which a link opens at its question", () =>
    look(tryPath("deploy:release", { version: "1.2.3" }), async (page) => {
      await run(page, "waits for an answer");
      await tab(page, "Start").click();
      const waiting = page.getByRole("region", { name: "Waiting call" });
      await shows(waiting, "deploy:release");
      await shows(page.getByRole("region", { name: "Latest calls" }), "waits for an answer");
      await waiting.getByRole("link", { name: "Answer" }).click();
      await button(page, "Decline").click();
      await shows(page.locator(".status"), "failed: denied");
    }));
});

describe("the keyboard", () => {
  test("opens the palette, which finds tools, pages, calls and actions", () =>
    look(tryPath("git:commit", { message: "found" }), async (page) => {
      await run(page, "succeeded");
      await page.keyboard.press("Control+k");
      const found = page.getByRole("listbox", { name: "Found" }).getByRole("option");
      await page.keyboard.type("commit");
      await page.getByText("2 found").waitFor();
      assertEquals(await axe(page), []);
      const ends = { search: "Finds files", why: "Who sees", token: "Bearer" };
      for (const [text, end] of Object.entries(ends)) {
        await page.getByRole("combobox").fill(text);
        await found.first().waitFor();
        await page.keyboard.press("Enter");
        await shows(page.locator(text === "token" ? "dialog[open]" : "main"), end);
        if (text !== "token") await page.keyboard.press("Control+k");
      }
    }));

  test("opens a page with g and the key of the page", () =>
    look("", async (page) => {
      await shows(page.locator("main"), "Tools to try");
      await page.keyboard.press("g");
      await page.keyboard.press("w");
      await shows(page.locator("h1"), "Who sees which tool");
      await page.keyboard.press("?");
      await shows(page.locator("dialog[open]"), "open the page Calls");
    }));
});

describe("the list of tools", () => {
  test("shows each tool with its risk and availability", () =>
    look("#/tools", async (page) => {
      await shows(page.getByRole("status"), "6 tools");
      assertEquals(await listed(page).allTextContents(), [
        "deploy:release",
        "files:search",
        "git:commit",
        "report:build",
        "shape:draw",
        "shell:run",
        "index:rebuild",
      ]);
      const run = page.locator("a.tool", { hasText: "shell:run" });
      assertEquals(await run.locator(".risk").textContent(), "critical");
      const absent = page.locator("a.tool", { hasText: "index:rebuild" });
      assertEquals(await absent.locator(".risk").textContent(), "low");
      await shows(absent, "unavailable");
      await absent.click();
      await shows(page.locator("main"), "not available now");
    }));

  test("follows the service's tools as they change", () =>
    look("#/tools", async (page) => {
      await page.getByText("live", { exact: true }).waitFor();
      open.registry.registerTool(defineTool({ name: "newcomer", description: "Is new." }));
      await shows(listed(page), "newcomer");
      open.registry.unregisterTool("newcomer");
      await listed(page).filter({ hasText: "newcomer" }).waitFor({ state: "detached" });
    }));

  test("is searched while the user types, by meaning and by letters", () =>
    look("#/tools", async (page) => {
      await shows(page.getByRole("status"), "6 tools");
      const search = page.getByLabel("Search tools");
      await search.fill("make a picture of a shape");
      await shows(page.getByRole("status"), "1 of 6 tools");
      assertEquals(await listed(page).allTextContents(), ["shape:draw"]);
      await search.fill("ommi");
      await shows(listed(page), "git:commit");
      assertEquals(await listed(page).allTextContents(), ["git:commit"]);
    }));

  test("is filtered by namespace, category, risk and tag", () =>
    look("#/tools", async (page) => {
      await shows(page.getByRole("status"), "6 tools");
      for (
        const [name, value, ids] of [
          ["namespace", "git", ["git:commit"]],
          ["category", "terminal", ["shell:run"]],
          ["risk", "safe", ["files:search", "shape:draw"]],
          ["tag", "slow", ["report:build"]],
        ] as const
      ) {
        await button(page, "Filters").click();
        const choice = page.getByRole("group", { name }).getByRole("button", { name: value });
        await choice.click();
        await shows(page.getByRole("status"), `${ids.length} of 6 tools`);
        assertEquals(await listed(page).allTextContents(), [...ids]);
        await choice.click();
        await page.keyboard.press("Escape");
        await choice.waitFor({ state: "detached" });
      }
    }));

  test("is operated with the keyboard", () =>
    look("#/tools", async (page) => {
      await shows(page.getByRole("status"), "6 tools");
      await page.keyboard.press("/");
      await page.keyboard.type("git");
      await shows(page.getByRole("status"), "1 of 6 tools");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await shows(page.locator(".tool-page > header"), "git:commit");
      await field(page, "message").fill("typed");
      await page.keyboard.press("Control+Enter");
      await shows(page.getByLabel("Result"), "[main 0a1b2c3] typed");
    }));

  test("shows a thousand tools, and searches them", async () => {
    const service = await startService({ more: 1_000 });
    try {
      await look(
        "#/tools",
        async (page) => {
          await shows(page.getByRole("status"), "1006 tools");
          assertEquals(await listed(page).count(), 100);
          await page.locator("nav.tools .list > p").scrollIntoViewIfNeeded();
          await listed(page).nth(199).waitFor();
          await page.getByLabel("Search tools").fill("tool-0777");
          await shows(page.getByRole("status"), "1 of 1006 tools");
          await tab(page, "Why").click();
          await shows(page.getByRole("status"), "1011 tools");
          const rows = page.locator("table.matrix tbody tr");
          await shows(rows.last(), "911 more");
          await rows.last().scrollIntoViewIfNeeded();
          await shows(rows.last(), "811 more");
          await page.getByLabel("Filter the rows").fill("tool-0777");
          await rows.nth(1).waitFor({ state: "detached" });
          assertEquals(await rows.count(), 1);
        },
        { service },
      );
    } finally {
      await service.close();
    }
  });
});

describe("the form of a tool", () => {
  test("and its JSON show the same value", () =>
    look(tryPath("files:search"), async (page) => {
      await field(page, "pattern").fill("*.ts");
      await button(page, "Add limit").click();
      await page.keyboard.type("5");
      await button(page, "Add hidden").click();
      await page.keyboard.press("Space");
      await button(page, "Add sort").click();
      await page.getByRole("radio", { name: "name" }).check();
      await button(page, "Add options").click();
      await button(page, "Add depth").click();
      await field(page, "depth").fill("2");
      await button(page, "Add exclude").click();
      await button(page, "Add an item to exclude").click();
      await field(page, "exclude 1").fill("dist");
      const value = {
        pattern: "*.ts",
        limit: 5,
        hidden: true,
        sort: "name",
        options: { depth: 2, exclude: ["dist"] },
      };
      assertEquals(await argumentsOf(page), value);

      await button(page, "Remove hidden").click();
      await button(page, "Remove exclude 1").click();
      const { hidden: _, ...rest } = value;
      assertEquals(await argumentsOf(page), { ...rest, options: { depth: 2, exclude: [] } });

      await typeJson(page, '{"pattern":"b","limit":7,"options":{"depth":4}}');
      assertEquals(await field(page, "limit").inputValue(), "7");
      assertEquals(await field(page, "depth").inputValue(), "4");
      await button(page, "Sources").click();
      assertEquals(await argumentsOf(page), { pattern: "src/**/*.ts", limit: 3 });
    }));

  test("has fields for unions, tuples, maps and recursive schemas", () =>
    look(tryPath("shape:draw"), async (page) => {
      assertEquals(await argumentsOf(page), { shape: { kind: "circle" } });
      await field(page, "radius").fill("1.5");
      assertEquals(await argumentsOf(page), { shape: { kind: "circle", radius: 1.5 } });
      await field(page, "Form of shape").selectOption({ label: "Polygon" });
      await button(page, "Add an item to points").click();
      await button(page, "Add an item to points 1").click();
      await field(page, "points 1 1").fill("4");
      await button(page, "Add colours").click();
      await page.getByLabel("Name of another property").fill("sky");
      await page.keyboard.press("Enter");
      await field(page, "sky").fill("#0000ff");
      await button(page, "Add parent").click();
      await button(page, "Add next").click();
      await button(page, "Add label").first().click();
      await field(page, "Form of label").selectOption({ label: "null" });
      assertEquals(await argumentsOf(page), {
        shape: { kind: "polygon", points: [[4]] },
        colours: { sky: "#0000ff" },
        parent: { next: { label: null } },
      });
    }));

  test("shows issues below the field, with the service's messages", () =>
    look(tryPath("git:commit"), async (page) => {
      const message = field(page, "message");
      assertEquals(await message.getAttribute("aria-invalid"), "false");
      await message.fill("ab");
      assertEquals(await message.getAttribute("aria-invalid"), "true");
      const describedBy = (await message.getAttribute("aria-describedby")) ?? "";
      const words = await page.locator(`[id="${describedBy}"]`).textContent();
      assertEquals(words, "/message must have at least 3 characters, and has 2");
      // Only the service can run the tool's own rule.
      await message.fill("with a stop.");
      assertEquals(await message.getAttribute("aria-invalid"), "false");
      await run(page);
      await shows(page.locator(".arguments .wrong"), "must not end with a full stop");
      await shows(page.locator(".status"), "failed: invalid_arguments");
      assertEquals(await page.locator(".wrong").count(), 1);
      await typeJson(page, "{}");
      await shows(page.locator(".wrong"), "This must be given");
      assertEquals(await page.locator(".wrong").count(), 1);
      await button(page, "1 mistake").click();
      assertEquals(await message.evaluate((own) => own === document.activeElement), true);
    }));

  test("shows the first of many items, and keeps the others", () => {
    const exclude = Array.from({ length: 60 }, (_, index) => `folder-${index}`);
    return look(tryPath("files:search", { pattern: "x", options: { exclude } }), async (page) => {
      await field(page, "exclude 50").waitFor();
      assertEquals(await field(page, "exclude 51").count(), 0);
      await page.getByText("10 more are in the JSON").waitFor();
      await field(page, "exclude 1").fill("first");
      assertEquals(await argumentsOf(page), {
        pattern: "x",
        options: { exclude: ["first", ...exclude.slice(1)] },
      });
    });
  });

  test("keeps its value while the JSON is invalid, and cannot be run", () =>
    look(tryPath("files:search", { pattern: "kept" }), async (page) => {
      for (
        const [text, message] of [
          ['{"pattern": ', "JSON"],
          ['{"limit": 12345678901234567890}', "has too many digits for a number"],
        ] as const
      ) {
        await button(page, "JSON").click();
        await editor(page).fill(text);
        await shows(page.locator(".editor .wrong"), message);
        await button(page, "Form").click();
        assertEquals(await field(page, "pattern").inputValue(), "kept");
        assertEquals(await button(page, "Run").isDisabled(), true);
      }
    }));

  test("is filled by a link with arguments, which does not run the tool", () =>
    look(tryPath("files:search", { pattern: "a b&c=%d", limit: 2 }), async (page) => {
      assertEquals(await argumentsOf(page), { pattern: "a b&c=%d", limit: 2 });
      await field(page, "limit").fill("9");
      const link = await page.getByRole("link", { name: "Link to this call" }).getAttribute("href");
      assertEquals(await page.locator("section.call").count(), 0);
      await page.goto(`${open.url}${link}`);
      await page.reload();
      assertEquals(await argumentsOf(page), { pattern: "a b&c=%d", limit: 9 });
    }));
});

describe("a call", () => {
  test("shows its result as a tree, as text and as a table", () =>
    look(tryPath("files:search", { pattern: "*" }), async (page) => {
      await run(page, "succeeded");
      const shown = result(page);
      await shows(shown.locator("summary").first(), "[4]");
      await button(page, "Table").click();
      assertEquals(await shown.locator("th").allTextContents(), ["path", "bytes", "pattern"]);
      assertEquals(await shown.locator("tbody tr").count(), 4);
      await button(page, "Text").click();
      assertEquals((JSON.parse((await shown.textContent()) ?? "") as unknown[])[3], {
        path: "mod.ts",
        bytes: 4_800,
        pattern: "*",
      });
    }));

  test("shows a picture", () =>
    look(tryPath("shape:draw", { shape: { kind: "circle", radius: 1 } }), async (page) => {
      await run(page);
      const image = page.getByAltText("Image 1 of the result");
      await image.waitFor();
      assertEquals(await image.evaluate((own: HTMLImageElement) => own.naturalWidth), 480);
    }));

  test("shows progress and output while it runs", () =>
    look(tryPath("report:build", { title: "Q3" }), async (page) => {
      await run(page);
      for (const done of [1, 2, 3]) {
        await open.waits();
        await shows(page.getByRole("log"), `Chapter ${done} of Q3 is written`);
        await shows(page.locator(".call"), `${done} of 3 chapter ${done}`);
        assertEquals(
          await page.getByLabel("Progress").evaluate((own: HTMLProgressElement) => own.value),
          done,
        );
        open.release();
      }
      await shows(page.locator(".status"), "succeeded");
      await shows(page.getByRole("log"), '{"pages":12}');
      await shows(result(page), "chapters");
    }));

  test("renders fast streams in few steps, and keeps the last values", async () => {
    const flood: ToolDefinition = {
      name: "flood",
      description: "Streams two thousand values at once.",
      async *execute() {
        for (let value = 1; value <= 2_000; value++) yield { value };
        return "done";
      },
    };
    await having(flood, undefined, async (page) => {
      await page.evaluate(() => {
        const counts = globalThis as unknown as { drawn: number };
        counts.drawn = 0;
        new MutationObserver(() => counts.drawn++)
          .observe(document.body, { childList: true, subtree: true });
      });
      await run(page, "succeeded");
      await shows(page.getByRole("log"), "1500 earlier values are not shown");
      await shows(page.getByRole("log"), '{"value":2000}');
      const drawn = await page.evaluate(() => (globalThis as unknown as { drawn: number }).drawn);
      assertGreater(1_000, drawn);
    });
  });

  test("is aborted", () =>
    look(tryPath("report:build"), async (page) => {
      const before = open.aborted;
      await run(page);
      await open.waits();
      await button(page, "Abort").click();
      await shows(page.locator(".status"), "failed: aborted");
      assertEquals(open.aborted, before + 1);
    }));

  test("has samples for other programs that run", () =>
    look(tryPath("files:search", { pattern: `it's "$x" \\ ä 😀`, limit: 1 }), async (page) => {
      const folder = mkdtempSync(join(tmpdir(), "plue-samples-"));
      try {
        for (
          const [language, program, file] of [
            ["curl", "sh", "call.sh"],
            ["TypeScript", process.execPath, "call.ts"],
            ["Python", "python3", "call.py"],
          ] as const
        ) {
          await button(page, language).click();
          writeFileSync(join(folder, file), await sampleOf(page));
          const printed = await outputOf(program, [join(folder, file)]);
          // If the program is not installed, its sample is not tested.
          if (printed === undefined) continue;
          assertStringIncludes(printed, "src/tool/tool.ts");
          assert(/it('|\\')s .*\$x.* 😀/.test(printed), `${language}: ${printed}`);
        }
        await button(page, "C").click();
        writeFileSync(join(folder, "call.c"), await sampleOf(page));
        await outputOf("cc", ["-Iffi/include", "-fsyntax-only", "-Werror", join(folder, "call.c")]);
      } finally {
        rmSync(folder, { recursive: true });
      }
    }));
});

describe("a call that asks questions", () => {
  const PUBLISH: ToolDefinition = {
    name: "publish",
    description: "Publishes a branch.",
    parameters: { type: "object", properties: { message: { type: "string" } } },
    async execute(_, { ask, progress }) {
      progress(1, 2, "looked");
      const [sure, branch] = await Promise.all([
        ask("sure", { kind: "approval", message: "Publish this?" }),
        ask<{ readonly name: string }>("branch", {
          message: "Which branch?",
          schema: {
            type: "object",
            properties: { name: { type: "string", enum: ["main", "next"] } },
            required: ["name"],
          },
        }),
      ]);
      return sure.action === "accept" && branch.action === "accept"
        ? `published ${branch.content?.name}`
        : "kept";
    },
  };

  test("shows the service's question and its arguments, and moves the focus to no button", () =>
    look(tryPath("deploy:release", { version: "1.2.3" }), async (page) => {
      await run(page, "waits for an answer");
      const question = page.locator(".question");
      await shows(question, "deploy:release");
      await shows(question, '"1.2.3"');
      const bottom = await question.evaluate((element) => element.getBoundingClientRect().bottom);
      assert(bottom <= (page.viewportSize()?.height ?? 0), `it ends at ${bottom}`);
      const focused = await page.evaluate(() => document.activeElement?.ariaLabel);
      assertEquals(focused, "Questions");
    }, { width: 390, height: 400 }));

  test("keeps the focus on Run after a key press", () =>
    look(tryPath("files:search", { query: "a" }), async (page) => {
      await button(page, "Run").focus();
      await page.keyboard.press("Enter");
      await page.locator(".status").first().waitFor();
      assert(await button(page, "Run").evaluate((own) => own === document.activeElement));
    }));

  /** Answers the two questions of the tool. */
  async function publish(page: Page): Promise<void> {
    const dialog = page.getByRole("group", { name: "Publish this?" });
    await shows(dialog, '"m"');
    assertEquals(await axe(page), []);
    await tab(page, "Calls 1 waiting").waitFor();
    await dialog.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("radio", { name: "next" }).check();
    await button(page, "Answer").click();
    await shows(result(page), "published next");
  }

  for (const execution of ["sync", "task"] as const) {
    test(`resumes with the answers to its questions, and can be abandoned, as a ${execution} call`, () =>
      having({ ...PUBLISH, execution }, { message: "m" }, async (page) => {
        await run(page);
        await publish(page);
        await run(page, "waits for an answer");
        await button(page, "Do not continue this call").click();
        await shows(page.locator(".status"), "failed: aborted");
      }));
  }

  test("is found as a task that the caller began elsewhere", async () => {
    const headers = {
      "content-type": "application/json",
      authorization: `Bearer ${TOKENS.owner}`,
      prefer: "respond-async",
    };
    await having(PUBLISH, {}, async (page) => {
      const path = `${closed.url}tools/publish/execute`;
      const begun = await fetch(path, { method: "POST", headers, body: "{}" });
      const { id } = await begun.json();
      await signIn(page, TOKENS.owner);
      await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: /Calls/ })
        .click();
      await shows(page.locator(".history .status"), "waits for an answer");
      await button(page, "Cancel publish").click();
      await shows(page.locator(".history .status"), "failed: aborted");
      const { status } = await (await fetch(`${closed.url}calls/${id}`, { headers })).json();
      assertEquals(status, "cancelled");
    }, closed);
  });

  test("shows its question again with the reason if the answer is invalid", async () => {
    const guess: ToolDefinition = {
      name: "guess",
      description: "Wants a word that only it knows.",
      async execute(_, { ask }) {
        const schema = { type: "string", pattern: "^plue$" } as const;
        const answer = await ask<string>("word", { message: "Which word?", schema });
        return answer.action === "accept" ? `It was ${answer.content}` : "kept";
      },
    };
    await having(guess, {}, async (page) => {
      await run(page);
      const input = page.getByRole("textbox", { name: "answer" });
      await input.fill("blue");
      await button(page, "Answer").click();
      await shows(page.locator(".question .wrong"), "pattern");
      await input.fill("plue");
      await button(page, "Answer").click();
      await shows(result(page), "It was plue");
    });
  });

  test("is denied if its question is declined", () =>
    look(tryPath("deploy:release", { version: "1.2.3" }), async (page) => {
      await run(page);
      await button(page, "Decline").click();
      await shows(page.locator(".status"), "failed: denied");
    }));

  test("links to the address of an authorization", async () => {
    const url = "https://login.example/start";
    const mail: ToolDefinition = {
      name: "mail",
      description: "Reads mail.",
      execute: async (_, { ask }) =>
        (await ask("login", { kind: "authorization", message: "Sign in", url })).action,
    };
    await having(mail, {}, async (page) => {
      await run(page);
      await shows(page.locator(".question a"), url);
      await button(page, "Done").click();
      await shows(result(page), "accept");
    });
  });

  test("links to web addresses only, even if a service returns others", () =>
    look(tryPath("git:commit", { message: "m" }), async (page) => {
      // An invalid response, which no plue service sends.
      const url = "javascript:globalThis.ran=true";
      const questions = [{ key: "login", kind: "authorization", message: "Sign in", url }];
      const error = { code: "input_required", message: "It asks", retryable: false };
      const result = { ok: false, error, questions, ticket: "t", durationMs: 1 };
      await page.route("**/execute", (route) =>
        route.fulfill({
          contentType: "text/event-stream",
          body: `event: result\ndata: ${JSON.stringify({ type: "result", result })}\n\n`,
        }));
      await run(page);
      await page.locator(".question").waitFor();
      assertEquals(await page.locator(".question a").count(), 0);
    }));
});

/** The output of a program, which must succeed; `undefined` if the program is not installed. */
async function outputOf(program: string, args: readonly string[]): Promise<string | undefined> {
  try {
    return (await promisify(execFile)(program, args)).stdout;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

describe("the matrix", () => {
  const explanation = (page: Page): Locator => page.getByRole("region", { name: "Explanation" });

  test("shows the roles that a tool is visible to, and explains each cell", () =>
    look("#/why", async (page) => {
      await button(page, "task:approve, control: seen").waitFor();
      await button(page, "task:approve, you: role").waitFor();
      await button(page, "index:rebuild, impl: unavailable").waitFor();
      await button(page, "secrets:list, scope secrets:read: seen").waitFor();
      await button(page, "task:approve, impl: role").click();
      const pressed = page.locator(".cell[aria-pressed=true]");
      assertEquals(await pressed.getAttribute("aria-label"), "task:approve, impl: role");
      await shows(explanation(page), '"task:approve" is removed by role');
      await shows(explanation(page).locator("li.bad"), "role");
      await button(page, "Close").click();
      assertEquals(await explanation(page).count(), 0);
      await button(page, "Only differences").click();
      await shows(page.getByRole("status"), "4 tools");
    }));

  test("shows the same by risk and by context", () =>
    look("#/why", async (page) => {
      await button(page, "By risk").click();
      await button(page, "git:commit, up to low: risk").waitFor();
      await button(page, "git:commit, up to medium: seen").waitFor();
      await button(page, "By context").click();
      await button(page, "shell:run, no terminal: context").click();
      await shows(explanation(page), "terminal");
      await button(page, "files:search, read-only: seen").waitFor();
    }));

  test("is navigated with the arrow keys", () =>
    look("#/why", async (page) => {
      await button(page, "files:search, you: seen").focus();
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await shows(explanation(page), "git:commit");
    }));

  test("explains a call with the arguments that a user enters, by the verdict of each rule", () =>
    having(explainTool(), undefined, async (page) => {
      await signIn(page, TOKENS.owner);
      await tab(page, "Why").click();
      await button(page, "git:commit, you: seen").click();
      for (
        const [text, shown] of [
          ['{"message":"short"}', '"verdict": "allow"'],
          [JSON.stringify({ message: "long".repeat(11) }), '"reason": "the message is too long"'],
          ["{}", '"verdict": "invalid"'],
          ["{", "JSON"],
        ] as const
      ) {
        await field(page, "Arguments of a call").fill(text);
        await button(page, "Explain the call").click();
        await shows(explanation(page).locator("pre"), shown);
      }
      assertEquals(await axe(page), []);
    }, closed));

  test("shows only the own tools of a caller without access to explanations", () =>
    look(
      "#/why",
      async (page) => {
        await signIn(page, TOKENS.other);
        await button(page, "files:search, you: seen").waitFor();
        assertEquals(await page.locator("table.matrix tbody th code").allTextContents(), [
          "files:search",
          "index:rebuild",
          "report:build",
          "shape:draw",
        ]);
      },
      { service: closed },
    ));
});

describe("the targets", () => {
  test("show a tool in the format of each provider, with tokens and marked losses", () =>
    look("#/tool/files%3Asearch/targets", async (page) => {
      const rows = page.locator(".targets tbody tr");
      await rows.first().waitFor();
      assertGreater(await rows.count(), 20);
      const strict = rows.filter({ hasText: "openai.chat.strict" });
      await strict.locator("td.number").first().waitFor();
      assert(Number(await strict.locator("td.number").first().textContent()) > 50);
      const shape = page.getByRole("region", { name: /^OpenAI.*losses$/ });
      await shape.waitFor();
      await shows(shape, '"limit"');
      assertGreater(await shape.locator(".mark").count(), 0);
      await page.getByLabel(/^Show AWS Bedrock Converse$/).check();
      const bedrock = page.getByRole("region", {
        name: "AWS Bedrock Converse: sent to the provider",
      });
      await shows(bedrock, "toolSpec");
    }));
});

describe("the calls", () => {
  test("are listed, opened again, and cancelled", () =>
    look(tryPath("report:build", { title: "Long" }), async (page) => {
      await run(page);
      await open.waits();
      await tab(page, "Calls").click();
      const call = page.locator(".history > li").first();
      await shows(call, "running");
      await button(page, "Cancel report:build").click();
      await shows(call, "failed: aborted");
      await button(page, "Show the call of report:build").click();
      await shows(call, "Chapter 1 of Long is written");
      await call.getByRole("link").click();
      assertEquals(await argumentsOf(page), { title: "Long" });
    }));

  test("are counted and measured by the service", () =>
    look(tryPath("git:commit", { message: "counted" }), async (page) => {
      await run(page, "succeeded");
      await tab(page, "Calls").click();
      const row = page.locator("table tr", { hasText: "git:commit" });
      await row.waitFor();
      assertEquals(await row.locator("svg").count(), 2);
      await page.getByRole("img", { name: /^calls: from/ }).waitFor();
    }));
});

describe("a program", () => {
  const editorOf = (page: Page): Locator => page.getByRole("textbox", { name: "Program" });
  const steps = (page: Page): Locator => page.getByRole("list", { name: "Calls of the program" });

  /** Runs a program that waits for an approval, and then for an answer. */
  async function release(page: Page): Promise<void> {
    await editorOf(page).fill(
      'await tools.files.search({ pattern: "*" });\n' +
        'await tools.git.commit({ message: "" }).catch(({ code }) => console.log(code));\n' +
        'return await tools.deploy.release({ version: "1.2.3" });',
    );
    await page.keyboard.press("Control+Enter");
    await shows(steps(page).locator("li").last(), "waits for you");
  }

  for (const [width, scheme] of [[1440, "light"], [390, "dark"]] as const) {
    test(`shows its calls, its questions, its log and its value, ${width} pixels wide`, () =>
      look("#/code", async (page) => {
        assertEquals(await axe(page), []);
        await release(page);
        const [first, second, third] = await steps(page).locator("li").all();
        await shows(first as Locator, /files:search.*succeeded/);
        await shows(second as Locator, /git:commit.*invalid_arguments.*must have at least 3/);
        await shows(third as Locator, 'version: "1.2.3"');
        assertEquals(await axe(page), []);
        assertEquals(await page.evaluate(() => document.documentElement.scrollWidth), width);
        await button(page, "Approve").press("Enter");
        await button(page, "Answer").press("Enter");
        await shows(result(page), 'action: "accept"');
        await shows(page.getByRole("region", { name: "Log of the program" }), "invalid_arguments");
        assertEquals(await axe(page), []);
      }, { service: programs, width, height: 900, scheme }));
  }

  test("is approved on another page, which a link opens, with two buttons", () =>
    look("#/code", async (page) => {
      await release(page);
      const link = await page.getByRole("link", { name: "Link to this call" }).getAttribute("href");
      await look(`${link}`, async (phone) => {
        await shows(phone.locator("h1"), "run_code waits for your answer");
        const question = phone.locator(".question");
        await shows(question, 'Run the tool "deploy:release"?');
        assertEquals(await question.getByRole("button").allTextContents(), ["Approve", "Decline"]);
        assertEquals(await axe(phone), []);
        await button(phone, "Decline").click();
        await shows(phone.locator(".status").first(), "failed: threw");
      }, { service: programs, width: 390, height: 844 });
      await shows(steps(page).locator("li").last(), /deploy:release.*denied/);
    }, { service: programs }));

  test("is approved with its invisible characters as escapes", () =>
    look("#/code", async (page) => {
      await editorOf(page).fill(
        'return await tools.deploy.release({ version: "1\u202e2", "": { "a\u200b": 1 } }); // \u2066',
      );
      await page.keyboard.press("Control+Enter");
      const question = page.locator(".question");
      await shows(question, "1\\u{202e}2");
      await shows(question, "a\\u{200b}:");
      await shows(question, '""');
      await question.getByText("Program").click();
      await shows(question, "// \\u{2066}");
    }, { service: programs }));

  test("is completed and indented by Tab; after Escape, Tab moves the focus", () =>
    look("#/code", async (page) => {
      await editorOf(page).focus();
      await page.keyboard.type("await tools.fil");
      await shows(page.getByRole("status"), "Tab completes tools.files.search");
      await page.keyboard.press("Tab");
      await page.keyboard.type("();");
      await page.keyboard.press("Enter");
      await page.keyboard.press("Tab");
      assertEquals(await editorOf(page).inputValue(), "await tools.files.search();\n  ");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Tab");
      assertEquals(await page.evaluate(() => document.activeElement?.textContent), "Run");
    }, { service: programs }));

  test("can call the functions that a search finds, which are shown with their types", () =>
    look("#/code", async (page) => {
      const list = page.getByRole("region", { name: "Functions" }).locator("li");
      await shows(list.first(), "tools.deploy.release({ version: string }): Promise<unknown>");
      await page.getByLabel("Search tools").fill("commit");
      await shows(list.first(), "tools.git.commit({ message: string })");
      assertEquals(await list.count(), 1);
    }, { service: programs }));

  test("has no page if the service runs no programs", () =>
    look("#/tools", async (page) => {
      await shows(page.getByRole("status"), "6 tools");
      assertEquals(await tab(page, "Code").count(), 0);
    }));
});

describe("the journal", () => {
  for (
    const [who, token, isShown] of [
      ["a caller who may see hidden tools", TOKENS.owner, true],
      ["another caller", TOKENS.other, false],
      ["a service without a journal", undefined, false],
    ] as const
  ) {
    test(`is ${isShown ? "shown" : "not requested"} for ${who}`, () =>
      look(tryPath("files:search", { pattern: "x" }), async (page) => {
        const requested = new Set<string>();
        page.on("request", (request) => requested.add(new URL(request.url()).pathname));
        if (token !== undefined) await signIn(page, token);
        await run(page, "succeeded");
        await tab(page, "Calls").click();
        await page.locator("table tr", { hasText: "files:search" }).first().waitFor();
        const region = page.getByRole("region", { name: "Journal of the service" });
        if (isShown) await region.getByText("files:search").first().waitFor();
        assertEquals([await region.count(), requested.has("/journal")], [Number(isShown), isShown]);
      }, { service: token === undefined ? open : closed }));
  }

  for (const [width, scheme] of [[390, "dark"], [1920, "light"]] as const) {
    test(`is filtered by tool, outcome and caller with the keyboard at ${width} pixels`, () =>
      look(tryPath("files:search", { pattern: "x" }), async (page) => {
        await signIn(page, TOKENS.owner);
        await run(page, "succeeded");
        await page.goto(`${closed.url}${tryPath("git:commit", { message: "m".repeat(41) })}`);
        await run(page, "failed");
        await tab(page, "Calls").click();
        const region = page.getByRole("region", { name: "Journal of the service" });
        const rows = region.locator("tbody tr");
        const choose = async (name: string, value: string): Promise<void> => {
          const select = page.getByRole("combobox", { name });
          await select.focus();
          await page.keyboard.type(value.slice(0, 3));
          assertEquals(await select.inputValue(), value === "any" ? "" : value);
        };
        await rows.filter({ hasText: "git:commit" }).first().waitFor();
        await choose("Outcome", "denied");
        await rows.filter({ hasText: "ok" }).first().waitFor({ state: "detached" });
        assert(await rows.count() > 0);
        await choose("Tool", "files:search");
        await shows(page.getByRole("status"), "0 records");
        await choose("Outcome", "any");
        await rows.first().waitFor();
        assertEquals(
          new Set(await rows.locator("th").allTextContents()),
          new Set(["files:search"]),
        );
        assertEquals(await axe(page), []);
        assertEquals(await page.evaluate(() => document.documentElement.scrollWidth), width);
      }, { service: closed, width, height: 900, scheme }));
  }
});

describe("the token", () => {
  test("is requested, sent, and stored in memory only", () =>
    look(
      "#/tools",
      async (page) => {
        await shows(page.getByRole("dialog"), "The service requires a token");
        await signIn(page, TOKENS.owner);
        await shows(page.getByRole("status"), "9 tools");
        await button(page, "Token set").waitFor();
        assertEquals(
          await page.evaluate(() => [
            localStorage.length,
            sessionStorage.length,
            document.cookie,
            document.documentElement.outerHTML.includes("owner-token"),
            location.href.includes("owner-token"),
          ]),
          [0, 0, "", false, false],
        );
        await page.reload();
        await shows(page.getByRole("dialog"), "The service requires a token");
      },
      { service: closed },
    ));

  test("is reported if it is invalid, and is not sent again automatically", () =>
    look("", async (page) => {
      let tried = 0;
      page.on("request", (request) => {
        if (request.headers()["authorization"] !== undefined) tried++;
      });
      for (const round of [1, 2]) {
        await shows(page.getByRole("dialog"), "The service requires a token");
        const refused = page.waitForResponse((response) =>
          response.request().headers()["authorization"] !== undefined
        );
        await signIn(page, "geheim\u2013geheim");
        await shows(page.getByRole("alert"), "characters above U+00FF");
        await signIn(page, "no-such-token-0123456789");
        assertEquals((await refused).status(), 401);
        await shows(page.getByRole("dialog"), "The service requires a token");
        await button(page, "Close").click();
        await tab(page, "Why").click();
        await shows(page.getByRole("status"), "The service requires a token");
        await tab(page, "Calls").click();
        await shows(page.locator("main .wrong"), "The service requires a token");
        assertEquals(tried, round);
        await button(page, "Token set").click();
      }
    }, { service: closed }));

  test("decides what the page shows, and is not written into samples", () =>
    look(
      tryPath("files:search"),
      async (page) => {
        await signIn(page, TOKENS.other);
        await shows(page.getByRole("status"), "3 tools");
        assertStringIncludes(await sampleOf(page), "authorization: Bearer $PLUE_TOKEN");
      },
      { service: closed },
    ));
});

describe("the page", () => {
  test("has a policy that blocks other styles and hosts", async () => {
    const { page, wrongs, close } = await openPage(browser, `${open.url}#/tools`);
    try {
      await shows(page.getByRole("status"), "6 tools");
      await page.evaluate(() => {
        const style = document.createElement("style");
        style.textContent = "body { color: red }";
        document.head.append(style);
      });
      const blocked = (await wrongs()).filter((wrong) => wrong.startsWith("policy: style-src"));
      assertEquals(blocked.length, 1);
      const answer = await page.evaluate(() =>
        fetch("https://example.com/").then(() => "fetched", () => "refused")
      );
      assertEquals(answer, "refused");
      assertEquals(await page.evaluate(() => "ran" in globalThis), false);
    } finally {
      await close();
    }
  });

  test("shows the texts of tools as text, not as HTML", async () => {
    const evil =
      `<img src=x onerror="globalThis.ran = true"><script>globalThis.ran = true</script>`;
    const tool: ToolDefinition = {
      name: "evil",
      title: evil,
      description: evil,
      parameters: { type: "object", title: evil, properties: { [evil]: { description: evil } } },
      execute: () => ({ [evil]: evil, list: [{ [evil]: evil }] }),
    };
    await having(tool, undefined, async (page) => {
      await run(page, "succeeded");
      await button(page, "Table").click();
      await view(page, "Targets").click();
      await shows(page.locator(".shapes"), "globalThis.ran");
      assertEquals(await page.evaluate(() => "ran" in globalThis), false);
    });
  });

  // Only the contrast depends on the colours.
  for (const [scheme, rules] of [["light", undefined], ["dark", ["color-contrast"]]] as const) {
    test(`is accessible in ${scheme} colours`, () =>
      look(
        tryPath("files:search", { pattern: "" }),
        async (page) => {
          await button(page, "Add options").click();
          await run(page, "failed");
          assertEquals(await axe(page, rules), []);
          await field(page, "pattern").fill("*");
          await run(page, "succeeded");
          assertEquals(await axe(page, rules), []);
          await view(page, "Targets").click();
          await shows(page.locator(".shapes"), "Losses in");
          assertEquals(await axe(page, rules), []);
          await tab(page, "Calls").click();
          await page.locator("table tr", { hasText: "files:search" }).waitFor();
          assertEquals(await axe(page, rules), []);
          await tab(page, "Why").click();
          await button(page, "shell:run, you: seen").click();
          await page.getByRole("region", { name: "Explanation" }).locator("li").first().waitFor();
          assertEquals(await axe(page, rules), []);
          await button(page, "Keys").click();
          assertEquals(await axe(page, rules), []);
        },
        { scheme },
      ));
  }

  test("is checked for accessibility by a check that can fail", () =>
    look("#/tools", async (page) => {
      await shows(page.getByRole("status"), "6 tools");
      await page.evaluate(() => document.querySelector("label[for=search]")?.remove());
      await page.evaluate(() => document.getElementById("search")?.removeAttribute("placeholder"));
      assertStringIncludes((await axe(page)).join(), "label");
    }));

  test("works where its service is mounted below a path", () =>
    look(`api/tools-of-mine${tryPath("git:commit", { message: "from below" })}`, async (page) => {
      await run(page);
      await shows(result(page), "from below");
      const path = "/api/tools-of-mine/tools/git%3Acommit/execute";
      assertStringIncludes(await sampleOf(page), path);
    }));

  test("fits a phone", () =>
    look(
      "",
      async (page) => {
        const fits = async (): Promise<void> => {
          assertEquals(await page.evaluate(() => document.documentElement.scrollWidth), 390);
          for (const main of await page.locator("main").all()) {
            assertEquals(await main.evaluate((own) => own.scrollWidth - own.clientWidth), 0);
          }
        };
        await shows(page.locator("main"), "Tools to try");
        await fits();
        await tab(page, "Tools").click();
        await shows(page.getByRole("status"), "6 tools");
        await fits();
        await page.locator("a.tool", { hasText: "files:search" }).click();
        await field(page, "pattern").fill("x".repeat(100));
        await run(page, "succeeded");
        await fits();
        assertEquals(await page.locator("nav.tools").isVisible(), false);
        await view(page, "Targets").click();
        await shows(page.locator(".shapes"), "Losses in");
        await fits();
        await page.locator(".crumbs").getByRole("link", { name: "Tools" }).click();
        await page.locator("nav.tools").waitFor({ state: "visible" });
        await tab(page, "Why").click();
        await button(page, "shell:run, you: seen").click();
        await shows(page.getByRole("region", { name: "Explanation" }), "available");
        await fits();
        await tab(page, "Calls").click();
        await shows(page.locator("main"), "Metrics of the service");
        await fits();
      },
      { width: 390, height: 844 },
    ));
});
