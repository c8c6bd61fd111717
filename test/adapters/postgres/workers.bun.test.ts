import { describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { migratePostgresCallStore } from "@plue/tools/postgres";
import { type Program, startProgram } from "../../support/program.ts";
import { maybe } from "../../support/skip.ts";
import { missing, useServer } from "./server.ts";

describe("the program of docs/workers.md", () => {
  const server = useServer();

  maybe(missing === undefined, missing ?? "")(
    "renders all pages, although a worker and the database are killed",
    async () => {
      await migratePostgresCallStore(server().pool());
      const guide = readFileSync(join(import.meta.dirname, "../../../docs/workers.md"), "utf8");
      const [, listing = ""] = /```js ignore\n([^]*?)```/.exec(guide) ?? [];
      // The folder is in the project, so that imports by the package's name are resolved.
      const folder = mkdtempSync(join(import.meta.dirname, "workers-"));
      const file = join(folder, "app.ts");
      // A shorter lease.
      writeFileSync(file, listing.replace("taskQueue({", "taskQueue({ leaseMs: 3_000,"));
      const start = (...words: readonly string[]): Program =>
        startProgram(process.execPath, [file, ...words], { DATABASE_URL: server().url });
      try {
        await using workers = new AsyncDisposableStack();
        const [first, ...others] = await Promise.all(["a", "b", "c"].map(async () => {
          const worker = workers.use(start("work"));
          await worker.printed(/waiting for tasks/);
          return worker;
        }));
        await using caller = start();
        await caller.printed(/(page \d+\n){20}/);
        first?.child.kill("SIGKILL");
        await caller.printed(/(page \d+\n){50}/);
        await server().kill();
        await server().start();
        assertEquals((await caller.ended).code, 0, JSON.stringify(caller.output));
        const pages = [...caller.output.stdout.matchAll(/^page (\d+)$/gm)].map(([, page]) =>
          Number(page)
        );
        assertEquals(pages.sort((a, b) => a - b), Array.from({ length: 100 }, (_, page) => page));
        for (const { child, ended } of others) {
          child.kill("SIGTERM");
          assertEquals((await ended).code, 0);
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});
