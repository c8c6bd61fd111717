import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { afterAll, describe, it } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ToolResult } from "@plue/tools";
import { memoryCallStore, storedTickets } from "@plue/tools/calls";
import { record, replay, type ReplayOptions } from "@plue/tools/replay";
import { describeLayer } from "../../contract/layer_contract.ts";
import { type FakeTool, type Fixture, fixture } from "../../unit/execute/support.ts";

const folder = mkdtempSync(join(tmpdir(), "plue-replay-"));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = (): string => join(folder, `${++files}.jsonl`);

const REFUND: FakeTool = {
  name: "refund",
  parameters: {
    type: "object",
    properties: { euros: { type: "number" }, pin: { type: "string", writeOnly: true } },
  },
  execute: ({ euros }: { readonly euros: number }) => ({ refunded: euros }),
};

/** Records calls of tools, and returns a dispatcher that replays them. */
async function recorded(
  calls: (call: Fixture["call"]) => Promise<unknown>,
  options?: ReplayOptions,
  tools: readonly FakeTool[] = [REFUND],
) {
  const file = newFile();
  await calls(fixture(tools, { layers: [record(file)] }).call);
  const layer = replay(file, options);
  let runs = 0;
  const counting = tools.map((tool) => ({ ...tool, execute: () => void runs++ }));
  const { call } = fixture(counting, { layers: [layer] });
  const text = readFileSync(file, "utf8");
  return { file, text, layer, call, runs: () => runs };
}

const two = async (call: Fixture["call"]): Promise<void> => {
  await call("refund", { euros: 1 });
  await call("refund", { euros: 2 });
};

describe("replay()", () => {
  for (
    const [what, execute] of [
      ["value", () => ({ stock: 3 })],
      ["list of blocks", () => ToolResult.blocks([{ type: "text", text: "three" }])],
      ["failure", () => ToolResult.error("denied", "Not today", { retryAfterMs: 5, ran: "no" })],
      ["thrown error", () => {
        throw new Error("The shop is closed");
      }],
    ] as const
  ) {
    it(`returns a recorded ${what} without running the tool`, async () => {
      const results: unknown[] = [];
      const stock: FakeTool = { name: "stock", execute };
      const { call, layer, runs } = await recorded(
        async (call) => void results.push(await call("stock", { id: "a" })),
        {},
        [stock],
      );
      assertEquals([await call("stock", { id: "a" })], results as never);
      assertEquals(runs(), 0);
      layer.assertUsed();
    });
  }

  it("follows the order in which parallel calls were started", async () => {
    const first = Promise.withResolvers<string>();
    const slow: FakeTool = { name: "slow", execute: () => first.promise };
    const fast: FakeTool = { name: "fast", execute: () => first.resolve("slow") };
    const both = (call: Fixture["call"]): Promise<unknown> =>
      Promise.all([call("slow"), call("fast")]);
    const { call, layer } = await recorded(both, {}, [slow, fast]);
    await both(call);
    layer.assertUsed();
  });

  it("fails a call in another order, unless the match is unordered", async () => {
    const strict = await recorded(two);
    const result = await strict.call("refund", { euros: 2 });
    const why = 'Cannot call "refund": the next recording is refund({"euros":1}); ';
    assertEquals(result.ok ? "" : result.error.message, `${why}record the calls again`);
    assertEquals(!result.ok && [result.error.code, result.error.retryable], ["unavailable", false]);
    const unordered = await recorded(two, { match: "unordered" });
    const content = async (euros: number) => {
      const result = await unordered.call("refund", { euros });
      return result.ok ? result.content : result.error.code;
    };
    assertEquals(await content(2), { refunded: 2 });
    assertEquals(await content(2), "unavailable");
    assertEquals(await content(1), { refunded: 1 });
  });

  it("throws at the end of a block with unused recordings, or with calls without a recording", async () => {
    const { file, layer, call } = await recorded(two);
    assertThrows(
      () => {
        using _replayed = replay(file);
      },
      Error,
      `Cannot end the replay of ${file}: no call used refund({"euros":1}); no call used`,
    );
    await two(call);
    layer.assertUsed();
    await call("refund", { euros: 3 });
    const why = 'refund({"euros":3}): no unused recording has its arguments; correct the test';
    assertThrows(() => layer.assertUsed(), Error, why);
  });

  it("runs the tool of a call without a recording if onMiss is call", async () => {
    const { call, layer, runs } = await recorded(two, { onMiss: "call" });
    await call("refund", { euros: 3 });
    assertEquals(runs(), 1);
    await two(call);
    layer.assertUsed();
    assertEquals(runs(), 1);
  });

  it("validates and approves calls before it searches for their recordings", async () => {
    const { file } = await recorded(two);
    const guarded = { ...REFUND, requiresApproval: true };
    const { call } = fixture([guarded], { layers: [replay(file)], approve: () => false });
    const codes = await Promise.all([{ euros: "1" }, { euros: 1 }].map(async (args) => {
      const result = await call("refund", args);
      return result.ok ? "ok" : result.error.code;
    }));
    assertEquals(codes, ["invalid_arguments", "denied"]);
  });

  it("rejects unknown options, missing files, and files that are not recordings", () => {
    const file = newFile();
    assertThrows(() => replay(file), TypeError, "Cannot replay calls: ENOENT");
    writeFileSync(file, '{"call":1,"tool":"a","result":{}}\n{"sequence":1}\n');
    assertThrows(() => replay(file), TypeError, `line 2 of ${file} is not a recording`);
    assertThrows(() => replay(file, { match: "any" as never }), TypeError, '"/match" must be');
    assertThrows(() => record(join(folder, "none", "x")), TypeError, "Cannot record calls: ENOENT");
  });
});

