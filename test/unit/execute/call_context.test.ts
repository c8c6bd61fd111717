import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { z } from "zod";
import {
  defineTool,
  type DispatchErrorReport,
  ToolDispatcher,
  ToolRegistry,
} from "../../../mod.ts";
import { messageOf, outcome, single } from "./support.ts";

const TENANT = {
  type: "object",
  properties: { tenant: { type: "string" } },
  required: ["tenant"],
} as const;

function setUp() {
  const reports: DispatchErrorReport[] = [];
  let runs = 0;
  const dispatcher = new ToolDispatcher(
    new ToolRegistry({
      tools: [
        defineTool({
          name: "count",
          description: "Counts the bills of the tenant.",
          context: TENANT,
          execute: (_, { context }) => `${context.tenant}: ${++runs}`,
        }),
        defineTool({
          name: "since",
          description: "Says the year.",
          context: z.object({ since: z.instanceof(Date), zone: z.string().default("UTC") }),
          execute: (_, { context: { since, zone } }) => `${since.getUTCFullYear()} ${zone}`,
        }),
        defineTool({
          name: "plain",
          description: "Wants no context.",
          execute: (_, { context }) => String(context),
        }),
      ],
    }),
    { onError: (report) => void reports.push(report) },
  );
  return { dispatcher, reports, runs: () => runs };
}

describe("the context of one call", () => {
  it("reaches the tools that declare it, converted by their schemas", async () => {
    const { dispatcher } = setUp();
    const context = { tenant: "acme", since: new Date(0) };
    const results = await dispatcher.dispatchAll(
      [{ name: "count" }, { name: "since" }, { name: "plain" }],
      { context },
    );
    assertEquals(results.map(outcome), ["acme: 1", "1970 UTC", "undefined"]);
  });

  for (const [context, how] of [[undefined, "gave no context"], [{ tenant: 5 }, "gave a wrong"]]) {
    it(`is reported to the host only if it ${how}`, async () => {
      const { dispatcher, reports, runs } = setUp();
      const result = await dispatcher.dispatch({ name: "count" }, { context });
      assert(!result.ok);
      assertEquals([result.error.code, result.error.retryable], ["unavailable", false]);
      assertStringIncludes(messageOf(result), `its host ${how}`);
      assertStringIncludes(messageOf(result), "the arguments are not the cause");
      // Only the host receives the details.
      assertEquals([messageOf(result).includes("tenant"), result.error.issues], [false, undefined]);
      assertEquals(reports.map(({ phase }) => phase), ["context"]);
      assertStringIncludes(String(reports[0]?.error), `The host ${how}`);
      assertEquals(runs(), 0);
    });
  }

  it("cannot be set by the arguments", async () => {
    const { dispatcher } = setUp();
    const call = { name: "count", arguments: { context: { tenant: "evil" } } };
    const result = await dispatcher.dispatch(call, { context: { tenant: "acme" } });
    assertStringIncludes(messageOf(result), 'must not have the property "context"');
    const inCall = { name: "count", context: { tenant: "evil" } };
    assertStringIncludes(messageOf(await dispatcher.dispatch(inCall)), "its host gave no context");
  });

  it("is a copy if it is JSON: a tool that writes to it does not affect other calls", async () => {
    const seen: unknown[] = [];
    const { call } = single({
      context: { type: "object", properties: { tenant: { type: "string" } } },
      execute(_, { context }) {
        seen.push({ ...context as object });
        Object.assign(context as object, { tenant: "mallory" });
      },
    });
    const context = { tenant: "acme" };
    await call({}, { context });
    await call({}, { context });
    assertEquals([seen, context], [[context, context], { tenant: "acme" }]);
    const open = () => {};
    await call({}, { context: { tenant: "acme", open } });
    assertEquals(seen.at(-1), { tenant: "acme", open });
  });

  it("is shown to hooks once it is checked", async () => {
    const seen: unknown[] = [];
    const registry = setUp().dispatcher.toolset;
    const dispatcher = new ToolDispatcher(registry, {
      hooks: { before: ({ context }) => void seen.push(context) },
    });
    await dispatcher.dispatch({ name: "count" }, { context: { tenant: "acme" } });
    await dispatcher.dispatch({ name: "plain" }, { context: { tenant: "acme" } });
    assertEquals(seen, [{ tenant: "acme" }, undefined]);
  });

  it("requires a valid schema", () => {
    const tool = defineTool({ name: "t", description: "T.", context: { type: "none" } });
    assertThrows(() => new ToolRegistry({ tools: [tool] }), TypeError, "its context");
  });
});
