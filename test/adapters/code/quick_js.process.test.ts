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
  ["return { toJSON() { for (;;) {} } };", "processor time"],
  ['const all = []; for (;;) all.push("x".repeat(1e5) + all.length);', "processor time"],
  ["new Uint8Array(1e9);", "bytes of memory"],
  ["const all = []; for (;;) all.push(new Uint8Array(1e6).fill(all.length));", "bytes of memory"],
  [
    "let call = () => 1; for (let n = 0; n < 1e5; n++) call = call.bind(null); call();",
    "bytes of memory",
  ],
  ["const deep = (n) => deep(n + 1); deep(0);", "any"],
  ['JSON.parse("[".repeat(200000));', "any"],
  ["let o = {}; for (let n = 0; n < 5e4; n++) o = { o }; return o;", "any"],
];

const ENDLESS =
  "{ [Symbol.iterator]: () => ({ next: Object.bind(null, { done: false, value: 1 }) }) }";

/** Single built-in operations that would take minutes or hours. */
const LONG_OPERATIONS: readonly string[] = [
  "[].concat({ length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true });",
  ...["indexOf", "fill", "join", "reverse", "copyWithin", "flat", "splice"].map(
    (name) => `Array.prototype.${name}.call({ length: 2 ** 53 - 1 }, 0, 1);`,
  ),
  "Array.prototype.sort.call({ length: 2 ** 53 - 1 });",
  "Array.prototype.slice.call({ length: 2 ** 32 - 1 });",
  "Array.from({ length: 2 ** 32 - 1 });",
  "new Array(2 ** 32 - 1).keys().drop(4e9).next();",
  ...["new Set", "Array.from", "Promise.all", "Object.fromEntries"]
    .map((call) => `${call}(${ENDLESS.replace("1 }", "[1, 2] }")}, Object);`),
  `const [...all] = ${ENDLESS};`,
  "Iterator.from({ next: Object.bind(null, { done: false }) }).every(Object);",
  "String.raw({ raw: { length: 2 ** 53 - 1 } });",
  '"a".repeat(8e6).indexOf("a".repeat(4e6) + "b");',
  '"a".repeat(1e6).split(/a*b/);',
  '"a".repeat(1e6).replaceAll("", "x".repeat(100));',
  "const text = 'a'.repeat(8e6); new Uint8Array(1e6).forEach(text.includes.bind(text, 'b'));",
  "let [a, b] = ['ab', 'ab']; for (let n = 0; n < 28; n++) [a, b] = [a + a, b + b]; return a < b;",
  '/(a+)+$/.test("a".repeat(40) + "b");',
  '/(?=a*b)*c/.test("a".repeat(1e6));',
  "7n ** 9999999n;",
  "(3n ** 600000n).toString();",
  "const all = JSON.parse('[' + '1,'.repeat(1e6) + '1]'); for (;;) JSON.stringify(all);",
  "let all = [1]; for (let n = 0; n < 40; n++) all = [all, all]; return all;",
  "let all = [1]; for (let n = 0; n < 40; n++) all = [all, all]; all.flat(Infinity);",
  "JSON.stringify(new Proxy([], { get: (_, key) => key === 'length' ? 2 ** 53 - 1 : 1 }));",
  // Each of these steps copies, fills or sorts 8 MB.
  "const bytes = new Uint8Array(8e6); bytes.forEach(bytes.copyWithin.bind(bytes, 1, 0, 8e6));",
  "const bytes = new Uint8Array(8e6); bytes.forEach(bytes.fill.bind(bytes, 1, 0, 8e6));",
  "const bytes = new Uint8Array(8e6); bytes.forEach(bytes.slice.bind(bytes, 0));",
  "const all = new Float64Array(1e6).fill(1); new Uint8Array(1e6).forEach(all.sort.bind(all, undefined));",
];

describe("quickJs()", () => {
  for (const source of LONG_OPERATIONS) {
    it(`stops a program within a built-in operation: ${source.slice(0, 70)}`, async () => {
      const limits = { ...DEFAULT_LIMITS, cpuMs: 50 };
      const end = await (await sharedExecutor()).run(programOf(source, { limits }));
      assert(end.kind === "stopped", JSON.stringify(end));
      assertStringIncludes(end.why, "50 ms of processor time");
    });
  }

  for (const [source, limit] of EXHAUSTIONS) {
    it(`stops ${source.slice(0, 70)}`, async () => {
      const limits = { ...DEFAULT_LIMITS, cpuMs: limit === "bytes of memory" ? 10_000 : 100 };
      const end = await (await sharedExecutor()).run(programOf(source, { limits }));
      // The depth of the stack depends on the runtime.
      if (limit === "any") return assertNotEquals(end.kind, "returned");
      assert(end.kind === "stopped", JSON.stringify(end));
      assertStringIncludes(end.why, limit);
    });
  }

  for (
    const [machine, msPerRead, ends] of [
      ["where the clock stands still", 0, ["returned", "stopped"]],
      ["on a machine that is ten times too slow", 0.4, ["returned", "stopped"]],
      ["on a machine that hardly runs", 100, ["stopped", "stopped"]],
    ] as const
  ) {
    it(`counts the steps of a program ${machine}`, async () => {
      const executor = await sharedExecutor();
      const { now } = performance;
      let time = 0;
      performance.now = () => time += msPerRead;
      try {
        const limits = { ...DEFAULT_LIMITS, cpuMs: 10 };
        const run = async (times: number): Promise<string> =>
          (await executor.run(programOf(`for (let n = 0; n < ${times}; n++);`, { limits }))).kind;
        assertEquals<unknown>([await run(50_000), await run(64_000)], ends);
      } finally {
        performance.now = now;
      }
    });
  }

  it("stops a program whose calls do not fit into its memory together", async () => {
    const source = 'const id = "x".repeat(3e5); for (let n = 0; n < 100; n++) tools.pay({ id });';
    const end = await (await sharedExecutor()).run(programOf(source));
    assert(end.kind === "stopped", JSON.stringify(end));
    assertStringIncludes(end.why, "bytes of memory");
  });

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
