/** The contract of all {@linkcode Executor}. */

import { describe, it } from "bun:test";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import type { Executor, Program, ProgramCall, ProgramEnd } from "../../src/adapters/code/mod.ts";
import { readLimits } from "../../src/adapters/code/executor.ts";

export const DEFAULT_LIMITS = readLimits("test");
export const TIME = Date.UTC(2026, 0, 2);

/** Returns the JSON text of a successful call. */
export const replyWith = (value: unknown): string => JSON.stringify({ ok: true, value });

/** Makes a program whose calls return their id and arguments. */
export function programOf(source: string, fields: Partial<Program> = {}): Program {
  return {
    ...{ source, limits: DEFAULT_LIMITS, time: TIME, signal: new AbortController().signal },
    call: ({ id, json }) => Promise.resolve(replyWith([id, JSON.parse(json)])),
    ...fields,
  };
}

export function valueOf(end: ProgramEnd): unknown {
  assert(end.kind === "returned", JSON.stringify(end));
  return JSON.parse(end.json);
}

/** Programs and the values that they return. */
const VALUES: readonly (readonly [title: string, source: string, value: unknown])[] = [
  ["the value of the program", "return { a: [1, null] };", { a: [1, null] }],
  ["null for a program that returns nothing", "", null],
  ["the value although objects inherit toJSON", "Object.prototype.toJSON = Date; return 1;", 1],
  ["the result of a call with its arguments", "return await tools.crm.list({ a: 1 });", [
    "crm:list",
    { a: 1 },
  ]],
  ["the result of a call of a tool without a namespace", "return await tools.ping();", [
    "ping",
    {},
  ]],
  [
    "the result of a call of a name that is not an identifier",
    'return await tools["a-b"]["c.d"]();',
    ["a-b:c.d", {}],
  ],
  ["the results of concurrent calls", "return await Promise.all([1, 2].map((n) => tools.a(n)));", [
    ["a", 1],
    ["a", 2],
  ]],
  ["a date that stands still", "return [Date.now(), new Date().getTimezoneOffset()];", [TIME, 0]],
  ["text of any language", 'return "é💩\\u0000\\u2028";', "é💩\u0000\u2028"],
  ["the same value for tools that are awaited", "return typeof await tools;", "function"],
];

/** Attempts to reach the host or to change it, and their values: `undefined` if they throw. */
const ESCAPES: readonly (readonly [source: string, value: unknown])[] = [
  [
    'return ["process", "fetch", "require", "WebAssembly", "setTimeout", "Deno", "Bun", "navigator", "performance", "WeakRef", "Worker"].filter((name) => name in globalThis);',
    [],
  ],
  // An executor may forbid code from text.
  [
    'try { return Function("return typeof process + typeof fetch")(); } catch { return "undefinedundefined"; }',
    "undefinedundefined",
  ],
  [
    'try { return await (async () => {}).constructor("return typeof globalThis.process")(); } catch { return "undefined"; }',
    "undefined",
  ],
  [
    'return tools.a.constructor === undefined || typeof tools.a.constructor("return process");',
    "object",
  ],
  ['try { return typeof await import("node:fs"); } catch { return "no module"; }', "no module"],
  [
    'try { return Math.random(); } catch (error) { return error.message.includes("repeat"); }',
    true,
  ],
  [
    "Object.prototype.ok = true; Array.prototype.push = () => { throw 1; }; return await tools.a();",
    ["a", {}],
  ],
  ['return JSON.parse(\'{"__proto__": {"x": 1}}\').x ?? {}.x ?? null;', null],
  ["}); return 1; (() => {", undefined],
];

/**
 * Declares the contract's tests.
 */
