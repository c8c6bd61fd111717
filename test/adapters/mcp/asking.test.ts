import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { type Answer, defineTool, type Tool, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { runByClient, sealedTickets } from "@plue/tools/calls";
import { createMcpEndpoint, type McpEndpoint, type McpEndpointOptions } from "@plue/tools/mcp";
import { describe, it } from "bun:test";
import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { IS_WORKERS } from "../../../src/adapters/http/mod.ts";
import { fetchFrom, legacyRequest, messageIn, modernRequest, URL_OF_MCP } from "./support.ts";

const KEY = new Uint8Array(32).fill(7);

const said = (answer: Answer): string =>
  answer.action === "accept" ? JSON.stringify(answer.content) : answer.action;

const NAME = {
  message: "What is your name?",
  schema: {
    type: "object",
    properties: { name: { type: "string", minLength: 2 } },
    required: ["name"],
  },
} as const;

/** A tool that asks, and counts how often it has begun. */
function asking(execute: NonNullable<Tool["execute"]>, fields: Partial<Tool> = {}): Tool {
  return defineTool({ name: "asks", description: "Asks.", ...fields, execute } as never);
}
const greet = asking(async (_, { ask }) => `Hello, ${said(await ask("user", NAME))}!`);

const login = asking(async (_, { ask }) =>
  said(
    await ask("login", {
      kind: "authorization",
      message: "Log in",
      url: "https://login.example/",
    }),
  )
);

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

const ALL = { elicitation: { form: {}, url: {} } };

/** Calls the tool of an endpoint as a client of 2026-07-28 does. */
async function call(
  mcp: McpEndpoint,
  params: Record<string, unknown> = {},
  { capabilities = ALL as unknown, headers = {} as Record<string, string>, meta = {} } = {},
): Promise<Called> {
  const response = await mcp.fetch(
    modernRequest("tools/call", {
      name: "asks",
      arguments: {},
      ...params,
      _meta: { "io.modelcontextprotocol/clientCapabilities": capabilities, ...meta },
    }, headers),
  );
  return { status: response.status, ...await messageIn(response) } as Called;
}

interface Called {
  readonly status: number;
  readonly result?: {
    readonly resultType: string;
    readonly inputRequests?: Readonly<
      Record<string, { readonly method: string; readonly params?: Record<string, unknown> }>
    >;
    readonly requestState?: string;
    readonly content?: readonly { readonly text: string }[];
    readonly isError?: boolean;
  };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

const accept = (content: unknown) => ({ action: "accept", content });

describe("questions to clients of 2026-07-28", () => {
  it("are the result of the call, which the client repeats with the answers", async () => {
    const mcp = endpoint([greet]);
    const { result: asked } = await call(mcp);
    assertEquals(asked?.resultType, "input_required");
    assertEquals(asked?.inputRequests?.["user"], {
      method: "elicitation/create",
      params: { message: NAME.message, requestedSchema: NAME.schema },
    });
    const { result } = await call(mcp, {
      requestState: asked?.requestState,
      inputResponses: { user: accept({ name: "Ann" }), other: accept({}) },
    });
    assertEquals(result?.resultType, "complete");
    assertEquals(result?.content?.[0]?.text, 'Hello, {"name":"Ann"}!');
  });

  it("have a form with one field if the answer is not an object", async () => {
    const mcp = endpoint([
      asking(async (_, { ask }) =>
        said(await ask("age", { message: "How old?", schema: { type: "integer", minimum: 18 } }))
      ),
    ]);
    const { result: asked } = await call(mcp);
    assertEquals(asked?.inputRequests?.["age"]?.params?.["requestedSchema"], {
      type: "object",
      properties: { answer: { type: "integer", minimum: 18 } },
      required: ["answer"],
    });
    const reply = (answer: unknown) =>
      call(mcp, {
        requestState: asked?.requestState,
        inputResponses: { age: accept({ answer }) },
      });
    assertEquals((await reply(42)).result?.content?.[0]?.text, "42");
    assertEquals((await reply(7)).result?.resultType, "input_required");
    assertEquals(
      (await call(mcp, { inputResponses: { age: accept({ answer: 42 }) } })).result?.content?.[0]
        ?.text,
      "42",
    );
  });

  it("have the arguments and the form of the result of a tool that the client runs", async () => {
    const returns = {
      type: "object",
      properties: { latitude: { type: "number" } },
      required: ["latitude"],
    } as const;
    const mcp = endpoint([
      asking(runByClient({ returns, message: "Locate" }), {
        parameters: { type: "object", properties: { exact: { type: "boolean" } } },
        returns,
      }),
    ]);
    const { result: asked } = await call(mcp, { arguments: { exact: true } });
    assertEquals(asked?.inputRequests?.["client"]?.params, {
      message: 'Locate\n\n{\n  "exact": true\n}',
      requestedSchema: returns,
    });
    const { result } = await call(mcp, {
      arguments: { exact: true },
      requestState: asked?.requestState,
      inputResponses: { client: accept({ latitude: 41.9 }) },
    });
    assertEquals(result?.content?.[0]?.text, '{"latitude":41.9}');
  });

  it("are the same through the SDK's server", async () => {
    const mcp = endpoint([greet]);
    const meta = { progressToken: 1 };
    const { result: asked } = await call(mcp, {}, { meta });
    assertEquals(asked?.resultType, "input_required");
    const { result } = await call(mcp, {
      requestState: asked?.requestState,
      inputResponses: { user: { action: "decline" } },
    }, { meta });
    assertEquals(result?.content?.[0]?.text, "Hello, decline!");
  });

  it("are repeated if the answer is invalid, with the reason", async () => {
    const mcp = endpoint([greet]);
    const { result: asked } = await call(mcp);
    const { result: again } = await call(mcp, {
      requestState: asked?.requestState,
      inputResponses: { user: accept({ name: "A" }) },
    });
    assertEquals(again?.resultType, "input_required");
    assertStringIncludes(
      String(again?.inputRequests?.["user"]?.params?.["message"]),
      "did not fit: /name",
    );
    const { result } = await call(mcp, {
      requestState: again?.requestState,
      inputResponses: { user: accept({ name: "Al" }) },
    });
    assertEquals(result?.resultType, "complete");
  });

  it("are repeated if the answer is missing", async () => {
    const mcp = endpoint([greet]);
    const { result: asked } = await call(mcp);
    for (const inputResponses of [{}, { other: accept({}) }, { user: 4 }]) {
      const { result } = await call(mcp, { requestState: asked?.requestState, inputResponses });
      assertEquals(result?.resultType, "input_required");
    }
  });

  it("accept answers in advance", async () => {
    const mcp = endpoint([greet]);
    const { result } = await call(mcp, { inputResponses: { user: accept({ name: "Ann" }) } });
    assertEquals(result?.content?.[0]?.text, 'Hello, {"name":"Ann"}!');
  });

  it("ask for approval with the arguments, and never take it in advance", async () => {
    let ran = 0;
    const mcp = endpoint([
      asking(() => void ran++, {
        requiresApproval: true,
        parameters: { type: "object", properties: { path: { type: "string" } } },
      }),
    ]);
    const args = { path: "/etc/passwd" };
    const approval = { "plue:approval": { action: "accept" } };
    const { result: early } = await call(mcp, { arguments: args, inputResponses: approval });
    assertEquals(early?.resultType, "input_required");
    const request = early?.inputRequests?.["plue:approval"];
    assertStringIncludes(String(request?.params?.["message"]), "/etc/passwd");
    assertEquals(ran, 0);
    // Another call's arguments are not approved with it.
    const { error } = await call(mcp, {
      arguments: { path: "/" },
      requestState: early?.requestState,
      inputResponses: approval,
    });
    assertEquals(error?.code, -32602);
    const { result: declined } = await call(mcp, {
      arguments: args,
      requestState: early?.requestState,
      inputResponses: { "plue:approval": { action: "decline" } },
    });
    assertEquals([declined?.isError, ran], [true, 0]);
    const { result } = await call(mcp, {
      arguments: args,
      requestState: early?.requestState,
      inputResponses: approval,
    });
    assertEquals([result?.resultType, result?.isError, ran], ["complete", undefined, 1]);
  });

  it("send an address to visit", async () => {
    const mcp = endpoint([login]);
    const { result } = await call(mcp);
    assertEquals(result?.inputRequests?.["login"], {
      method: "elicitation/create",
      params: { mode: "url", message: "Log in", url: "https://login.example/" },
    });
    const { error, status } = await call(mcp, {}, { capabilities: { elicitation: {} } });
    assertEquals([status, error?.code], [400, -32021]);
    assertEquals(error?.data, { requiredCapabilities: { elicitation: { url: {} } } });
  });

  it("reach a tool that falls back to another question if the client cannot receive the first", async () => {
    const mcp = endpoint([
      asking(async (_, { ask }) =>
        said(
          await ask("login", {
            kind: "authorization",
            message: "Log in",
            url: "https://login.example/",
          }).catch(() => ask("user", NAME)),
        )
      ),
    ]);
    const { result } = await call(mcp, {}, { capabilities: { elicitation: { form: {} } } });
    assertEquals(Object.keys(result?.inputRequests ?? {}), ["user"]);
  });

  it("name every capability that the client lacks", async () => {
    const mcp = endpoint([
      asking(async (_, { ask }) => {
        const visit = {
          kind: "authorization",
          message: "Log in",
          url: "https://a.example/",
        } as const;
        const answers = await Promise.all([ask("user", NAME), ask("login", visit)]);
        return answers.map(said).join(" ");
      }),
    ]);
    const { error } = await call(mcp, {}, { capabilities: {} });
    assertEquals(error?.data, { requiredCapabilities: { elicitation: { form: {}, url: {} } } });
  });

  for (const progressToken of [undefined, 1]) {
    it(`name what the client must declare (progress token ${progressToken})`, async () => {
      const meta = progressToken === undefined ? {} : { progressToken };
      const { status, error } = await call(endpoint([greet]), {}, { capabilities: {}, meta });
      assertEquals([status, error?.code], [400, -32021]);
      assertEquals(error?.data, { requiredCapabilities: { elicitation: { form: {} } } });
      const without = await call(endpoint([greet], { tickets: false }), {}, {
        capabilities: {},
        meta,
      });
      assertEquals([without.status, without.error?.code], [400, -32021]);
    });
  }

  it("show all arguments with an approval, and do not ask where they are too long", async () => {
    const mcp = endpoint([
      asking(() => "done", { requiresApproval: true, parameters: { type: "object" } }),
    ]);
    const path = `${"x".repeat(10_000)}/../secret`;
    const { result } = await call(mcp, { arguments: { path, other: "last" } });
    const message = String(result?.inputRequests?.["plue:approval"]?.params?.["message"]);
    assertMatch(message, /"path": "x{10000}\/\.\.\/secret",\n +"other": "last"/);
    const { result: refused } = await call(mcp, { arguments: { path: "x".repeat(20_000) } });
    assertEquals(refused?.isError, true);
    assertStringIncludes(refused?.content?.[0]?.text ?? "", "arguments are too long to be shown");
  });

  it("name what the client must declare to approve", async () => {
    const mcp = endpoint([asking(() => "done", { requiresApproval: true })]);
    const { status, error } = await call(mcp, {}, { capabilities: {} });
    assertEquals([status, error?.code], [400, -32021]);
    assertEquals(error?.data, { requiredCapabilities: { elicitation: { form: {} } } });
  });

  it("fail for the model if MCP has no form for them, and the reason is logged", async () => {
    const logged: string[] = [];
    const registry = new ToolRegistry({
      tools: [
        asking(async (_, { ask }) =>
          said(
            await ask("deep", {
              message: "Where?",
              schema: { type: "object", properties: { place: { type: "object" } } },
            }),
          )
        ),
      ],
    });
    const mcp = createMcpEndpoint(registry, {
      openExecution: true,
      dispatch: { tickets: sealedTickets({ keys: [KEY] }) },
      onError: (error) => void logged.push(String(error)),
    });
    const { result } = await call(mcp);
    assertEquals(result?.isError, true);
    assertStringIncludes(result?.content?.[0]?.text ?? "", "MCP supports forms of strings");
    assertEquals(logged.length, 1);
    assertStringIncludes(logged[0] ?? "", 'Cannot ask "deep": MCP supports forms of strings');
  });

  it("are a failure for the model where there are no tickets", async () => {
    const { result } = await call(endpoint([greet], { tickets: false }));
    assertEquals(result?.isError, true);
  });

  it("reject a state that was changed, or belongs to another caller", async () => {
    const mcp = endpoint([greet], {
      authorize: (request) => ({ principal: request.headers.get("x-who") ?? "nobody" }),
    });
    const of = (who: string) => ({ headers: { "x-who": who } });
    const { result: asked } = await call(mcp, {}, of("ann"));
    const state = asked?.requestState ?? "";
    const inputResponses = { user: accept({ name: "Ann" }) };
    for (
      const [who, requestState] of [
        ["ann", `${state}x`],
        ["ann", state.replace("|", "")],
        ["ann", ""],
        ["ann", "|"],
        ["bob", state],
      ] as const
    ) {
      const { error } = await call(mcp, { requestState, inputResponses }, of(who));
      assertEquals(error?.code, -32602, `${who}: ${requestState}`);
      assertEquals(error?.data, { reason: "invalid_request_state" });
    }
    // Additional keys have no effect: the dispatcher has the keys of the questions.
    const { result, error } = await call(mcp, {
      requestState: `plue:approval,${state}`,
      inputResponses: { ...inputResponses, "plue:approval": { action: "accept" } },
    }, of("ann"));
    assert(result?.isError === true || error !== undefined);
    assertEquals((await call(mcp, { requestState: state, inputResponses }, of("ann"))).status, 200);
  });

  it("are the questions of a bridge's target tool", async () => {
    const mcp = endpoint([greet], { tools: "bridge" });
    const through = { name: "call_tool", arguments: { name: "asks", arguments: {} } };
    const { result: asked } = await call(mcp, through);
    assertEquals(Object.keys(asked?.inputRequests ?? {}), ["user"]);
    const { result } = await call(mcp, {
      ...through,
      requestState: asked?.requestState,
      inputResponses: { user: accept({ name: "Ann" }) },
    });
    assertEquals(result?.content?.[0]?.text, 'Hello, {"name":"Ann"}!');
  });

  it("are answered by the official client", async () => {
    const client = new Client({ name: "test", version: "1.0.0" }, {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode: "auto" },
    });
    client.setRequestHandler("elicitation/create", () => accept({ name: "Ann" }) as never);
    await client.connect(
      new StreamableHTTPClientTransport(new URL(URL_OF_MCP), {
        fetch: fetchFrom(endpoint([greet])),
      }),
    );
    const { content } = await client.callTool({ name: "asks" });
    assertEquals(content, [{ type: "text", text: 'Hello, {"name":"Ann"}!' }]);
    await client.close();
  });
});

/** A client of the older revisions, with the questions that it received. */
async function older(
  mcp: McpEndpoint,
  capabilities: Record<string, unknown>,
  answer: () => unknown,
): Promise<{ readonly client: Client; readonly asked: unknown[] }> {
  const asked: unknown[] = [];
  const client = new Client({ name: "test", version: "1.0.0" }, {
    capabilities,
    versionNegotiation: { mode: "legacy" },
  });
  if ("elicitation" in capabilities) {
    client.setRequestHandler("elicitation/create", ({ params }) => {
      asked.push(params);
      return answer() as never;
    });
  }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(URL_OF_MCP), { fetch: fetchFrom(mcp) }),
  );
  return { client, asked };
}

