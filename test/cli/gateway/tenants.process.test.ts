import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { type CallStore, memoryCallStore } from "../../../src/adapters/calls/mod.ts";
import { tenantStore } from "../../../src/cli/serve/state.ts";
import { folder, postJson } from "../support.ts";
import { bearer, gatewayIn } from "./serving.ts";

const files = folder();
const gateway = gatewayIn(files);

const whoami = (company: string): string => `
let calls = 0;
export const whoami = {
  name: "whoami", description: "Returns the company and its caller.", risk: "safe",
  context: { type: "object", properties: { tenant: { type: "string" } } },
  execute: (_, { principal, context }) => ["${company}", principal, context?.tenant ?? "none", ++calls],
};`;

const token = (name: string): string => `${name}-of-the-tenant-test`;
const caller = (name: string, tenant?: string) => ({ token: token(name), tenant, explain: true });

describe("the tenants of plue serve -c", () => {
  it("share the compiled module of programs", async () => {
    const { compile } = WebAssembly;
    let count = 0;
    Object.assign(WebAssembly, { compile: (bytes: never) => (count++, compile(bytes)) });
    try {
      const tokens = { ann: caller("ann", "acme"), bob: caller("bob", "beta") };
      const settings = { code: true, tenants: { acme: {}, beta: {} }, callers: { tokens } };
      await using served = await gateway("code.json", settings);
      for (const [name, { token, tenant }] of Object.entries(tokens)) {
        const path = `${served.url}/t/${tenant}/tools/run_code/execute`;
        const ran = await postJson(path, { arguments: { code: "return 1" } }, bearer(token));
        assertEquals([name, (await ran.json()).content], [name, { value: 1 }]);
      }
    } finally {
      Object.assign(WebAssembly, { compile });
    }
    assert(count <= 1, `${count} compilations`);
  });

  it("have tools of the same name, keys of their own, and only their records", async () => {
    for (const name of ["acme", "beta", "own"]) await files.write(`${name}.mjs`, whoami(name));
    await using served = await gateway("tenants.json", {
      sources: { own: { from: "own.mjs" } },
      tenants: {
        acme: { sources: { tools: { from: "acme.mjs" } } },
        beta: { sources: { tools: { from: "beta.mjs" } } },
        empty: { use: [] },
        guest: { use: ["own"] },
      },
      callers: {
        tokens: {
          ann: caller("ann", "acme"),
          bob: caller("bob", "beta"),
          eve: caller("eve", "empty"),
          guy: caller("guy", "guest"),
          root: caller("root"),
          plain: { token: token("plain") },
        },
      },
      journal: { file: "journal.jsonl" },
    });
    const lines = / 1 tool\. .*\nClients of acme, 1 tool: .*\n.*\nClients of empty, 0 tools: /;
    await served.printed(lines);
    const ask = async (name: string, path: string, body?: object) => {
      const [url, headers] = [served.url + path, bearer(token(name))];
      const response = await (body ? postJson(url, body, headers) : fetch(url, { headers }));
      return [response.status, await response.json()] as const;
    };
    const call = async (name: string, place: string): Promise<unknown> => {
      const body = { arguments: {}, idempotencyKey: "same" };
      const [status, { content }] = await ask(name, `${place}/tools/whoami/execute`, body);
      return content ?? status;
    };
    assertEquals(await call("ann", "/t/acme"), ["acme", "tenant:acme:ann", "acme", 1]);
    assertEquals(await call("bob", "/t/beta"), ["beta", "tenant:beta:bob", "beta", 1]);
    assertEquals(await call("ann", "/t/acme"), ["acme", "tenant:acme:ann", "acme", 1]);
    assertEquals(await call("guy", "/t/guest"), ["own", "tenant:guest:guy", "guest", 1]);
    assertEquals(await call("eve", "/t/empty"), 404);

    // An existing and an unknown tenant cause the same response.
    const foreign = await Promise.all([
      ask("ann", "/t/beta/tools"),
      ask("ann", "/t/none/tools"),
      ask("root", "/t/acme/tools"),
      ask("ann", "/tools"),
    ]);
    assertEquals(foreign.map(([status]) => status), [404, 404, 404, 404]);
    assertEquals(new Set(foreign.map(([, body]) => JSON.stringify(body))).size, 1);

    const principals = async (name: string, place: string) => {
      // The journal writes its records a moment after the calls.
      for (;;) {
        const [, { records }] = await ask(name, `${place}/journal`);
        if (records.length < (place === "" ? 4 : 2)) continue;
        return [...new Set(records.map((record: { principal?: string }) => record.principal))];
      }
    };
    assertEquals(await principals("ann", "/t/acme"), ["tenant:acme:ann"]);
    assertStringIncludes((await principals("root", "")).join(), "tenant:beta:bob");
    const [, metrics] = await ask("ann", "/t/acme/metrics");
    assertEquals([metrics.calls, metrics.tools.length], [2, 1]);
    const [, { tenants }] = await ask("root", "/metrics/tenants");
    assertEquals(
      tenants.map(({ tenant, calls }: { tenant: string; calls: number }) => [tenant, calls]),
      // Requests for unknown tenants have added no records.
      [["acme", 2], ["beta", 1], ["empty", 0], ["guest", 1]],
    );
    const headers = { accept: "text/plain", ...bearer(token("root")) };
    const text = await (await fetch(`${served.url}/metrics/tenants`, { headers })).text();
    assertStringIncludes(text, 'plue_tenant_calls_total{tenant="acme"} 2\n');
    const own = { headers: bearer(token("ann")) };
    const none = await fetch(`${served.url}/t/acme/metrics/tenants`, own);
    assertEquals([none.status, (await none.json()).code], [404, "not_found"]);
    assertEquals((await ask("plain", "/metrics/tenants"))[0], 403);
    const page = await fetch(`${served.url}/t/acme/mcp`, { method: "POST" });
    assertEquals(page.status, 401);
  });

  it("have pins of their own in one file", async () => {
    const source = (name: string) => ({ from: `${name}.json`, pins: "pins.json" });
    for (const name of ["acme", "beta", "own"]) {
      await files.write(`${name}.json`, [{
        type: "function",
        function: { name: "read", description: `Reads ${name}.`, parameters: { type: "object" } },
      }]);
    }
    await using served = await gateway("pinned.json", {
      selection: { maxRisk: "high" },
      sources: { crm: source("own") },
      tenants: {
        acme: { sources: { crm: source("acme") } },
        beta: { sources: { crm: source("beta") } },
      },
      callers: { tokens: { ann: caller("ann", "acme"), bob: caller("bob", "beta") } },
    });
    for (const [name, tenant] of [["ann", "acme"], ["bob", "beta"]] as const) {
      const headers = bearer(token(name));
      const { tools } = await (await fetch(`${served.url}/t/${tenant}/tools`, { headers })).json();
      assertEquals(tools.map((tool: object) => Object(tool).description), [`Reads ${tenant}.`]);
    }
  });

  it("do not use the space of another tenant for results and questions", async () => {
    const module = `const parameters = { type: "object", properties: { text: { type: "string" } } };
const more = { description: "Is for the test.", risk: "safe", parameters };
export const text = { name: "text", ...more, execute: () => "x".repeat(1_047_000) };
export const ask = { name: "ask", ...more, execute: (_, { ask }) => ask("q", { message: "?" }) };`;
    for (const name of ["a", "b"]) await files.write(`${name}.mjs`, module);
    const many = Array.from({ length: 9 }, (_, index) => `caller-${index}`);
    await using served = await gateway("space.json", {
      tenants: {
        a: { sources: { tools: { from: "a.mjs" } } },
        b: { sources: { tools: { from: "b.mjs" } } },
      },
      callers: {
        tokens: {
          ...Object.fromEntries(many.map((name) => [name, caller(name, "a")])),
          bob: caller("bob", "b"),
        },
      },
    });
    const status = async (name: string, path: string, body: object): Promise<number> => {
      const url = `${served.url}/t/${path}/execute`;
      return (await postJson(url, body, bearer(token(name)))).status;
    };
    for (const idempotencyKey of "12345678") {
      await Promise.all(many.map((name) => status(name, "a/tools/text", { idempotencyKey })));
    }
    const arguments_ = { text: "x".repeat(150_000) };
    assertEquals(await status("bob", "b/tools/ask", { arguments: arguments_ }), 202);
  });
});

describe("tenantStore()", () => {
  it("shows each tenant only its own entries of a store", async () => {
    const shared = memoryCallStore();
    const [a, b] = [tenantStore(shared, "a"), tenantStore(shared, "b")];
    const bytes = new Uint8Array([1]);
    const revision = await a.create("task.ann.1", bytes, { dueAt: 5 }) ?? 0;
    await shared.create("task.ann.1", bytes, { dueAt: 5 });
    assertEquals(await b.get("task.ann.1"), undefined);
    assertEquals(await b.update("task.ann.1", bytes, revision), undefined);
    assertEquals(await b.delete("task.ann.1", revision), false);
    const keys = async (store: CallStore) => {
      const due = await store.due("task", 9, 9);
      const listed = await Array.fromAsync(store.list("task.ann"));
      return [...due, ...listed].map(({ key }) => key);
    };
    assertEquals(await keys(a), ["task.ann.1", "task.ann.1"]);
    assertEquals(await keys(b), []);
    assertEquals(await keys(shared), ["task.ann.1", "task.ann.1"]);
  });
});
