/** The official clients, of both eras, against the endpoint on all four runtimes. */

import {
  type CallToolResult,
  Client,
  type ListToolsResult,
  type Progress,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, it } from "bun:test";
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { NAMES as RUNTIME_NAMES } from "../../../scripts/lib/runtimes.mjs";
import type { Watch } from "../app.ts";
import { serverOn } from "../servers.ts";

type Page = Pick<ListToolsResult, "tools" | "nextCursor">;
type Answer = Pick<CallToolResult, "content" | "structuredContent" | "isError">;

/** The common interface of all clients. */
interface TestClient {
  readonly version: string | undefined;
  tools(cursor?: string): Promise<Page>;
  call(
    name: string,
    args: Record<string, unknown>,
    options?: { readonly signal?: AbortSignal; onprogress?(step: Progress): void },
  ): Promise<Answer>;
  close(): Promise<void>;
}

type Connect = (url: URL, token: string, onChange?: () => void) => Promise<TestClient>;

const INFO = { name: "test", version: "1.0.0" };

const asCaller = (token: string, headers: Record<string, string> = {}) => ({
  requestInit: { headers: { ...headers, authorization: `Bearer ${token}` } },
});

function newClient(
  mode: "legacy" | "auto" | { readonly pin: string },
  headers: Record<string, string> = {},
): Connect {
  return async (url, token, onChange) => {
    const client = new Client(INFO, {
      versionNegotiation: { mode },
      ...(onChange === undefined ? {} : {
        listChanged: { tools: { onChanged: onChange, autoRefresh: false, debounceMs: 0 } },
      }),
    });
    await client.connect(new StreamableHTTPClientTransport(url, asCaller(token, headers)));
    return {
      version: client.getNegotiatedProtocolVersion(),
      // Without a cursor, listTools() would request all pages and combine them.
      tools: (cursor) =>
        cursor === undefined
          ? client.request({ method: "tools/list", params: {} }) as Promise<Page>
          : client.listTools({ cursor }),
      call: (name, args, options) => client.callTool({ name, arguments: args }, options),
      close: () => client.close(),
    };
  };
}

const oldClient: Connect = async (url, token, onChange) => {
  const client = new OldClient(INFO);
  if (onChange !== undefined) {
    client.setNotificationHandler(ToolListChangedNotificationSchema, onChange);
  }
  const transport = new OldTransport(url, asCaller(token));
  // The old SDK's own types disagree under exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<OldClient["connect"]>[0]);
  return {
    version: transport.protocolVersion,
    tools: (cursor) => client.listTools(cursor === undefined ? {} : { cursor }) as Promise<Page>,
    call: (name, args, options) =>
      client.callTool({ name, arguments: args }, undefined, options) as Promise<Answer>,
    close: () => client.close(),
  };
};

const CLIENTS: readonly (readonly [name: string, connect: Connect, version: string])[] = [
  ["client 2.x", newClient("legacy"), "2025-11-25"],
  ["client 2.x, auto", newClient("auto"), "2026-07-28"],
  ["client 2.x, pinned", newClient({ pin: "2026-07-28" }), "2026-07-28"],
  ["sdk 1.x", oldClient, "2025-11-25"],
];

const BASE_NAMES = ["dot", "math.add", "steps", "wait"];