export function describeExecutor(name: string, create: () => Executor | Promise<Executor>): void {
  const run = async (program: Program): Promise<ProgramEnd> => await (await create()).run(program);

  describe(`the executor ${name}`, () => {
    for (const [title, source, value] of VALUES) {
      it(`returns ${title}`, async () => {
        assertEquals(valueOf(await run(programOf(source))), value);
      });
    }

    it("throws a ToolError with the code and the message of a failed call", async () => {
      const failed = JSON.stringify({ ok: false, value: { code: "denied", message: "No." } });
      const source =
        "try { await tools.a(); } catch (e) { return [e instanceof ToolError, e.code, e.message]; }";
      const end = await run(programOf(source, { call: () => Promise.resolve(failed) }));
      assertEquals(valueOf(end), [true, "denied", "No."]);
    });

    it("returns the log up to its limit", async () => {
      const limits = { ...DEFAULT_LIMITS, maxLogLength: 8 };
      const source = 'console.log("a", { b: 1 }); console.warn("c".repeat(9)); console.log("d");';
      const end = await run(programOf(source, { limits }));
      assert(end.kind === "returned");
      assertEquals(end.log.length, 1);
      assertStringIncludes(end.log.join(), "a ");
    });

    it("reports a thrown value that is not an error", async () => {
      for (const [value, message] of [["{ a: 1 }", '{"a":1}'], ["1", "1"]]) {
        const end = await run(programOf(`throw ${value};`));
        assertEquals(end.kind === "threw" && end.message, message);
      }
    });

    it("reports the line of an error, and of a mistake in the source", async () => {
      for (const source of ["\n\nnope();", "\n\nconst = 1;"]) {
        const end = await run(programOf(source));
        assert(end.kind === "threw");
        assertEquals(end.line, 3);
      }
    });

    for (const [source, value] of ESCAPES) {
      it(`prevents access to its process: ${source.slice(0, 60)}`, async () => {
        const end = await run(programOf(source));
        if (end.kind === "threw") assertEquals(value, undefined);
        else assertEquals(valueOf(end), value);
        assertEquals(({} as Record<string, unknown>)["ok"], undefined);
      });
    }

    it("shares nothing between two programs", async () => {
      const executor = await create();
      await executor.run(programOf("globalThis.left = 1; Object.prototype.left = 2;"));
      assertEquals(valueOf(await executor.run(programOf("return typeof left;"))), "undefined");
    });

    it("fails calls beyond the limit", async () => {
      const limits = { ...DEFAULT_LIMITS, maxCalls: 2 };
      const calls: ProgramCall[] = [];
      const end = await run(programOf(
        "const ends = await Promise.allSettled([1, 2, 3, 4].map((n) => tools.a(n)));" +
          "return ends.map(({ reason }) => reason?.code ?? null);",
        { limits, call: (call) => (calls.push(call), Promise.resolve(replyWith(1))) },
      ));
      assertEquals(valueOf(end), [null, null, "overloaded", "overloaded"]);
      assertEquals(calls.map(({ index }) => index), [0, 1]);
    });

    it("rejects a value that is too long or is not JSON", async () => {
      const limits = { ...DEFAULT_LIMITS, maxOutputLength: 10 };
      for (const source of ['return "x".repeat(20);', "return 1n;", "return () => 1;"]) {
        assertEquals((await run(programOf(source, { limits }))).kind, "threw");
      }
    });

    it("ends a program that awaits a promise without end", async () => {
      assertEquals((await run(programOf("await new Promise(() => {});"))).kind, "stopped");
    });

    it("ends a program when its signal aborts", async () => {
      const controller = new AbortController();
      const program = programOf("await tools.a();", {
        signal: controller.signal,
        call: () => (controller.abort(new Error("Stop.")), new Promise(() => {})),
      });
      await assertRejects(() => run(program), Error, "Stop.");
    });

    it("suspends a program when all of its other calls have ended", async () => {
      const end = await run(programOf("await Promise.all([tools.ask(), tools.a()]);", {
        call: ({ id }) => Promise.resolve(id === "ask" ? undefined : replyWith(1)),
      }));
      assertEquals(end, { kind: "suspended" });
    });
  });
}
