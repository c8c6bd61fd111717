import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { sign } from "hono/jwt";
import { mkdir, readFile, rename, symlink } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { attemptOr } from "../../../src/tool/mod.ts";
import { fetchRaw, resultOf, tool } from "../../adapters/mcp/raw_server.ts";
import { modernRequest } from "../../adapters/mcp/support.ts";
import { poll } from "../../support/waiting.ts";
import { folder, postJson, rejects, type Service, service, serving } from "../support.ts";
import { bearer, gatewayIn } from "./serving.ts";

const files = folder();
const gateway = gatewayIn(files);
/** The package, for modules that are written into another folder. */
const MOD = JSON.stringify(new URL("../../../mod.ts", import.meta.url).href);

const MODULE = `
export const greet = {
  name: "greet", description: "Greets a person by name.", risk: "safe",
  parameters: { type: "object", properties: { who: { type: "string" } }, required: ["who"] },
  execute: ({ who }) => "Hello, " + who,
};
export const wipe = { name: "wipe", description: "Deletes everything.", risk: "low", execute: () => 1 };
export const hold = {
  name: "hold", description: "Waits until the test ends it.", risk: "safe",
  execute: (_, { signal }) => globalThis.holdCall(signal),
};`;

/** The tools of the module as an MCP server, for a gateway in front of it. */
async function upstream(): Promise<Service & { readonly mcp: string }> {
  const path = await files.write("upstream.mjs", MODULE);
  const served = await service([path]);
  return { ...served, mcp: `${served.url}/mcp` };
}

