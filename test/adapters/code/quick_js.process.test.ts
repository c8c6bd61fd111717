import { describe, it } from "bun:test";
import {
  assert,
  assertEquals,
  assertNotEquals,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { quickJs } from "../../../src/adapters/code/mod.ts";
import {
  DEFAULT_LIMITS,
  describeExecutor,
  programOf,
  valueOf,
} from "../../contract/executor_contract.ts";
import { quickJsBytes, sharedExecutor } from "./support.ts";

describeExecutor("quickJs", sharedExecutor);

/** Programs that would occupy a thread or its memory, and the limit that stops them. */
const EXHAUSTIONS: readonly (readonly [source: string, limit: string])[] = [
  ["for (;;) {}", "processor time"],
  ["try { for (;;) {} } finally { for (;;) {} }", "processor time"],
  ["for (;;) await 0;", "processor time"],
  [
    "const turn = () => Promise.resolve().then(turn); turn(); await new Promise(() => {});",
    "processor time",
  ],
  ['/(a+)+$/.test("a".repeat(40) + "b");', "processor time"],
  ["Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);", "processor time"],
  ["return { toJSON() { for (;;) {} } };", "processor time"],
  ['const all = []; for (;;) all.push("x".repeat(1e5) + all.length);', "any"],
  ["new Uint8Array(1e9);", "any"],
  ["const all = []; for (;;) all.push(new Uint8Array(1e6).fill(all.length));", "any"],
  ["const deep = (n) => deep(n + 1); deep(0);", "any"],
  ['JSON.parse("[".repeat(200000));', "any"],
  ["let o = {}; for (let n = 0; n < 5e4; n++) o = { o }; return o;", "any"],
];

describe("quickJs()", () => {
  for (const [source, limit] of EXHAUSTIONS) {
    it(`stops ${source.slice(0, 70)}`, async () => {
      const limits = { ...DEFAULT_LIMITS, cpuMs: 100 };
      const end = await (await sharedExecutor()).run(programOf(source, { limits }));
      // On a busy machine, the time limit may end a program before the other limits.
      if (limit === "any") return assertNotEquals(end.kind, "returned");
      assert(end.kind === "stopped", JSON.stringify(end));
      assertStringIncludes(end.why, "100 ms of processor time");
    });
  }

  it("rejects a module that is not QuickJS", async () => {
    const module = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
    await assertRejects(() => quickJs(module).run(programOf("")));
    await assertRejects(() => quickJs(new Uint8Array(3)).run(programOf("")));
  });

  it("runs a compiled module", async () => {
    const module = await WebAssembly.compile(await quickJsBytes() as Uint8Array<ArrayBuffer>);
    assertEquals(valueOf(await quickJs(module).run(programOf("return 1;"))), 1);
  });
});