describe("questions to clients before 2026-07-28", () => {
  if (IS_WORKERS) {
    it("are not sent on Workers: the result explains what to do", async () => {
      const { client, asked } = await older(endpoint([greet]), { elicitation: {} }, () => {});
      const { isError, content } = await client.callTool({ name: "asks" });
      assertEquals([isError, asked], [true, []]);
      assertStringIncludes(JSON.stringify(content), "MCP 2026-07-28");
      await client.close();
    });

    it("name an address to visit by the error that the protocol has", async () => {
      const { client } = await older(endpoint([login]), { elicitation: { url: {} } }, () => {});
      const error = await assertRejects(() => client.callTool({ name: "asks" }));
      const { code, data } = error as unknown as {
        readonly code: number;
        readonly data: { readonly elicitations: readonly { readonly url: string }[] };
      };
      assertEquals([code, data.elicitations[0]?.url], [-32042, "https://login.example/"]);
      await client.close();
    });
    return;
  }

  for (const tickets of [true, false]) {
    it(`are sent on the stream of the call (tickets: ${tickets})`, async () => {
      const { client, asked } = await older(
        endpoint([greet], { tickets }),
        { elicitation: {} },
        () => accept({ name: "Ann" }),
      );
      const { content } = await client.callTool({ name: "asks" });
      assertEquals(content, [{ type: "text", text: 'Hello, {"name":"Ann"}!' }]);
      assertEquals(asked.length, 1);
      await client.close();
    });
  }

  it("of concurrent calls get the answers to their own call", async () => {
    const two = asking(
      async ({ who }: { who: string }, { ask }) =>
        `${who}: ${said(await ask("user", { ...NAME, message: who }))}`,
      {
        parameters: {
          type: "object",
          properties: { who: { type: "string" } },
          required: ["who"],
        },
      },
    );
    const { client, asked } = await older(endpoint([two]), { elicitation: {} }, () => {
      const { message } = asked.at(-1) as { readonly message: string };
      return accept({ name: message.toUpperCase() });
    });
    const results = await Promise.all(
      ["ann", "bob", "eve"].map((who) => client.callTool({ name: "asks", arguments: { who } })),
    );
    assertEquals(
      results.map(({ content }) => (content as { readonly text: string }[])[0]?.text),
      ["ann", "bob", "eve"].map((who) => `${who}: {"name":"${who.toUpperCase()}"}`),
    );
    await client.close();
  });

  it("take no answer from another caller or session", async () => {
    const mcp = endpoint([greet], {
      authorize: (request) => ({ principal: request.headers.get("x-who") ?? "nobody" }),
    });
    const begin = async (who: string): Promise<string> => {
      const response = await mcp.fetch(legacyRequest({
        jsonrpc: "2.0",
        id: 0,
        method: "initialize",
        params: {
          protocolVersion: "2025-11-25",
          capabilities: { elicitation: {} },
          clientInfo: { name: "test", version: "1.0.0" },
        },
      }, { "x-who": who }));
      return response.headers.get("mcp-session-id") ?? "";
    };
    const headers = (who: string, session: string): Record<string, string> => ({
      "x-who": who,
      "mcp-session-id": session,
      "mcp-protocol-version": "2025-11-25",
    });
    const [ann, other, bob] = [await begin("ann"), await begin("ann"), await begin("bob")];
    const response = await mcp.fetch(
      legacyRequest(
        { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "asks" } },
        headers("ann", ann),
      ),
    );
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

  it("are not sent to a client without elicitation: the result explains what to do", async () => {
    const { client } = await older(endpoint([greet]), {}, () => {});
    const { isError, content } = await client.callTool({ name: "asks" });
    assertEquals(isError, true);
    assertStringIncludes(JSON.stringify(content), "What is your name?");
    assertStringIncludes(JSON.stringify(content), "offers elicitation");
    await client.close();
  });

  it("say what to do where a call needs approval", async () => {
    const mcp = endpoint([asking(() => "done", { requiresApproval: true })]);
    const { client } = await older(mcp, {}, () => {});
    const { isError, content } = await client.callTool({ name: "asks" });
    assertEquals(isError, true);
    assertStringIncludes(JSON.stringify(content), "offers elicitation");
    await client.close();
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
      await client.close();
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
    await client.close();
  });

  it("send an address to visit on the stream, or name it in the result", async () => {
    const { client, asked } = await older(
      endpoint([login]),
      { elicitation: { url: {} } },
      () => ({ action: "accept" }),
    );
    await client.callTool({ name: "asks" });
    const [{ mode, url, elicitationId }] = asked as [Record<string, string>];
    assertEquals([mode, url], ["url", "https://login.example/"]);
    assert(elicitationId !== undefined);
    await client.close();
    const without = await older(endpoint([login]), { elicitation: { form: {} } }, () => {});
    const { content } = await without.client.callTool({ name: "asks" });
    assertStringIncludes(JSON.stringify(content), "https://login.example/");
    await without.client.close();
  });
});