describe("record()", () => {
  it("removes secrets, which replay() does not compare", async () => {
    const secret = "canary-7f3a91";
    const tool: FakeTool = {
      ...REFUND,
      execute: ({ pin, euros }: { readonly pin: string; readonly euros: number }) => {
        if (euros === 2) throw new Error(`Wrong pin ${pin}`);
        return { token: pin, text: `The pin is ${pin}`, refunded: euros, [pin]: 0 };
      },
    };
    const calls = (pin: string) => async (call: Fixture["call"]): Promise<unknown> => [
      await call("refund", { euros: 1, pin }),
      await call("refund", { euros: 2, pin }),
    ];
    const { text, call, layer } = await recorded(calls(secret), {}, [tool]);
    assertEquals(text.includes("7f3a91"), false);
    const [first] = await calls("another")(call) as readonly ToolResult[];
    const kept = "The pin is [redacted]";
    const content = { token: "[redacted]", text: kept, refunded: 1, "[redacted]": 0 };
    assertEquals(first?.ok && first.content, content);
    layer.assertUsed();
  });

  it("records arguments as the tool received them, and a resumed call once", async () => {
    const tool: FakeTool = {
      name: "ask",
      async execute(args: { list: number[] }, context) {
        args.list.push(2);
        return await context.ask("sure", { message: "Sure?" });
      },
    };
    const file = newFile();
    const tickets = storedTickets(memoryCallStore());
    const { call, dispatcher } = fixture([tool], { layers: [record(file)], tickets });
    const suspended = await call("ask", { list: [1] });
    assertEquals(readFileSync(file, "utf8"), "");
    const ticket = suspended.ok ? "" : suspended.ticket ?? "";
    await dispatcher.resume(ticket, { sure: { action: "accept", content: "yes" } });
    const lines = readFileSync(file, "utf8");
    assertMatch(
      lines,
      /^\{"call":2,"tool":"ask","arguments":\{"list":\[1\]\},"result":\{"ok":true.*\n$/,
    );
  });

  it("does not record an aborted call", async () => {
    const file = newFile();
    const started = Promise.withResolvers<void>();
    const controller = new AbortController();
    const wait: FakeTool = {
      name: "wait",
      execute: (_, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
          started.resolve();
        }),
    };
    const { call } = fixture([wait], { layers: [record(file)] });
    const ended = call("wait", {}, { signal: controller.signal });
    await started.promise;
    controller.abort();
    await ended;
    assertEquals(readFileSync(file, "utf8"), "");
  });
});

describeLayer("record()", () => ({ layers: [record(newFile())] }));
describeLayer("replay() that runs tools without recordings", () => {
  const file = newFile();
  writeFileSync(file, "");
  return { layers: [replay(file, { onMiss: "call" })] };
});