for (const runtime of RUNTIME_NAMES) {
  describe(`the MCP endpoint on ${runtime}`, () => {
    const server = serverOn(runtime, join(import.meta.dirname, "../app.ts"));

    const watch = async (): Promise<Watch> =>
      await (await fetch(new URL("/watch", server.url))).json();
    /** Polls until the condition holds. The test's own time limit ends an unsuccessful wait. */
    async function until(holds: (watch: Watch) => boolean): Promise<Watch> {
      for (;;) {
        const now = await watch();
        if (holds(now)) return now;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }
    const toggle = (name: string, roles?: readonly string[]): Promise<Response> =>
      fetch(new URL("/grow", server.url), {
        method: "POST",
        body: JSON.stringify({ name, roles }),
      });

    for (const [name, connect, version] of CLIENTS) {
      describe(`with ${name}`, () => {
        let client: TestClient;
        beforeAll(async () => {
          client = await connect(server.url, "guest");
        });
        afterAll(() => client.close());

        it(`speaks ${version}`, () => assertEquals(client.version, version));

        it("lists all tools page by page, in order", async () => {
          assertEquals((await client.tools()).tools.length, 2);
          assertEquals(await namesOf(client), BASE_NAMES);
        });

        it("lists all properties of a tool", async () => {
          const { tools } = await client.tools();
          const add = tools.find((tool) => tool.name === "math.add");
          assertEquals(add?.title, "Add");
          assertEquals(add?.icons, [
            { src: "https://tools.example/add.png", mimeType: "image/png" },
          ]);
          assertEquals(add?.annotations?.readOnlyHint, true);
          assertEquals(add?.outputSchema?.["required"], ["sum"]);
        });

        it("returns values, failures and images", async () => {
          const sum = await client.call("math.add", { a: 2, b: 40 });
          assertEquals(sum.structuredContent, { sum: 42 });
          assertEquals(sum.content, [{ type: "text", text: '{"sum":42}' }]);
          const wrong = await client.call("math.add", { a: 2 });
          assertEquals(wrong.isError, true);
          assertStringIncludes(JSON.stringify(wrong.content), '\\"b\\"');
          assertEquals((await client.call("dot", {})).content[0]?.type, "image");
        });

        it("does not find hidden tools", async () => {
          for (const hidden of ["secret", "scoped", "nope", "constructor", "math:add"]) {
            await assertRejects(() => client.call(hidden, {}), Error, "Unknown tool");
          }
        });

        it("shows each caller its own tools", async () => {
          const control = await connect(server.url, "control");
          const { content } = await control.call("secret", {});
          assertEquals(content, [{ type: "text", text: "for control" }]);
          await control.close();
        });

        it("reports the progress of a call", async () => {
          const seen: unknown[] = [];
          const result = await client.call("steps", {}, {
            onprogress: (progress) =>
              seen.push([progress.progress, progress.total, progress.message]),
          });
          assertEquals(seen, [1, 2, 3].map((done) => [done, 3, `step ${done}`]));
          assertEquals(result.content, [{ type: "text", text: "done" }]);
        });

        it("aborts the tool when the client cancels", async () => {
          const before = await watch();
          const caller = new AbortController();
          const call = client.call("wait", {}, { signal: caller.signal });
          const failed = assertRejects(() => call);
          await until(({ started }) => started > before.started);
          caller.abort();
          await failed;
          const after = await until(({ inFlight, cleaned }) =>
            inFlight === 0 && cleaned > before.cleaned
          );
          assertEquals([after.aborted, after.cleaned], [before.aborted + 1, before.cleaned + 1]);
        });

        it("notifies of changes to the caller's list only", async () => {
          let changes = 0;
          let wake = (): void => {};
          const follower = await connect(server.url, "guest", () => {
            changes++;
            wake();
          });
          const notified = (): Promise<void> => new Promise((resolve) => wake = resolve);
          // The stream of the older era is opened separately: before that, changes are not sent.
          while (changes === 0) {
            const first = notified();
            await toggle("zebra");
            await Promise.race([first, new Promise((resolve) => setTimeout(resolve, 1_000))]);
          }
          const before = changes;
          await toggle("hidden", ["control"]);
          await toggle("hidden");
          // An event of the hidden tool would arrive before this one.
          const next = notified();
          await toggle("yak");
          await next;
          assertEquals(changes, before + 1);
          await follower.close();
          await toggle("yak");
          if ((await namesOf(client)).includes("zebra")) await toggle("zebra");
        });
      });
    }

    it("releases everything when its clients disconnect", async () => {
      // Connections that earlier tests closed may still exist.
      const before = await until(isIdle);
      const clients = new AbortController();
      const authorization = "Bearer guest";
      const post = (message: Record<string, unknown>, headers: Record<string, string>) =>
        fetch(server.url, {
          method: "POST",
          signal: clients.signal,
          headers: {
            authorization,
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
            ...headers,
          },
          body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }),
        });
      const modern = (method: string, params: Record<string, unknown>, meta = {}) => {
        const _meta = {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientCapabilities": {},
          ...meta,
        };
        return post({ method, params: { ...params, _meta } }, {
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": method,
          ...("name" in params ? { "mcp-name": String(params["name"]) } : {}),
        });
      };
      const COUNT = 20;
      // Calls of each way through the endpoint, and both kinds of streams of changes.
      const answers = Array.from({ length: COUNT }, () => [
        modern("tools/call", { name: "wait" }),
        modern("tools/call", { name: "wait" }, { progressToken: 1 }),
        post({ method: "tools/call", params: { name: "wait" } }, {}),
        modern("subscriptions/listen", { notifications: { toolsListChanged: true } }),
        fetch(server.url, {
          signal: clients.signal,
          headers: { authorization, accept: "text/event-stream" },
        }),
      ]).flat();
      const gone = Promise.allSettled(answers.map(async (answer) => {
        for await (const _ of (await answer).body ?? []);
      }));
      await until(({ inFlight, following }) => inFlight === 3 * COUNT && following === 2 * COUNT);
      clients.abort();
      await gone;
      const after = await until(isIdle);
      assertEquals(after.cleaned, before.cleaned + 3 * COUNT);
    });

    it("drops a body that is only half sent, and retains nothing of it", async () => {
      const before = await until(isIdle);
      await new Promise<void>((resolve) => {
        const half = httpRequest(server.url, {
          method: "POST",
          headers: {
            authorization: "Bearer guest",
            "content-type": "application/json",
            "content-length": "1000",
          },
        });
        half.on("error", () => {}).on("close", () => resolve());
        half.write('{"jsonrpc":', () => half.destroy());
      });
      const after = await until(({ inFlight, timers }) =>
        inFlight === 0 && timers <= before.timers
      );
      assertEquals(after.started, before.started);
    });

    it("rejects requests for other hosts", async () => {
      const status = await new Promise((resolve, reject) => {
        const { hostname, port, pathname } = server.url;
        httpRequest(
          { hostname, port, path: pathname, method: "POST", headers: { host: "evil.example" } },
          (response) => {
            response.resume();
            resolve(response.statusCode);
          },
        ).on("error", reject).end();
      });
      assertEquals(status, 421);
    });
  });
}

/** True if nothing runs, and there are no subscribers and no timers. */
function isIdle({ inFlight, following, timers }: Watch): boolean {
  return inFlight + following + timers === 0;
}

async function namesOf(client: TestClient): Promise<readonly string[]> {
  const all: string[] = [];
  let page = await client.tools();
  for (;;) {
    all.push(...page.tools.map((tool) => tool.name));
    if (page.nextCursor === undefined) return all;
    page = await client.tools(page.nextCursor);
  }
}
