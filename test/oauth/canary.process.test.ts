/** No token, code or secret appears in anything that plue writes, however a call ends. */

import {
  defineTool,
  isSuspended,
  ToolDispatcher,
  type ToolDispatcherOptions,
  ToolRegistry,
  ToolResult,
} from "@plue/tools";
import { type CallStore, callTasks, memoryCallStore, storedTickets } from "@plue/tools/calls";
import { codeTool, type Executor } from "@plue/tools/code";
import { credentials, exchangeTokens, fromContext, oauthCallback } from "@plue/tools/credentials";
import { createToolHandler } from "@plue/tools/hono";
import { journal } from "@plue/tools/journal";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { cacheResults } from "@plue/tools/resilience";
import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { inspect } from "node:util";
import { memorySink } from "../adapters/journal/support.ts";
import { plue } from "../cli/support.ts";
import { serve } from "../runtime/serve.ts";
import { CLIENT, type OAuthServer, startOAuthServer } from "./server.ts";
import { sourceFor, urlIn } from "./world.ts";

const ENDS = ["return", "fail", "throw", "crash", "hang", "cached", "ask"] as const;
/** A token whose form in a URL differs from the token. */
const OWN = "the-token/that+the-host-has=of-the-caller";

/** A store that records the keys and the values of all writes. */
function recording(store: CallStore, written: string[]): CallStore {
  const note = (key: string, value: Uint8Array): void =>
    void written.push(key, new TextDecoder().decode(value));
  return {
    ...store,
    create(key, value, options) {
      note(key, value);
      return store.create(key, value, options);
    },
    update(key, value, revision, options) {
      note(key, value);
      return store.update(key, value, revision, options);
    },
  };
}

/** Tools that use three kinds of credentials, and end in every way. */
function toolsOf(server: OAuthServer) {
  return ENDS.map((end) =>
    defineTool({
      name: end,
      description: "Uses the caller's credentials.",
      credentials: { hub: { scopes: ["repo"] }, exchanged: {}, own: {} },
      timeoutMs: end === "hang" ? 300 : 60_000,
      async execute(_, { ask, credential, metadata, progress, signal, step }) {
        const all = [credential("hub"), credential("exchanged"), credential("own")] as const;
        const texts = all.map(({ authorization }) => authorization);
        const { authorization } = all[0];
        await fetch(`${server.url}/api/me`, { headers: { authorization }, signal });
        metadata({ texts, [texts[0] ?? ""]: 1 });
        progress(1, 2, `Using ${texts}`);
        if (end === "ask") {
          // The result of the step and the question are parts of the ticket.
          await step("login", () => ({ texts }));
          await ask("sure", { message: `Continue with ${texts[0]}?` });
        }
        if (end === "fail") return ToolResult.error("denied", `Not with ${texts}`);
        if (end === "throw") throw new Error(`401 ${texts}`, { cause: { texts } });
        if (end === "crash") {
          throw Object.assign(new TypeError("crashed"), {
            request: new Request(server.url, { headers: { authorization: texts[0] ?? "" } }),
            cause: { texts },
            all,
          });
        }
        if (end === "hang") {
          await new Promise((_, reject) => {
            signal.addEventListener("abort", () => reject(new Error(`aborted ${texts}`)));
          });
        }
        const url = `https://hub.example/?token=${encodeURIComponent(texts[2] ?? "")}`;
        return { all, texts, url };
      },
    })
  );
}

/** A tool that sends the credentials of its caller before its result. */
const streaming = defineTool({
  name: "stream",
  description: "Yields the caller's credentials.",
  credentials: { own: {} },
  async *execute(_, { credential }) {
    yield `Using ${credential("own").token}`;
    yield { [credential("own").token]: credential("own").authorization };
  },
});

