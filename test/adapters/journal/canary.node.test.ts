/** No record of the journal may contain a secret of a call in process, over HTTP or over MCP. */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolDispatcher, ToolRegistry, ToolResult } from "@plue/tools";
import { memoryCallStore, storedTickets } from "@plue/tools/calls";
import { codeTool, type Executor } from "@plue/tools/code";
import { createToolHandler } from "@plue/tools/hono";
import { journal, type JournalDetail } from "@plue/tools/journal";
import { createMcpEndpoint } from "@plue/tools/mcp";
import type { Tool, ToolContext } from "@plue/tools";
import { fetchLegacy } from "../mcp/support.ts";
import { memorySink, recorded, recordsIn } from "./support.ts";

const OPEN = { selection: { maxRisk: "medium" }, openExecution: true } as const;
const CANARY = 'canary "7f3a91" of ann';
/** The forms that a secret takes in JSON, in JSON inside JSON, and in a URL. */
const FORMS = [CANARY, JSON.stringify(CANARY).slice(1, -1), encodeURIComponent(CANARY), "7f3a91"];

const SECRETS: Readonly<Record<string, unknown>> = {
  "marked with writeOnly": { type: "string", writeOnly: true },
  "marked with the format password": { type: "string", format: "password" },
  "marked with x-sensitive": { type: "string", "x-sensitive": true },
  "marked behind a reference": { $ref: "#/$defs/secret" },
  "marked behind a dynamic reference": { $dynamicRef: "#dynamic" },
  "marked in one of two forms": { anyOf: [{ type: "integer" }, { $ref: "#/$defs/secret" }] },
};

function toolsWith(secret: unknown, name: string): ToolRegistry {
  const parameters = {
    type: "object",
    properties: {
      how: { type: "string" },
      [name]: secret,
      list: { type: "array", items: secret },
      deep: { type: "object", additionalProperties: secret },
    },
    $defs: {
      secret: { type: "string", writeOnly: true },
      dynamic: { $dynamicAnchor: "dynamic", type: "string", writeOnly: true },
    },
  };
  const execute = async (
    { how, [name]: value }: Record<string, string>,
    context: ToolContext,
  ): Promise<unknown> => {
    context.metadata({ value });
    context.progress(1, 2, value);
    if (how === "throw") throw new Error(`Wrong: ${value}; as JSON ${JSON.stringify({ value })}`);
    if (how === "fail") {
      const issue = {
        path: "/x",
        keyword: "custom",
        expected: value ?? "",
        message: `Not ${value}`,
      };
      return ToolResult.error("denied", `Not ${value}`, { issues: [issue] });
    }
    if (how === "ask") await context.ask("sure", { message: `Is ${value} right?` });
    return { [name]: value, list: [value], deep: { x: value } };
  };
  const tool = { name: "login", description: "Logs in.", parameters, returns: parameters, execute };
  const hidden = { ...tool, name: "hidden", risk: "high" };
  return new ToolRegistry({ tools: [tool, hidden] as unknown as Tool[] });
}

const HOWS = ["", "throw", "fail", "ask", "wrong"] as const;

function argumentsFor(how: string, name: string): Record<string, unknown> {
  const secret = { [name]: CANARY, list: [CANARY], deep: { x: CANARY } };
  return how === "wrong" ? { how: 5, ...secret } : { how, ...secret };
}

type Call = (tool: string, args: unknown) => Promise<unknown>;

/** The ways to call a registry. Each also sends the secret outside the arguments. */
const ENTRIES: Readonly<
  Record<string, (dispatcher: ToolDispatcher, registry: ToolRegistry) => Call>
