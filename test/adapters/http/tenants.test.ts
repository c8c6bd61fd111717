import { assertEquals, assertGreater, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { type CallStore, memoryCallStore, storedKeys } from "../../../src/adapters/calls/mod.ts";
import { tenantPrefix, withTenant } from "../../../src/adapters/http/identity.ts";
import { storedRateLimits } from "../../../src/adapters/hono/mod.ts";
import { taskQueue } from "../../../src/adapters/queue/mod.ts";
import { cacheResults } from "../../../src/adapters/resilience/mod.ts";
import { readRules, rules } from "../../../src/adapters/rules/mod.ts";
import { ToolDispatcher, ToolRegistry } from "../../../mod.ts";
import type { DispatchContext, ToolDispatcherOptions } from "../../../src/execute/mod.ts";

const ANN = { principal: "ann" };

describe("withTenant()", () => {
  it("puts the tenant into the principal and the context of calls", () => {
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

/** The features that store something for a principal. */
const STORING: Record<string, (store: CallStore) => ToolDispatcherOptions> = {
  "idempotency keys": (store) => ({ idempotency: { kept: storedKeys(store) } }),
  "cached results": (store) => ({
    layers: [cacheResults({ tools: { read: { ttlMs: 60_000 } }, store })],
  }),
  "counts of rules": (store) => ({
    rules: rules(readRules([{ tool: "read", perDay: 5 }]), { store }),
  }),
};

/** Returns the owners in the keys that a user of this name writes in each tenant. */
async function ownersOf(
  write: (store: CallStore, context: DispatchContext) => Promise<unknown>,
): Promise<readonly string[][]> {
  return await Promise.all(["acme", "beta"].map(async (tenant) => {
    const keys: string[] = [];
    const store = memoryCallStore();
    const create: CallStore["create"] = (key, ...rest) => {
      keys.push(key);
      return store.create(key, ...rest);
    };
    const { principal, callContext: context } = withTenant({ ...ANN, tenant });
    await write(
      new Proxy(store, {
        get(target, name) {
          if (name === "create") return create;
          const value: unknown = Reflect.get(target, name);
          return typeof value === "function" ? value.bind(target) : value;
        },
      }),
      { principal, context, idempotencyKey: "same", sessionId: "same" },
    );
    return keys.map((key) => key.split(".")[1] ?? "");
  }));
}

describe("two tenants with a user of the same name", () => {
  const tool = {
    name: "read",
    description: "Reads.",
    execution: "either",
    annotations: { readOnlyHint: true, idempotentHint: true },
    execute: () => "text",
  } as const;
  const writes: [string, Parameters<typeof ownersOf>[0]][] = [
    ...Object.entries(STORING).map(([title, optionsOf]) =>
      [title, (store: CallStore, context: DispatchContext) => {
        const registry = new ToolRegistry({ tools: [tool] });
        return new ToolDispatcher(registry, optionsOf(store)).dispatch({ name: "read" }, context);
      }] as [string, Parameters<typeof ownersOf>[0]]
    ),
    ["tasks", (store, context) => {
      const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [tool] }));
      return taskQueue({ store }).start(dispatcher, { name: "read" }, context);
    }],
    [
      "counts of requests",
      async (store, { principal = "" }) =>
        await storedRateLimits(store).take(principal, 1, { limit: 9, windowMs: 1_000 }),
    ],
  ];
  for (const [title, write] of writes) {
    it(`share no key of ${title}`, async () => {
      const [acme = [], beta = []] = await ownersOf(write);
      assertGreater(acme.length, 0);
      assertEquals(acme.filter((owner) => beta.includes(owner)), []);
    });
  }
});