describe("credentials", () => {
  it("appear in nothing that plue writes", async () => {
    await using server = await startOAuthServer();
    const written: string[] = [];
    const note = (...values: readonly unknown[]): void => {
      for (const value of values) {
        written.push(inspect(value, { depth: 9, showHidden: true }), JSON.stringify(value) ?? "");
      }
    };
    const store = recording(memoryCallStore(), written);
    const source = sourceFor(server, { store });
    const subject = await server.issue("ann");
    const about = { tokenEndpoint: `${server.url}/token`, ...CLIENT };
    const exchange = exchangeTokens({
      providers: { exchanged: { ...about, parameters: { audience: "x" } } },
      subjectToken: () => subject,
    });
    const sink = memorySink();
    const records = journal({ sink, onFailure: "drop-and-count", arguments: "full" });
    const registry = new ToolRegistry({ tools: [...toolsOf(server), streaming] });
    const own = fromContext((name) => name === "own" ? OWN : undefined);
    const options: ToolDispatcherOptions = {
      credentials: credentials(source, exchange, own),
      tickets: storedTickets(store),
      layers: [records, cacheResults({ tools: { cached: { ttlMs: 60_000 } }, store })],
      telemetry: {
        begin(call) {
          note(call);
          return { place: undefined, run: (work) => work(), end: (result) => note(result) };
        },
      },
      onError: (report) => note(report),
    };
    const dispatcher = new ToolDispatcher(registry, options);
    // A program whose text is the id of the tool that it calls.
    const executor: Executor = {
      async run({ source, call }) {
        const reply = await call({ index: 0, id: source, json: "{}" });
        note(reply);
        if (reply === undefined) return { kind: "suspended" };
        return { kind: "threw", message: reply, log: [reply] };
      },
    };
    const programs = new ToolDispatcher(codeTool(registry, { executor }), options);
    const tasks = callTasks({ store, onError: (error) => note(error) });
    const principal = "ann";

    // A suspended call, its ticket, and the page of the callback.
    const waiting = await dispatcher.dispatch({ name: "return" }, { principal });
    assert(isSuspended(waiting));
    note(waiting);
    const callback = oauthCallback(source, {
      authorize: () => ({ principal }),
      onError: (error) => note(error),
    });
    const link = await server.open(urlIn(waiting), "ann");
    for (const url of [link, link]) note(await (await callback(new Request(url))).text());
    const answers = { "credential.hub.1": { action: "accept" } } as const;
    note(await dispatcher.resume(waiting.ticket, answers, { principal }));

    const app = createToolHandler(registry, {
      ...{ dispatcher, tasks, selection: { maxRisk: "medium" } },
      authorize: () => ({ principal, explain: true }),
      observe: { access: (entry) => note(entry) },
      onError: (error) => note(error),
    });
    const endpoint = createMcpEndpoint(registry, {
      ...{ dispatcher, selection: { maxRisk: "medium" } },
      authorize: () => ({ principal }),
      onError: (error) => note(error),
    });
    const served = await serve(app.fetch);
    const post = async (path: string, body: object, more: Record<string, string> = {}) => {
      const headers = { "content-type": "application/json", ...more };
      const init = { method: "POST", headers, body: JSON.stringify(body) };
      const request = new Request(`http://localhost${path}`, init);
      const response = await (path === "/mcp" ? endpoint.fetch(request) : app.fetch(request));
      note([...response.headers], await response.text());
    };
    for (const name of [...ENDS, "stream"]) {
      for (let time = 1; time <= 2; time++) {
        const result = await dispatcher.dispatch({ name }, {
          ...{ principal, metadata: note, progress: note, output: note },
        });
        note(result);
        if (isSuspended(result)) {
          const sure = { sure: { action: "accept" } } as const;
          note(await dispatcher.resume(result.ticket, sure, { principal }));
        }
        for await (const event of dispatcher.stream({ name }, { principal })) note(event);
      }
      const program = { name: "run_code", arguments: { code: name } };
      note(await programs.dispatch(program, { principal, metadata: note, progress: note }));
      await plue(["call", "-f", served.url, name], { heard: note });
      await post(`/tools/${name}/execute`, {}, { "idempotency-key": name });
      await post(`/tools/${name}/execute`, {}, { accept: "text/event-stream" });
      await post("/mcp", {
        ...{ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {} } },
      }, { accept: "application/json, text/event-stream" });
      const task = await tasks.start(dispatcher, { name }, { principal });
      assert("id" in task);
      for await (const state of tasks.follow(task.id, { principal })) {
        note(state);
        if (state.status === "input_required") break;
      }
    }
    await served.stop();
    // A refresh, and a server that rejects the token of the client.
    await server.invalidate(server.api.at(-1)?.token ?? "");
    note(await dispatcher.dispatch({ name: "return" }, { principal }));
    await source.revoke("hub", { principal });
    note(await dispatcher.dispatch({ name: "return" }, { principal }));
    await records.flush();
    written.push(...sink.lines, JSON.stringify(dispatcher.metrics()));

    const secrets = [...server.issued, subject, OWN, CLIENT.clientSecret];
    assert(secrets.length > 6);
    const found = secrets.flatMap((secret) =>
      written.filter((text) => text.includes(secret) || text.includes(encodeURIComponent(secret)))
    );
    assertEquals(found, []);
    assert(written.some((text) => text.includes("[credential]")));
  });
});
