import { assertEquals, assertGreater, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as plue from "../../../src/adapters/calls/mod.ts";
import { oauthCredentials } from "../../../src/adapters/credentials/mod.ts";
import { tenantPrefix, withTenant } from "../../../src/adapters/http/identity.ts";
import { storedRateLimits } from "../../../src/adapters/hono/mod.ts";
import { journal, storeSink } from "../../../src/adapters/journal/mod.ts";
import { taskQueue } from "../../../src/adapters/queue/mod.ts";
import { cacheResults } from "../../../src/adapters/resilience/mod.ts";
import { ask, noTrifecta, readRules, rules } from "../../../src/adapters/rules/mod.ts";
import { ToolDispatcher, ToolRegistry } from "../../../mod.ts";
import type { DispatchContext, ToolDispatcherOptions } from "../../../src/execute/mod.ts";

const ANN = { principal: "ann" };

describe("withTenant()", () => {
  it("adds the tenant to the principal and the context of calls", () => {
    const caller = withTenant({ ...ANN, tenant: "acme", callContext: { plan: "free" } });
    assertEquals(caller.principal, `${tenantPrefix("acme")}ann`);
    assertEquals(caller.callContext, { plan: "free", tenant: "acme" });
    assertEquals(withTenant(ANN), ANN);
  });

  for (
    const [title, caller] of [
      ["a tenant without a principal", { tenant: "acme" }],
      ["the principal of a tenant without the tenant", { principal: "tenant:acme:ann" }],
      ["a context of another tenant", { ...ANN, tenant: "a", callContext: { tenant: "b" } }],
      ["a context that is not an object", { ...ANN, tenant: "a", callContext: "b" }],
    ] as const
  ) {
    it(`rejects ${title}`, () => {
      assertThrows(() => withTenant(caller), TypeError, "Cannot identify the caller");
    });
  }
});

type Write = (store: plue.CallStore, context: DispatchContext) => Promise<unknown>;

const tool = {
  name: "read",
  description: "Reads.",
  execution: "either",
  annotations: { readOnlyHint: true, idempotentHint: true },
  labels: { produces: ["untrusted"] },
  execute: () => "text",
} as const;

function dispatching(optionsOf: (store: plue.CallStore) => ToolDispatcherOptions): Write {
  return async (store, context) => {
    const registry = new ToolRegistry({ tools: [tool] });
    return await new ToolDispatcher(registry, optionsOf(store)).dispatch({ name: "read" }, context);
  };
}

/** The writes of each kind of key. The test of the architecture compares the kinds with \`src\`. */
const WRITES: Readonly<Record<string, Write>> = {
  key: dispatching((store) => ({ idempotency: { kept: plue.storedKeys(store) } })),
  result: dispatching((store) => ({
    layers: [cacheResults({ tools: { read: { ttlMs: 60_000 } }, store })],
  })),
  counts: dispatching((store) => ({
    rules: rules(readRules([{ tool: "read", perDay: 5 }]), { store }),
  })),
  labels: dispatching((store) => ({ rules: rules([noTrifecta()], { store }) })),
  ticket: dispatching((store) => ({
    ...{ tickets: plue.storedTickets(store), approve: "ask" },
    rules: rules([{ name: "ask", decide: () => ask("Read it?") }]),
  })),
  task: (store, context) => {
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [tool] }));
    return taskQueue({ store }).start(dispatcher, { name: "read" }, context);
  },
  rate: async (store, { principal = "" }) =>
    await storedRateLimits(store).take(principal, 1, { limit: 9, windowMs: 1_000 }),
  credential: async (store, { principal, context }) => {
    const { tenant } = context as { readonly tenant: string };
    const source = oauthCredentials({
      providers: {
        hub: {
          authorizationEndpoint: "https://id.example/authorize",
          tokenEndpoint: "https://id.example/token",
          clientId: "plue",
        },
      },
      ...{ redirectUri: "https://plue.example/callback", store, keys: [new Uint8Array(32)] },
    });
    const { signal } = new AbortController();
    const request = { principal, tenant, scopes: [], signal, context, services: {} };
    return await source.get("hub", request);
  },
  journal: async (store, context) => {
    const records = journal({ sink: storeSink(store), flushMs: 0, onFailure: "refuse-calls" });
    await dispatching(() => ({ layers: [records] }))(store, context);
    await records.flush();
  },
};

/**
 * Returns the owners in the keys that a user of this name reads and writes in each tenant. A journal
 * has one key for all callers, so the owners are in its records.
 */
async function ownersOf(kind: string, write: Write): Promise<readonly string[][]> {
  return await Promise.all(["acme", "beta"].map(async (tenant) => {
    const owners: string[] = [];
    const store = plue.memoryCallStore();
    const { principal, callContext: context } = withTenant({ ...ANN, tenant });
    const noting = new Proxy(store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (key: string, content: unknown, ...rest: unknown[]) => {
          if (name === "get" || name === "create" || name === "update") {
            const [first, owner = ""] = key.split(".");
            const isJournal = first === "journal" && content instanceof Uint8Array;
            if (first === kind && !isJournal) owners.push(owner);
            for (const line of isJournal ? new TextDecoder().decode(content).split("\n") : []) {
              if (line.includes('"principal"')) owners.push(JSON.parse(line).principal);
            }
          }
          return value.call(target, key, content, ...rest);
        };
      },
    });
    await write(noting, { principal, context, idempotencyKey: "same", sessionId: "same" });
    return owners;
  }));
}

const sharedOwners = ([acme = [], beta = []]: readonly string[][]): readonly string[] =>
  acme.filter((owner) => beta.includes(owner));

describe("two tenants with a user of the same name", () => {
  for (const [kind, write] of Object.entries(WRITES)) {
    it(`share no key of the kind ${kind}`, async () => {
      const owners = await ownersOf(kind, write);
      assertGreater(owners[0]?.length ?? 0, 0);
      assertEquals(sharedOwners(owners), []);
    });
  }

  it("would share a key without the tenant, which this test detects", async () => {
    const write: Write = (store) => store.create("note.ann.1", new Uint8Array());
    assertEquals(sharedOwners(await ownersOf("note", write)), ["ann"]);
  });
});
