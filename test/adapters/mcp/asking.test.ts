import type { Client } from "@modelcontextprotocol/client";
import { type Answer, defineTool, type Tool, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { runByClient, sealedTickets } from "@plue/tools/calls";
import { createMcpEndpoint, type McpEndpoint, type McpEndpointOptions } from "@plue/tools/mcp";
import { afterEach, describe, it } from "bun:test";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { IS_WORKERS } from "../../../src/adapters/http/mod.ts";
import { ClientAnswers } from "../../../src/adapters/mcp/sessions.ts";
import { type NamedTools, runTranscripts } from "../hono/transcript.ts";
import data from "./transcripts/asking.json" with { type: "json" };
import * as support from "./support.ts";
import { accept, connect, legacyRequest, NAME } from "./support.ts";

const KEY = new Uint8Array(32).fill(7);

const textOf = (answer: Answer): string =>
  answer.action === "accept" ? JSON.stringify(answer.content) : answer.action;

/** A tool that asks a question, and counts its starts. */
function asking(execute: NonNullable<Tool["execute"]>, fields: Partial<Tool> = {}): Tool {
  return defineTool({ name: "asks", description: "Asks.", ...fields, execute } as never);
}
const greet = asking(async (_, { ask }) => `Hello, ${textOf(await ask("user", NAME))}!`);

const VISIT = { kind: "authorization", message: "Log in", url: "https://login.example/" } as const;

const login = asking(async (_, { ask }) => textOf(await ask("login", VISIT)));

function endpoint(
  tools: readonly Tool[],
  options: McpEndpointOptions & { readonly tickets?: boolean } = {},
): McpEndpoint {
  const { tickets = true, ...rest } = options;
  const registry = new ToolRegistry({ tools });
  return createMcpEndpoint(registry, {
    openExecution: true,
    dispatcher: new ToolDispatcher(registry, {
      approve: "ask",
      ...(tickets ? { tickets: sealedTickets({ keys: [KEY] }) } : {}),
    }),
    ...rest,
  });
}

const unaskable = {
  message: "Where?",
  schema: { type: "object", properties: { place: { type: "object" } } },
} as const;
const AGE = { message: "How old?", schema: { type: "integer", minimum: 18 } } as const;
const PLACE = {
  type: "object",
  properties: { latitude: { type: "number" } },
  required: ["latitude"],
} as const;

const NAMED: NamedTools = {
  age: () => [asking(async (_, { ask }) => textOf(await ask("age", AGE)))],
  approved() {
    let runs = 0;
    return [
      asking(() => `run ${++runs}`, { requiresApproval: true, parameters: { type: "object" } }),
    ];
  },
  both: () => [
    asking(async (_, { ask }) => {
      const answers = await Promise.all([ask("user", NAME), ask("login", VISIT)]);
      return answers.map(textOf).join(" ");
    }),
  ],
  deep: () => [asking(async (_, { ask }) => textOf(await ask("deep", unaskable)))],
  fallback: () => [
    asking(async (_, { ask }) => textOf(await ask("login", VISIT).catch(() => ask("user", NAME)))),
  ],
  greet: () => [greet],
  locate: () => [
    asking(runByClient({ returns: PLACE, message: "Locate" }), {
      parameters: { type: "object", properties: { exact: { type: "boolean" } } },
      returns: PLACE,
    }),
  ],
  login: () => [login],
};

describe("questions to clients of 2026-07-28", () => {
  runTranscripts(data, { named: NAMED, isMcp: true });

  it("are answered by the official client", async () => {
    const client = await connect(endpoint([greet]), "auto", {}, { elicitation: { form: {} } });
    client.setRequestHandler("elicitation/create", () => accept({ name: "Ann" }) as never);
    const { content } = await client.callTool({ name: "asks" });
    assertEquals(content, [{ type: "text", text: 'Hello, {"name":"Ann"}!' }]);
    await client.close();
  });
});

const opened: Client[] = [];
afterEach(async () => void await Promise.all(opened.splice(0).map((client) => client.close())));

/** A client of the older revisions, which records the received questions. */
async function older(
  mcp: Pick<McpEndpoint, "fetch">,
  capabilities: Record<string, unknown>,
  answer: () => unknown,
): Promise<{ readonly client: Client; readonly requests: unknown[] }> {
  const requests: unknown[] = [];
  const client = await connect(mcp, "legacy", {}, capabilities);
  if ("elicitation" in capabilities) {
    client.setRequestHandler("elicitation/create", ({ params }) => {
      requests.push(params);
      return answer() as never;
    });
  }
  opened.push(client);
  return { client, requests };
}

describe("questions to clients before 2026-07-28", () => {
  if (IS_WORKERS) {
    it("are not sent on Workers: the result explains what to do", async () => {
      const { client, requests } = await older(endpoint([greet]), { elicitation: {} }, () => {});
      const { isError, content } = await client.callTool({ name: "asks" });
      assertEquals([isError, requests], [true, []]);
      assertStringIncludes(JSON.stringify(content), "MCP 2026-07-28");
    });

    it("return an address to visit in the protocol's error", async () => {
      const { client } = await older(endpoint([login]), { elicitation: { url: {} } }, () => {});
      const error = await assertRejects(() => client.callTool({ name: "asks" }));
      const { code, data } = error as unknown as {
        readonly code: number;
        readonly data: { readonly elicitations: readonly { readonly url: string }[] };
      };
      assertEquals([code, data.elicitations[0]?.url], [-32042, "https://login.example/"]);
    });
    return;
  }

  for (const tickets of [true, false]) {
    it(`are sent on the stream of the call (tickets: ${tickets})`, async () => {
      const { client, requests } = await older(
        endpoint([greet], { tickets }),
        { elicitation: {} },
        () => accept({ name: "Ann" }),
      );
      const { content } = await client.callTool({ name: "asks" });
      assertEquals(content, [{ type: "text", text: 'Hello, {"name":"Ann"}!' }]);
      assertEquals(requests.length, 1);
    });
  }

  it("accept answers after another endpoint has replaced the first one", async () => {
    let current = endpoint([greet]);
    const { client } = await older(
      { fetch: (request) => current.fetch(request) },
      { elicitation: {} },
      () => {
        current = endpoint([greet]);
        return accept({ name: "Ann" });
      },
    );
    const { content } = await client.callTool({ name: "asks" });
    assertEquals(content, [{ type: "text", text: 'Hello, {"name":"Ann"}!' }]);
  });

  it("of concurrent calls receive the answers to their own call", async () => {
    const two = asking(
      async ({ who }: { who: string }, { ask }) =>
        `${who}: ${textOf(await ask("user", { ...NAME, message: who }))}`,
      {
        parameters: { type: "object", properties: { who: { type: "string" } }, required: ["who"] },
      },
    );
    const { client, requests } = await older(endpoint([two]), { elicitation: {} }, () => {
      const { message } = requests.at(-1) as { readonly message: string };
      return accept({ name: message.toUpperCase() });
    });
    const results = await Promise.all(
      ["ann", "bob", "eve"].map((who) => client.callTool({ name: "asks", arguments: { who } })),
    );
    assertEquals(
      results.map(({ content }) => (content as { readonly text: string }[])[0]?.text),
      ["ann", "bob", "eve"].map((who) => `${who}: {"name":"${who.toUpperCase()}"}`),
    );
  });

  it("reject answers of another caller or session", async () => {
    const mcp = endpoint([greet], { authorize: support.byWho });
    const begin = async (who: string): Promise<string> =>
      (await support.beginSession(mcp, { "x-who": who }, { elicitation: {} })).session;
    const headers = (who: string, session: string): Record<string, string> => ({
      "x-who": who,
      "mcp-session-id": session,
      "mcp-protocol-version": "2025-11-25",
    });
    const [ann, other, bob] = [await begin("ann"), await begin("ann"), await begin("bob")];
    const call = { name: "asks" };
    const response = await support.fetchLegacy(mcp, "tools/call", call, headers("ann", ann));
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const readUntil = async (word: string): Promise<void> => {
      while (!text.includes(word)) text += (await reader?.read())?.value ?? "";
    };
    await readUntil("elicitation/create");
    const id = /"id":"([^"]+)"/.exec(text)?.[1];
    const reply = (who: string, session: string, name: string): Promise<Response> =>
      mcp.fetch(
        legacyRequest({ jsonrpc: "2.0", id, result: accept({ name }) }, headers(who, session)),
      );
    await reply("bob", ann, "from bob");
    await reply("bob", bob, "from bob");
    await reply("ann", other, "from another session");
    assertEquals((await reply("ann", ann, "Ann")).status, 202);
    await readUntil('"result"');
    assertStringIncludes(text, "Ann");
    assert(!text.includes("from bob") && !text.includes("another session"), text);
  });

  it("are limited to 256 for each principal of an endpoint while they wait for answers", async () => {
    const [answers, others] = [new ClientAnswers(), new ClientAnswers()];
    const [calls, next] = [new AbortController(), new AbortController()];
    const ask = (principal: string, { signal } = calls, endpoint = answers) => {
      const request = { method: "elicitation/create", params: NAME } as never;
      return endpoint.ask({ principal, session: "one" }, request, () => Promise.resolve(), signal);
    };
    const waiting = [...Array.from({ length: 256 }, () => ask("ann")), ask("bob")];
    waiting.push(ask("ann", calls, others));
    assertEquals(await ask("ann"), undefined);
    calls.abort(new Error("The call is over"));
    for (const one of waiting) await assertRejects(() => one, Error, "The call is over");
    const again = ask("ann", next);
    next.abort(new Error("The next call is over"));
    await assertRejects(() => again, Error, "The next call is over");
  });

  it("are not sent to a client without elicitation: the result explains what to do", async () => {
    const approved = asking(() => "done", { requiresApproval: true });
    for (
      const [tool, words] of [[greet, "What is your name?"], [approved, "Run the tool"]] as const
    ) {
      const { client } = await older(endpoint([tool]), {}, () => {});
      const { isError, content } = await client.callTool({ name: "asks" });
      assertEquals(isError, true);
      assertStringIncludes(JSON.stringify(content), words);
      assertStringIncludes(JSON.stringify(content), "declares elicitation");
    }
  });

  it("are declined if the user rejects them, and void if the client has no answer", async () => {
    for (
      const [code, word] of [[-1, "decline"], [-32603, "this client cannot be asked"]] as const
    ) {
      const { client } = await older(endpoint([greet]), { elicitation: {} }, () => {
        throw Object.assign(new Error("No"), { code });
      });
      const { content } = await client.callTool({ name: "asks" });
      assertStringIncludes(JSON.stringify(content), word);
    }
  });

  it("end with the call", async () => {
    const begun = Promise.withResolvers<void>();
    const { client } = await older(endpoint([greet]), { elicitation: {} }, () => {
      begun.resolve();
      return new Promise(() => {});
    });
    const controller = new AbortController();
    const called = client.callTool({ name: "asks" }, { signal: controller.signal });
    await begun.promise;
    controller.abort();
    await assertRejects(() => called);
  });

  it("send an address to visit on the stream, or in the result", async () => {
    const { client, requests } = await older(
      endpoint([login]),
      { elicitation: { url: {} } },
      () => ({ action: "accept" }),
    );
    await client.callTool({ name: "asks" });
    const [{ mode, url, elicitationId }] = requests as [Record<string, string>];
    assertEquals([mode, url], ["url", "https://login.example/"]);
    assert(elicitationId !== undefined);
    const without = await older(endpoint([login]), { elicitation: { form: {} } }, () => {});
    const { content } = await without.client.callTool({ name: "asks" });
    assertStringIncludes(JSON.stringify(content), "https://login.example/");
  });
});
