import { importTools } from "@plue/tools/formats";
import { fileStore, toolPins } from "@plue/tools/pins";
import { afterEach, beforeEach, describe, it } from "bun:test";
import { assertEquals, assertRejects } from "@std/assert";
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const list = (description: string) => [
  { name: "read", description, inputSchema: { type: "object" } },
];

describe("toolPins() with a file", () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "plue-pins-"));
    file = join(folder, "pins.json");
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Imports into a new registry, as after a restart of the program. */
  const imported = (description: string) =>
    importTools("mcp", list(description), { namespace: "x", pins: toolPins(file) });

  it("stores pins across restarts", async () => {
    assertEquals((await imported("Reads.")).held, []);
    assertEquals((await imported("Reads.")).held, []);
    const changed = await imported("Sends.");
    assertEquals(changed.held.map(({ kind }) => kind), ["changed"]);
    await changed.approve("x:read");
    assertEquals((await imported("Sends.")).held, []);
    assertEquals((await imported("Reads.")).held.map(({ kind }) => kind), ["changed"]);
  });

  it("does not overwrite the pins that this or another process stores at the same time", async () => {
    const names = Array.from({ length: 10 }, (_, number) => `x${number}`);
    await Promise.all(names.map((namespace, number) =>
      // A separate store is not serialized with the others, as in another process.
      importTools("mcp", list("Reads."), {
        namespace,
        pins: toolPins(number % 2 === 0 ? file : fileStore(file)),
      })
    ));
    assertEquals(Object.keys(JSON.parse(readFileSync(file, "utf8")).imports).sort(), names);
    assertEquals(readdirSync(folder), ["pins.json"]);
  });

  it("does not wait for the lock of a process that has died", async () => {
    writeFileSync(`${file}.lock`, "");
    utimesSync(`${file}.lock`, 0, 0);
    assertEquals((await imported("Reads.")).held, []);
    assertEquals(readdirSync(folder), ["pins.json"]);
  });

  it("leaves no file but the pins, readable by its user only", async () => {
    await imported("Reads.");
    assertEquals(readdirSync(folder), ["pins.json"]);
    assertEquals(Object.keys(JSON.parse(readFileSync(file, "utf8")).imports.x.tools), ["x:read"]);
  });

  it("hides all tools if the file is a folder, or its folder does not exist", async () => {
    for (const path of [folder, join(folder, "none", "pins.json")]) {
      const pins = toolPins(path);
      const { tools, held } = await importTools("mcp", list("Reads."), { namespace: "x", pins });
      assertEquals([tools, held.map(({ kind }) => kind)], [[], ["unverified"]]);
    }
    assertEquals(readdirSync(folder), []);
  });

  it("does not change the old file if the new one cannot replace it", async () => {
    const store = fileStore(file);
    await store.save("one");
    await Promise.all([store.save("two"), store.save("three")]);
    assertEquals(["two", "three"].includes(await store.load() ?? ""), true);
    await assertRejects(() => fileStore(folder).save("more"));
    assertEquals(readdirSync(folder), ["pins.json"]);
  });
});
