import { describe, it } from "bun:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { fixture, messageOf, outcome, single } from "./support.ts";

// "Send error metadata: try context.sendMetadata(.{ .type = "error", .tool = tool_name,
// .error = @errorName(err) })"
describe("the metadata of a call that fails", () => {
  it("ends with the failure: its code, its tool and its message", async () => {
    const { call } = fixture([{
      namespace: "chain",
      name: "fails",
      execute: (_, { metadata }) => {
        metadata("on the way");
        throw new Error("the disk is full");
      },
    }]);
    const reports: unknown[] = [];
    const result = await call("chain:fails", {}, { metadata: (value) => reports.push(value) });
    assertEquals(reports, ["on the way", {
      type: "error",
      tool: "chain:fails",
      error: "threw",
      message: 'Cannot call "chain:fails": the tool threw: the disk is full',
    }]);
    assertEquals(messageOf(result).endsWith("the disk is full"), true);
  });

  it("has the issues that the failure has, and is a frozen copy", async () => {
    const parameters = { type: "object", required: ["path"] } as const;
    const { call } = single({ parameters, execute: () => 1 });
    const reports: { readonly issues: unknown[] }[] = [];
    const result = await call({}, {
      metadata: (value) => reports.push(value as { readonly issues: unknown[] }),
    });
    assert(!result.ok);
    assertEquals(reports.length, 1);
    assertEquals(reports[0]?.issues, [...(result.error.issues ?? [])]);
    assertThrows(() => reports[0]?.issues.push(1), TypeError);
    assert(Object.isFrozen(reports[0]) && Object.isFrozen(reports[0]?.issues[0]));
  });

  it("reports calls for which no tool ran", async () => {
    const { dispatcher } = fixture([{ name: "one", execute: () => 1 }], { maxCallsPerBatch: 2 });
    const reports: unknown[] = [];
    const metadata = (value: unknown): void => {
      const { type, tool, error } = value as Record<string, unknown>;
      reports.push([type, tool, error]);
    };
    await dispatcher.dispatchAll([{ name: "nope" }, { name: "one" }, { name: "one" }], {
      metadata,
    });
    await dispatcher.dispatch({} as { name: string }, { metadata });
    await dispatcher.dispatch({ name: "one" }, { metadata, timeoutMs: 0 });
    assertEquals(reports, [
      ["error", "nope", "unknown_tool"],
      ["error", "one", "overloaded"],
      ["error", "", "unknown_tool"],
      ["error", "one", "timeout"],
    ]);
  });

  it("is the final result, which an after hook may have changed", async () => {
    const reports: unknown[] = [];
    const { call } = single(() => 1, {
      hooks: {
        after: () => {
          assertEquals(reports, []);
          throw new Error("no");
        },
      },
    });
    const result = await call({}, { metadata: (value) => reports.push(value) });
    assertEquals(outcome(result), "denied");
    assertEquals(reports.map((value) => (value as { error: string }).error), ["denied"]);
  });

  it("is not sent for a success", async () => {
    const { call } = single(() => 1);
    const reports: unknown[] = [];
    await call({}, { metadata: (value) => reports.push(value) });
    assertEquals(reports, []);
  });

  it("is the result of a stream, and not a separate event", async () => {
    const { dispatcher } = single({ validate: () => "no" });
    const types: string[] = [];
    for await (const { type } of dispatcher.stream({ name: "t" })) types.push(type);
    assertEquals(types, ["result"]);
  });

  it("reports errors of the callback without affecting the call", async () => {
    const { call, reports } = fixture([{ name: "picky", execute: () => 1, validate: () => "no" }]);
    const metadata = (): never => {
      throw new Error("not listening");
    };
    assertEquals(outcome(await call("picky", {}, { metadata })), "invalid_arguments");
    assertEquals(outcome(await call("nope", {}, { metadata })), "unknown_tool");
    assertEquals(reports.map(({ toolId, phase }) => [toolId, phase]), [
      ["picky", "metadata"],
      ["nope", "metadata"],
    ]);
  });
});