> = {
  "a dispatch of values": (dispatcher) => async (name, args) => {
    const output: unknown[] = [];
    return await dispatcher.dispatch({ name, arguments: args }, {
      context: { secret: CANARY },
      services: { secret: CANARY },
      idempotencyKey: undefined,
      metadata: (value) => void output.push(value),
      progress: (value) => void output.push(value),
    });
  },
  "a dispatch of text": (dispatcher) => (name, args) =>
    dispatcher.dispatch({ name, arguments: JSON.stringify(args) }),
  "text that is not JSON": (dispatcher) => (name, args) =>
    dispatcher.dispatch({ name, arguments: `${JSON.stringify(args)},` }),
  HTTP: (dispatcher, registry) => {
    const app = createToolHandler(registry, { dispatcher, ...OPEN });
    return async (name, args) => {
      const response = await app.request(`http://localhost/tools/${name}/execute`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${encodeURIComponent(CANARY)}`,
          cookie: `session=${encodeURIComponent(CANARY)}`,
          traceparent: CANARY,
        },
        body: JSON.stringify({ arguments: args }),
      });
      return await response.text();
    };
  },
  MCP: (dispatcher, registry) => {
    const endpoint = createMcpEndpoint(registry, { dispatcher, ...OPEN });
    return async (name, args) => {
      const params = { name, arguments: args, _meta: { progressToken: CANARY } };
      const version = { "mcp-protocol-version": "2025-11-25" };
      return await (await fetchLegacy(endpoint, "tools/call", params, version)).text();
    };
  },
};

async function linesOf(
  detail: JournalDetail,
  secret: unknown,
  name: string,
  entry: keyof typeof ENTRIES,
): Promise<readonly string[]> {
  const sink = memorySink();
  const kept = journal({ sink, onFailure: "drop-and-count", arguments: detail });
  const registry = toolsWith(secret, name);
  const dispatcher = new ToolDispatcher(registry, {
    layers: [kept],
    tickets: storedTickets(memoryCallStore()),
  });
  const call = ENTRIES[entry]?.(dispatcher, registry);
  for (const how of HOWS) await call?.("login", argumentsFor(how, name));
  await call?.("hidden", argumentsFor("", name));
  await call?.("none", argumentsFor("", name));
  await kept.close();
  return sink.lines;
}

describe("a secret", () => {
  for (const detail of ["none", "digest", "redacted"] as const) {
    for (const entry of Object.keys(ENTRIES)) {
      // The other entries all call the dispatcher, so one way to mark the secret is enough.
      const marks = Object.keys(SECRETS).slice(0, entry === "a dispatch of values" ? undefined : 1);
      for (const mark of marks) {
        it(`${mark} is in no record with the detail ${detail} through ${entry}`, async () => {
          const lines = await linesOf(detail, SECRETS[mark], "pin", entry);
          const calls = recordsIn(lines).filter(({ kind }) => kind === undefined);
          assertEquals(calls.length, HOWS.length + 2);
          for (const line of lines) for (const form of FORMS) assert(!line.includes(form), line);
        });
      }
    }
  }

  it("is in no record of a program that passes it to a tool, however the call ends", async () => {
    const sink = memorySink();
    const kept = journal({ sink, onFailure: "drop-and-count", arguments: "redacted" });
    const executor: Executor = {
      async run({ source, call }) {
        const reply = await call({ index: 0, id: "login", json: source });
        if (reply === undefined) return { kind: "suspended" };
        return { kind: "threw", message: source, log: [reply] };
      },
    };
    const registry = toolsWith(SECRETS["marked with writeOnly"], "pin");
    const dispatcher = new ToolDispatcher(codeTool(registry, { executor }), {
      layers: [kept],
      tickets: storedTickets(memoryCallStore()),
    });
    for (const how of HOWS) {
      const code = JSON.stringify(argumentsFor(how, "pin"));
      await dispatcher.dispatch({ name: "run_code", arguments: { code } });
    }
    await kept.close();
    const tools = recordsIn(sink.lines).flatMap(({ tool }) => tool ?? []);
    assertEquals(tools, HOWS.flatMap(() => ["login", "run_code"]));
    for (const line of sink.lines) for (const form of FORMS) assert(!line.includes(form), line);
  });

  it("is found by the name of its member, at any depth, whatever the case and the separators", async () => {
    const sink = memorySink();
    const kept = journal({
      sink,
      onFailure: "drop-and-count",
      arguments: "redacted",
      secrets: ["pin"],
    });
    const registry = new ToolRegistry({
      tools: [{
        name: "any",
        description: "Any.",
        parameters: { type: "object" },
        execute: (value: unknown) => value,
      }],
    });
    const dispatcher = new ToolDispatcher(registry, { layers: [kept] });
    for (const name of ["password", "API_KEY", "Client-Secret", "newPassword", "Pin"]) {
      const args = { list: [{ [name]: [{ value: CANARY }] }] };
      await dispatcher.dispatch({ name: "any", arguments: args });
    }
    await kept.close();
    const calls = recordsIn(sink.lines).filter(({ kind }) => kind === undefined);
    assertEquals(calls.map(({ outcome }) => outcome), ["ok", "ok", "ok", "ok", "ok"]);
    assert(!sink.lines.join("\n").includes("7f3a91"));
  });

  it("is in no record if it is the name of a member of a secret object, or of an unknown tool", async () => {
    const { call, records } = recorded([{ name: "any" }], { arguments: "redacted" });
    await call("any", { password: { [CANARY]: true } });
    await call("none", { [CANARY]: true });
    const stored = (await records()).map((record) => record.arguments);
    assertEquals(stored, [{ password: "[redacted]" }, "[redacted]"]);
  });

  it("is found in a schema that only a reference finds", async () => {
    const login = { type: "object", properties: { pin: { type: "string", writeOnly: true } } };
    const { call, records } = recorded([{
      name: "any",
      parameters: {
        type: "object",
        properties: { login: { $ref: "#/components/schemas/login" } },
        components: { schemas: { login } },
      },
    }], { arguments: "redacted" });
    await call("any", { login: { pin: CANARY } });
    assertEquals((await records())[0]?.arguments, { login: { pin: "[redacted]" } });
  });

  it("is found behind a reference in a schema that has an $id of its own", async () => {
    const $defs = { secret: { type: "string", writeOnly: true } };
    const { call, records } = recorded([{
      name: "any",
      parameters: {
        type: "object",
        properties: {
          login: {
            $id: "https://example.com/login",
            type: "object",
            properties: { pin: { $ref: "#/$defs/secret" } },
            $defs,
          },
        },
        $defs: { secret: { type: "string" } },
      },
    }], { arguments: "redacted" });
    await call("any", { login: { pin: CANARY } });
    assertEquals((await records())[0]?.arguments, { login: { pin: "[redacted]" } });
  });

  it("is in no message that was cut within it", async () => {
    const { call, records } = recorded([{
      name: "any",
      execute: ({ password }: { password: string }) => {
        throw new Error(`Wrong: ${password}`);
      },
    }], { arguments: "redacted" });
    await call("any", { password: "7f3a91".repeat(1_000) });
    const [record] = await records();
    assertEquals(record?.message?.replace(/.*Wrong: /, ""), "[redacted]…");
  });

  it("is not looked for in messages one by one if there are very many", async () => {
    const { call, records } = recorded([], { arguments: "redacted" });
    await call("none", { list: Array.from({ length: 1_000 }, (_, at) => `secret ${at}`) });
    assertEquals((await records())[0]?.message, "[redacted]");
  });

  it("is in the records with all arguments, so that the test above can fail", async () => {
    const lines = await linesOf("full", { type: "string" }, "pin", "a dispatch of values");
    assertStringIncludes(lines.join("\n"), "7f3a91");
  });
});