describe("plue serve -c", () => {
  it("serves a module, a document and an MCP server with the settings of each", async () => {
    await using server = await upstream();
    await files.write("api.json", {
      ...{ openapi: "3.1.0", info: { title: "A", version: "1" } },
      paths: { "/a": { get: { operationId: "readA", responses: { 200: { description: "ok" } } } } },
    });
    await files.write("welcome.mjs", MODULE.replaceAll("greet", "welcome"));
    await using served = await gateway("kinds.json", {
      sources: {
        own: { from: "welcome.mjs" },
        api: { from: "api.json", baseUrl: "https://example.com" },
        far: {
          ...{ url: server.mcp, namespace: "f", exclude: ["wipe"], risk: "low" },
          views: [
            { tool: "greet", name: "greet_ann", bind: { who: "Ann" } },
            { tool: "greet", name: "hold", bind: { who: "a server with such a tool" } },
            { tool: "wipe", name: "clear" },
          ],
        },
      },
    });
    assertEquals(await served.tools(), [
      ...["api:readA", "f:clear", "f:greet", "f:greet_ann", "f:hold", "hold", "welcome", "wipe"],
    ]);
    assertEquals(await served.call("f:greet_ann"), "Hello, Ann");
    assertEquals(await served.call("f:hold"), "Hello, a server with such a tool");
    assertEquals(await served.call("welcome", { who: "Bob" }), "Hello, Bob");
  });

  it("serves the callbacks of modules at paths of the service and of a tenant, and rejects a second one", async () => {
    const settings = async (path: string) => {
      const from = `${path.replaceAll("/", "-")}.mjs`;
      const routed = "(path) => Object.assign(() => new Response('connected'), { path })";
      const exported = `["${path}", "${path}/second"].map(${routed})`;
      await files.write(from, `${MODULE}\nexport const callback = ${exported};`);
      const tokens = { ann: { token: "ann-ann-ann-ann-ann", tenant: "acme" } };
      return { sources: { one: { from } }, tenants: { acme: {} }, callers: { tokens } };
    };
    for (const path of ["/connected", "/t/acme/connected", "/t/none/connected"]) {
      const { sources, ...tenants } = await settings(path);
      // Without tenants, any path is one of the service.
      const more = path.includes("acme") ? tenants : {};
      await using served = await gateway("callback.json", { sources, ...more });
      assertEquals(await (await fetch(`${served.url}${path}/second`)).text(), "connected");
    }
    const { sources: { one } } = await settings("/connected");
    const rejected = (wrong: object, message: string) =>
      assertRejects(() => gateway("callback.json", wrong), Error, `callback.json:${message}`);
    await rejected(
      { sources: { one, two: one } },
      "1:45: another module has a callback at /connected",
    );
    await rejected(await settings("/t/b/x"), "1:13: its callback is at /t/b/x, and there is no");
  });

  it("starts without servers and documents that do not answer or fail, and waits for them", async () => {
    let answer = (): void => {};
    const silent = new Promise<Response>((resolve) => answer = () => resolve(new Response()));
    await using server = await serving(() => silent);
    let document = new Response(null, { status: 503 });
    await using failing = await serving(() => document);
    const late = Promise.withResolvers<Response>();
    await using slow = await serving(() => late.promise);
    const documents = {
      api: { from: `${failing.url}/api.json` },
      late: { from: `${slow.url}/a.json` },
    };
    await using served = await gateway("silent.json", {
      sources: { far: { url: server.url }, ...documents },
    });
    assertEquals(await served.tools(), []);
    await served.printed(/far +0 +it has not answered within 10 s/);
    await served.printed(/late +0 +it has not answered within 10 s/);
    const tools = [{ name: "greet", description: "Greets.", input_schema: {} }];
    late.resolve(Response.json(tools));
    await served.printed(/source "late" is ready/);
    document = Response.json(tools);
    await served.printed(/source "api" is ready/);
    assertEquals(await served.tools(), ["api:greet", "late:greet"]);
    answer();
  });

  it("names the issuers at which the callers of each tenant log in", async () => {
    await files.write("issuers.mjs", MODULE);
    const secret = "a secret that has 32 characters.";
    const [site, one, two] = [
      "https://tools.example",
      "https://one.example",
      "https://two.example",
    ];
    const [main, acme] = [`${site}/mcp`, `${site}/t/acme/mcp`];
    await using served = await gateway("issuers.json", {
      sources: { own: { from: "issuers.mjs" } },
      tenants: { acme: { use: ["own"] }, other: { use: ["own"] } },
      callers: {
        tokens: { bob: { token: "bob-bob-bob-bob-bob" } },
        jwt: [
          { issuer: one, audience: main, secret },
          { issuer: two, audience: main, secret },
          { issuer: two, audience: acme, secret, tenant: "acme" },
          { issuer: "other", audience: "other", secret, tenant: "other" },
        ],
      },
    });
    const challengeOf = async (path: string, headers = {}) => {
      const response = await fetch(served.url + path, { method: "POST", body: "{}", headers });
      return [response.status, response.headers.get("www-authenticate")];
    };
    const wellKnown = "/.well-known/oauth-protected-resource";
    assertEquals(await challengeOf("/mcp"), [
      401,
      `Bearer resource_metadata="${site}${wellKnown}/mcp"`,
    ]);
    assertEquals(await challengeOf("/t/acme/mcp", bearer("wrong-wrong-wrong-wrong")), [
      401,
      `Bearer resource_metadata="${site}${wellKnown}/t/acme/mcp", error="invalid_token"`,
    ]);
    assertEquals(await challengeOf("/t/other/mcp"), [401, "Bearer"]);
    for (
      const [path, resource, servers] of [["/mcp", main, [one, two]], ["/t/acme/mcp", acme, [two]]]
    ) {
      const description = await (await fetch(served.url + wellKnown + path)).json();
      assertEquals([description.resource, description.authorization_servers], [resource, servers]);
    }
  });

  it("gives each caller the rights of the file, and rejects others", async () => {
    const rule = `export const rule = { name: "rule", risk: "safe", roles: ["boss"],
      description: "Rules.", execute: () => 1 };`;
    await files.write("tools.mjs", MODULE + rule);
    const secret = "a secret that has 32 characters.";
    await using served = await gateway("callers.json", {
      sources: { own: { from: "tools.mjs" } },
      callers: {
        tokens: {
          ann: { token: "${ANN}", maxRisk: "safe" },
          bob: { token: "bob-bob-bob-bob-bob" },
        },
        jwt: [
          { issuer: "https://down.example", audience: "plue", jwksUrl: "http://127.0.0.1:9/" },
          { issuer: "https://id.example", audience: "plue", secret, maxRisk: "safe" },
          {
            ...{ issuer: "https://scoped.example", audience: "plue", secret },
            requiredScopes: ["tools"],
          },
        ],
      },
    }, { ANN: "ann-ann-ann-ann-ann" });
    const exp = Math.floor(Date.now() / 1000) + 600;
    const claims = { iss: "https://id.example", aud: "plue", sub: "cleo", exp };
    const jwt = await sign(claims, secret);
    const foreign = await sign({ ...claims, iss: "https://other.example" }, secret);
    assertEquals(await served.tools(bearer("ann-ann-ann-ann-ann")), ["greet", "hold"]);
    assertEquals(await served.tools(bearer("bob-bob-bob-bob-bob")), ["greet", "hold", "wipe"]);
    assertEquals(await served.tools(bearer(jwt)), ["greet", "hold"]);
    const boss = await sign({ ...claims, role: "boss" }, secret);
    assertEquals(await served.tools(bearer(boss)), ["greet", "hold", "rule"]);
    const curve = { name: "ECDSA", namedCurve: "P-256" };
    const { privateKey } = await crypto.subtle.generateKey(curve, true, ["sign", "verify"]);
    const down = await sign({ ...claims, iss: "https://down.example" }, privateKey, "ES256");
    const answer = String(await served.call("greet", { who: "x" }, bearer(down)));
    assertStringIncludes(answer, "issuer_unavailable");
    for (const headers of [{}, bearer("other-other-other-other"), bearer(foreign)]) {
      const answer = String(await served.call("greet", { who: "x" }, headers));
      assertStringIncludes(answer, "unauthorized");
    }
    const scoped = await sign({ ...claims, iss: "https://scoped.example" }, secret);
    const lacking = await fetch(`${served.url}/tools`, { headers: bearer(scoped) });
    assertEquals(lacking.status, 403);
    const expired = await sign({ ...claims, exp: exp - 1_000 }, secret);
    for (let attempt = 0; attempt < 12; attempt++) {
      const { status } = await fetch(`${served.url}/tools`, { headers: bearer(expired) });
      assertEquals(status, 401);
    }
  });

  it("applies the rules, the labels and the limits of the file", async () => {
    await using server = await upstream();
    const mail = { reads: ["private"], sends: true };
    await using served = await gateway("rules.json", {
      sources: { far: { url: server.mcp, risk: "low" }, mail: { url: server.mcp, labels: mail } },
      rules: [
        { tool: "far:greet", when: { "/who": { const: "Ann" } }, else: "deny" },
        { tool: "mail:*", noTrifecta: true, else: "deny" },
      ],
      limits: { requestsPerMinute: 5 },
      callers: { tokens: { ann: { token: "ann-ann-ann-ann-ann" } } },
    });
    const call = async (tool: string, who: string) =>
      String(await served.call(tool, { who }, bearer("ann-ann-ann-ann-ann"))).split(":", 1)[0];
    assertEquals(await call("far:greet", "Ann"), "Hello, Ann");
    assertEquals(await call("far:greet", "Bob"), "denied");
    // Tools of other servers produce untrusted data.
    assertEquals(await call("mail:greet", "Ann"), "denied");
    const { headers } = await fetch(`${served.url}/tools`, {
      headers: bearer("ann-ann-ann-ann-ann"),
    });
    assertEquals(headers.get("ratelimit-policy"), '"default";q=5;w=60');
  });

  it("applies a changed file, and lets running calls of a removed source finish", async () => {
    await using server = await upstream();
    const sources = { far: { url: server.mcp } };
    await using served = await gateway("changes.json", { sources });
    const begun = Promise.withResolvers<void>();
    const finished = Promise.withResolvers<string>();
    Object.assign(globalThis, { holdCall: () => (begun.resolve(), finished.promise) });
    const call = served.call("far:hold");
    await begun.promise;
    await files.write("changes.json", { sources: {} });
    await served.printed(/Applied .*changes.json: 0 sources, 0 tools/);
    assertEquals(await served.tools(), []);
    finished.resolve("held");
    assertEquals(await call, "held");
  });

  it("applies a file that changes while the sources are opened", async () => {
    const received = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<Response>();
    await using server = await serving(() => (received.resolve(), answer.promise));
    const starting = gateway("early.json", { sources: { far: { url: server.url } } });
    await received.promise;
    await files.write("early.json", { sources: {} });
    answer.resolve(new Response(null, { status: 503 }));
    await using served = await starting;
    await served.printed(/Applied .*early.json: 0 sources/);
  });

  it("serves the tools of a source whose ids a removed source had", async () => {
    await using server = await upstream();
    const source = { url: server.mcp, namespace: "far" };
    await using served = await gateway("green.json", { sources: { blue: source, green: source } });
    await files.write("green.json", { sources: { green: source } });
    await served.printed(/Applied .*green.json: 1 source/);
    assertEquals(await served.tools(), ["far:greet", "far:hold", "far:wipe"]);
  });

  it("reads the list of a server that cannot notify it, when the file is applied", async () => {
    let name = "before";
    const answer = fetchRaw(({ id }) => resultOf(id, { tools: [tool(name)] }));
    await using server = await serving(async ({ url, method, body }) =>
      answer(url, { method, body: await new Response(body).text() })
    );
    const sources = { far: { url: server.url, risk: "low" } };
    await using served = await gateway("deployed.json", { sources });
    assertEquals(await served.tools(), ["far:before"]);
    name = "after";
    await files.write("deployed.json", { sources, limits: { callsAtOnce: 8 } });
    await served.printed(/Applied/);
    await poll(async () => (await served.tools()).includes("far:after"));
  });

  it("applies a file behind a link when the link gets another target, as in Kubernetes", async () => {
    await Promise.all(["v1", "v2"].map((name) => mkdir(join(files.path, name))));
    await symlink("v1", join(files.path, "..data"));
    await symlink("..data/linked.json", join(files.path, "linked.json"));
    await using served = await gateway("linked.json", { sources: {} });
    await files.write("v2/linked.json", { sources: {}, limits: { callsAtOnce: 1 } });
    await symlink("v2", join(files.path, "..next"));
    await rename(join(files.path, "..next"), join(files.path, "..data"));
    await served.printed(/Applied .*linked.json/);
    await files.write("v2/linked.json", { sorces: {} });
    await served.printed(/Cannot use .*linked.json.*"sorces"/);
  });

  it("ends the programs of removed sources and of a file that is not applied yet", async () => {
    const program = await files.write(
      "stubborn.mjs",
      `import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
appendFileSync("pids", process.pid + "\\n");
setInterval(() => {}, 60_000);
const answers = {
  initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } },
  "tools/list": { tools: [] },
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const answer = { jsonrpc: "2.0", id, result: answers[method], ...!answers[method] && { error: { code: -32601, message: "No" } } };
  if (id !== undefined && process.argv[2] !== "silent") console.log(JSON.stringify(answer));
});`,
    );
    const source = (name: string, mode = "") => ({
      sources: { [name]: { command: "node", args: [program, mode] } },
    });
    const pids = async () =>
      (await readFile(join(files.path, "pids"), "utf8")).trim().split("\n").map(Number);
    const served = await gateway("programs.json", source("removed"));
    const before = await pids();
    await files.write("programs.json", { sources: {} });
    await served.printed(/Applied/);
    await files.write("programs.json", source("late", "silent"));
    while ((await pids()).length === before.length) {
      await new Promise((next) => setTimeout(next, 5));
    }
    await served[Symbol.asyncDispose]();
    // Ends remaining programs, because they would keep the output of the test open.
    const left = (await pids()).filter((pid) =>
      attemptOr(false, () => process.kill(pid, "SIGKILL"))
    );
    assertEquals(left, []);
  });

  it("limits the size of results to 1 MiB, or to the limit of the file", async () => {
    const large = MODULE.replace('"Hello, " + who', '"a".repeat(2_000_000)');
    await files.write("large.mjs", large);
    const settings = (limits: object) => ({ sources: { own: { from: "large.mjs" } }, limits });
    await using served = await gateway("large.json", settings({}));
    assertStringIncludes(String(await served.call("greet", { who: "Ann" })), "output_too_large");
    await files.write("large.json", settings({ maxOutputBytes: 4_000_000 }));
    await served.printed(/Applied/);
    assertEquals(String(await served.call("greet", { who: "Ann" })).length, 2_000_000);
  });

  it("aborts a call that began before a change of the file, over HTTP and MCP", async () => {
    await files.write("tools.mjs", MODULE);
    const settings = (timeoutMs: number) => ({
      sources: { own: { from: "tools.mjs" } },
      limits: { timeoutMs },
    });
    await using served = await gateway("aborted.json", settings(60_000));
    const session = { "mcp-session-id": crypto.randomUUID() };
    const accept = "application/json, text/event-stream";
    const post = (path: string, body: object, headers = {}) =>
      postJson(served.url + path, body, { accept, ...headers });
    const rpc = (message: object) => post("/mcp", { jsonrpc: "2.0", ...message }, session);
    const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let aborted = 0;
    Object.assign(globalThis, {
      holdCall: (signal: AbortSignal) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => (aborted++, reject(signal.reason)));
          begun.shift()?.resolve();
        }),
    });
    const waiting = begun.map(({ promise }) => promise);
    const calls = [
      post("/tools/hold/execute", { callId: "one" }, { accept: "application/json" }),
      rpc({ id: 7, method: "tools/call", params: { name: "hold" } }),
    ];
    await Promise.all(waiting);
    await files.write("aborted.json", settings(59_000));
    await served.printed(/Applied/);
    assertEquals((await post("/executions/one/abort", {})).status, 202);
    await rpc({ method: "notifications/cancelled", params: { requestId: 7 } });
    for (const call of calls) await (await call).text();
    assertEquals(aborted, 2);
  });

  it("serves the previous settings if the changed file is wrong, and prints the reason", async () => {
    await files.write("tools.mjs", MODULE);
    const good = { sources: { own: { from: "tools.mjs" } }, port: 0 };
    await using served = await gateway("wrong.json", good);
    const wrong: readonly [object, RegExp][] = [
      [{ sources: 5 }, /wrong.json:1:2: it must be an object.*still served/],
      [{ ...good, port: 1 }, /1:\d+: a change of "port" needs a restart of plue.*still served/],
      [
        { ...good, sources: { own: { from: "missing.mjs" } } },
        /1:20: Cannot use "missing.mjs": there is no such file.*still served/,
      ],
      [
        { ...good, callers: { tokens: { a: { token: "short" } } } },
        /Cannot check tokens.*still served/,
      ],
    ];
    for (const [settings, message] of wrong) {
      await files.write("wrong.json", settings);
      await served.printed(message);
      assertEquals(await served.tools(), ["greet", "hold", "wipe"]);
    }
    await files.write("wrong.json", { ...good, selection: { maxRisk: "safe" } });
    await served.printed(/Applied/);
    assertEquals(await served.tools(), ["greet", "hold"]);
  });

  it("serves a source that comes back after a file with a new tenant was rejected", async () => {
    await using server = await upstream();
    let isUp = false;
    await using proxy = await serving((request) =>
      isUp && request.method === "POST"
        ? fetch(new Request(server.mcp, request))
        : new Response(null, { status: 503 })
    );
    await files.write("limited.mjs", `${MODULE} export const dispatch = { timeoutMs: 1_000 };`);
    const token = "first-first-first";
    const callers = { tokens: { ann: { token } } };
    const settings = { sources: { far: { url: proxy.url } }, callers };
    await using served = await gateway("scopes.json", settings);
    const sources = { one: { from: "limited.mjs" }, two: { from: "limited.mjs" } };
    await files.write("scopes.json", { ...settings, tenants: { a: { sources } } });
    await served.printed(/its module and another part set options of all calls.*still served/);
    isUp = true;
    await served.printed(/source "far" is ready/);
    assertEquals(await served.tools(bearer(token)), ["far:greet", "far:hold", "far:wipe"]);
  });

  it("keeps a waiting call while its source is down, and explains why the tool is unavailable", async () => {
    await using server = await upstream();
    let isUp = true;
    await using proxy = await serving((request) =>
      isUp && request.method === "POST"
        ? fetch(new Request(server.mcp, request))
        : new Response(null, { status: 502 })
    );
    await using served = await gateway("waiting.json", {
      sources: { far: { url: proxy.url } },
      rules: [{ tool: "far:greet", when: { "/who": { maxLength: 3 } }, else: "ask" }],
    });
    const params = { arguments: { who: "Eleanor" } };
    const waiting = await postJson(`${served.url}/tools/far:greet/execute`, params);
    const { callId, ticket, questions: [{ key }] } = await waiting.json();
    const answers = { [key]: { action: "accept", content: true } };
    const answer = async () =>
      await (await postJson(`${served.url}/calls/${callId}`, { ticket, answers })).json();
    isUp = false;
    await served.call("far:wipe");
    await served.printed(/source "far" is unavailable/);
    const { code, retryable } = await answer();
    assertEquals([code, retryable], ["unavailable", true]);
    const explained = await (await fetch(`${served.url}/tools/far:greet/explain`)).text();
    assertStringIncludes(explained, 'the source \\"far\\" is unavailable"');
    isUp = true;
    await served.printed(/source "far" is ready/);
    assertEquals((await answer()).content, "Hello, Eleanor");
  });

  it("keeps the tools of a module that exports its registry, and changes its settings", async () => {
    const registry = `import { ToolRegistry } from ${MOD};
${MODULE}\nexport const registry = new ToolRegistry({ tools: [greet] });`;
    await files.write("registry.mjs", registry);
    const settings = (...names: readonly string[]) => {
      const views = names.map((name) => ({ tool: "greet", name }));
      return { sources: { one: { from: "registry.mjs", views } } };
    };
    await using served = await gateway("registry.json", settings());
    await files.write("registry.json", settings("welcome"));
    await served.printed(/Applied/);
    assertEquals(await served.call("welcome", { who: "Ann" }), "Hello, Ann");
  });

  for (
    const [what, init, states] of [["", "", 1], [" and of views", "init: () => 1,", 2]] as const
  ) {
    it(`disposes of the tools of a module${what} once, although its settings change`, async () => {
      let disposed = 0;
      process.on("stateDisposed" as never, () => disposed++);
      const state = `${init} dispose: () => process.emit("stateDisposed"), execute`;
      const from = `state${states}.mjs`;
      await files.write(from, MODULE.replace("execute", state));
      const settings = (...names: readonly string[]) => {
        const views = names.map((name) => ({ tool: "greet", name }));
        return { sources: { one: { from, views } } };
      };
      await using served = await gateway("state.json", settings());
      await served.call("greet", { who: "Ann" });
      await files.write("state.json", settings("salute"));
      await served.printed(/Applied/);
      assertEquals([await served.call("salute", { who: "Ann" }), disposed], ["Hello, Ann", 0]);
      await served[Symbol.asyncDispose]();
      assertEquals(disposed, states);
    });
  }

  it("ends although a task runs whose tool does not end", async () => {
    const execute = "new Promise((resolve) => globalThis.endSlow = resolve)";
    await files.write("slow.mjs", MODULE.replace('"Hello, " + who', execute));
    const limits = { timeoutMs: 3_600_000 };
    const settings = { sources: { one: { from: "slow.mjs" } }, limits };
    const served = await gateway("slow.json", settings);
    const params = { arguments: { who: "Ann" } };
    const headers = { prefer: "respond-async" };
    const started = await postJson(`${served.url}/tools/greet/execute`, params, headers);
    assertEquals(started.status, 202);
    await served[Symbol.asyncDispose]();
    // Otherwise its time limit would keep the test open.
    (globalThis as { endSlow?: () => void }).endSlow?.();
  });

  it("notifies MCP clients of each changed file, until their caller is removed", async () => {
    const token = "first-first-first";
    const settings = (limit: number, own: string) => ({
      ...{ sources: {}, limits: { requestsPerMinute: limit } },
      callers: { tokens: { ann: { token: own } } },
    });
    await using served = await gateway("streams.json", settings(100, token));
    const headers = { ...bearer(token), accept: "text/event-stream, application/json" };
    const open = async (path: string, init: RequestInit = { headers }) => {
      const { body } = await fetch(served.url + path, init);
      return (body as ReadableStream<BufferSource>).pipeThrough(new TextDecoderStream())
        [Symbol.asyncIterator]();
    };
    const params = { notifications: { toolsListChanged: true } };
    const listen = modernRequest("subscriptions/listen", params, bearer(token));
    // The router serves each spelling of a path.
    const events = [await open("/events"), await open("/events/"), await open("/%65vents?a=/mcp")];
    const init = { method: "POST", headers: listen.headers, body: await listen.text() };
    const streams = [await open("/mcp"), await open("/mcp/", init), await open("/m%63p/")];
    for (const limit of [99, 98]) {
      await files.write("streams.json", settings(limit, token));
      for (const [index, stream] of streams.entries()) {
        let text = "";
        while (!/list_changed".*\n\n/.test(text)) {
          const { value, done } = await stream.next();
          assertEquals(done, false);
          text += value;
        }
        assertEquals(text.includes('subscriptionId":1'), index === 1);
      }
    }
    await files.write("streams.json", settings(97, "other-other-other"));
    for (const stream of [...streams, ...events]) while ((await stream.next()).done !== true);
    const again = await fetch(`${served.url}/events`, { headers: bearer(token) });
    assertEquals(again.status, 401);
  });

  it("rejects a namespace and labels of a module, which defines its tools itself", async () => {
    await files.write("tools.mjs", MODULE);
    for (const field of [{ namespace: "x" }, { labels: { sends: true } }]) {
      const rules = [{ tool: "greet", when: {}, else: "deny" }];
      const settings = { rules, sources: { own: { from: "tools.mjs", ...field } } };
      const words = ["serve", "-c", await files.write("fields.json", settings)];
      await rejects(words, `Cannot use "${Object.keys(field)[0]}" for "tools.mjs"`);
    }
  });

  it("rejects the options of calls of a second module, and limits that a module and the file set", async () => {
    const sources: Record<string, object> = {};
    for (const name of ["one", "two"]) {
      const tool = `{ name: "${name}", description: "Runs.", execute: () => 1 }`;
      const options = `export const dispatch = { timeoutMs: 1_000 };`;
      const from = await files.write(`${name}.mjs`, `export const ${name} = ${tool};\n${options}`);
      sources[name] = { from };
    }
    const { one } = sources;
    for (const settings of [{ sources }, { sources: { one }, limits: { timeoutMs: 200 } }]) {
      const words = ["serve", "-c", await files.write("options.json", settings)];
      await rejects(words, "its module and another part set options of all calls");
    }
  });

  it("rejects sources and flags that the file has instead", async () => {
    const path = await files.write("flags.json", '{"sources": {}}');
    for (const words of [["tools.mjs"], ["--nats", "nats://x"]]) {
      await rejects(["serve", "-c", path, ...words], "has no effect with -c; write it into");
    }
    await rejects(["list", path], `it is a file of sources; serve it with "plue serve -c`);
    const callers = { tokens: { ann: { token: "ann-ann-ann-ann-ann" } } };
    const closed = await files.write("closed.json", { callers, sources: {} });
    await rejects(["serve", "-c", closed, "--stdio"], "callers have no effect with --stdio");
  });

  it("creates the file of its store in the folder of the settings", async () => {
    await using _ = await gateway("stored.json", { store: "sqlite:kept.db", sources: {} });
    assert((await readFile(join(files.path, "kept.db"))).length > 0);
  });

  it("hides a changed tool of a source with pins", async () => {
    const docs = { from: "list.json", pins: "pins.json", include: ["read/it"] };
    for (const [description, expected] of [["Reads.", ["docs:read_it"]], ["Sends.", []]] as const) {
      const tools = [{ name: "read/it", description, inputSchema: { type: "object" } }];
      await files.write("list.json", { tools });
      await using served = await gateway("pinned.json", { sources: { docs } });
      assertEquals(await served.tools(), expected);
      const explained = await (await fetch(`${served.url}/tools/docs:read_it/explain`)).text();
      assertEquals(explained.includes("the pins hold it back"), expected.length === 0, explained);
    }
  });
});
