import { describe } from "bun:test";
import { type Tool, type ToolDefinition, ToolRegistry, ToolResult } from "@plue/tools";
import { runByClient } from "@plue/tools/calls";
import { toolOf } from "../../support/tool_of.ts";
import { type NamedTools, runTranscripts } from "./transcript.ts";
import bridge from "./transcripts/bridge.json" with { type: "json" };
import callers from "./transcripts/callers.json" with { type: "json" };
import calls from "./transcripts/calls.json" with { type: "json" };
import execute from "./transcripts/execute.json" with { type: "json" };
import formats from "./transcripts/formats.json" with { type: "json" };
import listing from "./transcripts/listing.json" with { type: "json" };
import openapi from "./transcripts/openapi.json" with { type: "json" };
import requests from "./transcripts/requests.json" with { type: "json" };
import streaming from "./transcripts/streaming.json" with { type: "json" };

/** Makes an object that can be read once; every later read throws. */
function changing(): object {
  let looks = 0;
  return Object.defineProperty({}, "a", {
    enumerable: true,
    get() {
      if (looks++ > 0) throw new Error("Gone");
      return 1;
    },
  });
}

/** A tool that requests approval before it runs. */
const asking = (more: Partial<ToolDefinition> = {}): readonly Tool[] => [
  toolOf("rm", async (params, { ask }) => {
    const { path } = params as { readonly path?: string };
    const { action } = await ask("sure", { kind: "approval", message: `Delete ${path}?` });
    return action === "accept" ? `deleted ${path}` : "kept";
  }, { parameters: { type: "object", properties: { path: { type: "string" } } }, ...more }),
];

const NAMED: NamedTools = {
  asking,
  byClient: () => [
    toolOf("locate", runByClient({ returns: { type: "number" } }), {
      parameters: { type: "object", properties: { exact: { type: "boolean" } } },
    }),
  ],
  changing: () => [toolOf("change", changing)],
  contexts: () => [
    toolOf("context", (_, { principal, sessionId, messageId, callId }) => [
      ...[principal ?? null, sessionId ?? null, messageId ?? null, callId],
    ]),
  ],
  counting() {
    let runs = 0;
    return [toolOf("count", () => ++runs)];
  },
  failing: () => [
    toolOf("threw", () => {
      throw new Error("disk on fire");
    }),
    toolOf("undefined", () => {
      throw undefined;
    }),
    toolOf("plan"),
    toolOf("own", () => ToolResult.error("overloaded", "Come back later")),
    toolOf("ask", () => null, { requiresApproval: true }),
    toolOf("cycle", () => {
      const cycle: Record<string, unknown> = {};
      return cycle["self"] = cycle;
    }),
  ],
  readers: () =>
    new ToolRegistry({
      tools: [{
        name: "echo",
        description: ({ locale, provider }) => `In ${locale ?? "none"} for ${provider ?? "all"}.`,
      }],
    }).tools,
  staffOnly: () => asking({ allowedRoles: ["admin"] }),
  talking: () => [
    toolOf("talk", async function* (_, context) {
      context.metadata({ phase: "begin" });
      context.progress(1, 2, "half");
      yield "a\nb";
      yield { n: 2 };
      return "done";
    }),
  ],
  // A tool that is never available is in no toolset, so its calls fail in the same way.
  unavailable: () => [
    toolOf("now", () => "ran", { isAvailable: () => false }),
    toolOf("never", () => "ran", { isAvailable: false }),
  ],
  whose: () => [
    toolOf("whose", (_, { context }) => (context as { readonly tenant: string }).tenant, {
      context: { type: "object", properties: { tenant: { type: "string" } }, required: ["tenant"] },
    }),
  ],
};

describe("requests that the handler reads or rejects", () => runTranscripts(requests));
describe("GET /tools", () => runTranscripts(listing, { named: NAMED }));
describe("POST /tools/:id/execute", () => runTranscripts(execute, { named: NAMED }));
describe("calls that outlive their request", () => runTranscripts(calls, { named: NAMED }));
describe("formats", () => runTranscripts(formats));
describe("bridges", () => runTranscripts(bridge));
describe("callers", () => runTranscripts(callers, { named: NAMED }));
describe("event streams", () => runTranscripts(streaming, { named: NAMED }));
describe("GET /openapi.json", () => runTranscripts(openapi));
