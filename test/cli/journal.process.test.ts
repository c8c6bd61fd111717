import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { journal, jsonLines } from "@plue/tools/journal";
import { folder, plue, postJson, service } from "./support.ts";

const files = folder();
const KEY = "a key with enough characters";
let count = 0;

/** A journal of three calls, which ended, and the dispatcher that writes it. */
async function recorded(key?: string) {
  const file = join(files.path, `calls-${++count}.jsonl`);
  const records = journal({ sink: jsonLines(file), onFailure: "refuse-calls", key, flushMs: 0 });
  const tools = [
    { name: "pay", description: "Pays." },
    { name: "count", description: "Counts.", execute: () => 1 },
  ];
  const registry = new ToolRegistry({ tools });
  const dispatcher = new ToolDispatcher(registry, { layers: [records] });
  await dispatcher.dispatch({ name: "count", callId: "c1" }, { principal: "ann" });
  await dispatcher.dispatch({ name: "pay", callId: "c2" });
  await dispatcher.dispatch({ name: "\x1b[31mevil\n9  2026", callId: "c3" });
  return { file, records, dispatcher };
}

async function closed(key?: string): Promise<string> {
  const { file, records } = await recorded(key);
  await records.close();
  return file;
}

describe("plue journal", () => {
  it("shows the last records, oldest first, one in each line, without control characters", async () => {
    const file = await closed();
    const { code, stdout } = await plue(["journal", "tail", file], { columns: 200 });
    const lines = stdout.split("\n");
    assertEquals([code, lines.length, stdout.includes("\x1b")], [0, 6, false]);
    assertMatch(lines[1] ?? "", /^2 {2}\d{4}-\S+Z {2}ok {2}count {2}ann {2}c1 {2}[\d.]+ ms$/);
    assertMatch(lines[4] ?? "", /^5 {2}\S+ {2}end$/);
    const last = await plue(["journal", "tail", file, "--limit", "2", "--json"]);
    const records = last.stdout.trim().split("\n").map((line) => JSON.parse(line));
    assertEquals(records.map(({ sequence }) => sequence), [4, 5]);
  });

  it("shows a forged record without a valid time, and the record before it", async () => {
    const file = await closed();
    writeFileSync(file, `${readFileSync(file, "utf8")}{"sequence":6,"time":"now"}\n`);
    const { code, stdout } = await plue(["journal", "tail", file, "--limit", "2"]);
    assertEquals(code, 0);
    assertMatch(stdout, /^5 {2}\S+ {2}end\n6 {2}\(no time\) {2}-\n$/);
  });

  it("follows a journal while it is written, until it is interrupted", async () => {
    const { file, records, dispatcher } = await recorded();
    await records.flush();
    const controller = new AbortController();
    let text = "";
    const { promise: seen, resolve } = Promise.withResolvers<void>();
    const { promise: started, resolve: start } = Promise.withResolvers<void>();
    const ended = plue(["journal", "tail", file, "--follow", "--limit", "1"], {
      controller,
      heard(part) {
        text += part;
        start();
        if (text.includes("  c9  ")) resolve();
      },
    });
    await started;
    await dispatcher.dispatch({ name: "count", callId: "c9" });
    await records.flush();
    await seen;
    controller.abort();
    assertEquals([(await ended).code, text.split("\n").length], [0, 3]);
    await records.close();
  });

  it("verifies a journal, and names the first record that does not fit", async () => {
    const file = await closed(KEY);
    const run = (path: string, ...more: readonly string[]) =>
      plue(["journal", "verify", path, ...more], { env: { PLUE_JOURNAL_KEY: KEY } });
    const { code, stdout } = await run(file);
    const [, head = ""] = /Head: (5:[\w-]{43})\n/.exec(stdout) ?? [];
    assertEquals([code, stdout.split("\n")[0]], [
      0,
      "5 records from number 1, unchanged and in order",
    ]);
    assertEquals((await run(file, "--head", head)).code, 0);
    const withoutKey = await plue(["journal", "verify", file]);
    assertEquals(withoutKey.code, 1);
    assertStringIncludes(withoutKey.stdout, "it was changed, or written with another key");
    const text = readFileSync(file, "utf8");
    writeFileSync(`${file}.changed`, text.replace('"principal":"ann"', '"principal":"bob"'));
    const changed = await run(`${file}.changed`);
    assertEquals([changed.code, changed.stdout.split("\n")[0]], [
      1,
      "Record 2 does not fit: it was changed",
    ]);
    writeFileSync(`${file}.cut`, text.split("\n").slice(0, 3).join("\n") + "\n");
    const cut = await run(`${file}.cut`);
    assertStringIncludes(cut.stdout, "Writers were interrupted after: 3");
    const missing = await run(`${file}.cut`, "--head", head);
    assertEquals(missing.code, 1);
    assertStringIncludes(missing.stdout, "Record 4 does not fit: it is missing");
    assertEquals(JSON.parse((await run(file, "--json")).stdout).records, 5);
  });

  it("shows the records of a call and of the calls of its program", async () => {
    const { file, records, dispatcher } = await recorded();
    for (const callId of ["c1.0", "c1.1", "c10"]) {
      await dispatcher.dispatch({ name: "count", callId });
    }
    await records.close();
    const { stdout } = await plue(["journal", "show", "c1", file]);
    const ids = JSON.parse(stdout).map(({ callId }: { readonly callId: string }) => callId);
    assertEquals(ids, ["c1", "c1.0", "c1.1"]);
  });

  it("shows the records of a call, and counts the calls of each tool", async () => {
    const file = await closed();
    const shown = await plue(["journal", "show", "c1", file]);
    const [record, ...others] = JSON.parse(shown.stdout);
    assertEquals([record.tool, record.principal, others], ["count", "ann", []]);
    const none = await plue(["journal", "show", "c4", file]);
    assertEquals([none.code, none.stdout], [1, ""]);
    const { stdout } = await plue(["journal", "stats", file, "--json"]);
    const outcomes = JSON.parse(stdout).tools.map((
      { tool, outcomes }: { readonly tool: string; readonly outcomes: object },
    ) => [tool, outcomes]);
    assertEquals(Object.fromEntries(outcomes), {
      "(unknown)": { unknown_tool: 1 },
      pay: { not_executable: 1 },
      count: { ok: 1 },
    });
    const table = await plue(["journal", "stats", file]);
    assertMatch(table.stdout, /^TOOL +CALLS {2}MEAN +OUTCOMES\n/);
  });
});

describe("plue serve --journal", () => {
  it("records every call, and serves the records", async () => {
    const file = join(files.path, "served.jsonl");
    const tools = join(import.meta.dirname, "tools.mjs");
    const env = { PLUE_JOURNAL_KEY: KEY };
    {
      await using served = await service([tools, "--journal", file], env);
      const body = { arguments: { to: 1 } };
      const url = `${served.url}/tools/count/execute`;
      const response = await postJson(url, body, { "x-call-id": "c7" });
      assertEquals(response.status, 200);
      assertEquals((await plue(["journal", "tail", file, "--limit", "1"])).code, 0);
      const again = await plue(["serve", tools, "--journal", file, "--port", "0", "--no-watch"]);
      assertEquals(again.code, 1);
      assertStringIncludes(again.stderr, "another journal writes");
      let records: readonly { readonly tool: string }[] = [];
      while (records.length === 0) {
        ({ records } = await (await fetch(`${served.url}/journal?callId=c7`)).json());
      }
      assertEquals(records[0]?.tool, "count");
    }
    const { stdout } = await plue(["journal", "verify", file], { env });
    assertStringIncludes(stdout, "3 records from number 1, unchanged and in order");
  });
});
