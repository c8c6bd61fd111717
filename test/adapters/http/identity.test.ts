import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import type { Caller, ToolHandlerOptions } from "@plue/tools/hono";
import { BASE, execute, handler, idsOf, sampleRegistry } from "../hono/support.ts";

const as = (caller: Caller): ToolHandlerOptions => ({ authorize: () => caller });

describe("authorize", () => {
  it("rejects a caller with a field that is a promise, whose rejection ends no process", async () => {
    for (const field of ["principal", "role", "scopes", "expiresAt", "explain", "callContext"]) {
      const errors: unknown[] = [];
      const lookup = (): Caller => ({ [field]: Promise.reject(new Error("the lookup failed")) });
      const app = handler({ authorize: lookup, onError: (error) => errors.push(error) });
      assertEquals((await execute(app, "echo", { arguments: { text: "x" } })).status, 500, field);
      assertStringIncludes(String(errors[0]), "the result must not be a promise");
    }
  });

  it("runs exactly the tools that a caller can list", async () => {
    for (const caller of [{}, { role: "control" }, { maxRisk: "safe" }] satisfies Caller[]) {
      const app = handler(as(caller));
      const seen = await idsOf(await app.request(`${BASE}/tools`));
      for (const { id } of sampleRegistry().tools) {
        const response = await execute(app, id, { arguments: id === "echo" ? { text: "x" } : {} });
        assertEquals(response.status === 404, !seen.includes(id), id);
      }
    }
  });

  for (const selection of [undefined, { role: undefined }, { scopes: undefined }]) {
    it(`hides tools with roles or scopes without authorize: ${JSON.stringify(selection)}`, async () => {
      const app = handler(selection === undefined ? {} : { selection });
      const ids = await idsOf(await app.request(`${BASE}/tools`));
      assertEquals(ids, ["echo", "file-write", "plan", "rm"]);
    });
  }

  it("is called for each request, and checks equal callers once", async () => {
    const caller: { role?: string; scopes?: string[]; context?: object } = {};
    const app = handler(as(caller as Caller));
    const ids = async () => await idsOf(await app.request(`${BASE}/tools`));
    const everyone = ["echo", "file-write", "plan", "rm"];
    assertEquals(await ids(), everyone);
    caller.scopes = ["secrets:read"];
    assertEquals(await ids(), [...everyone, "secrets"]);
    caller.scopes = ["secrets:write"];
    assertEquals(await ids(), everyone, "as many scopes, but others");
    caller.scopes = ["secrets:read"];
    assertEquals(await ids(), [...everyone, "secrets"]);
    caller.scopes.pop();
    assertEquals(await ids(), everyone);
    caller.role = "control";
    assertEquals(await ids(), [...everyone, "task:approve"]);
    caller.context = { enabledToolIds: new Set(["echo"]) };
    assertEquals(await ids(), ["echo"]);
    caller.context = { enabledToolIds: new Set(["plan"]) };
    assertEquals(await ids(), ["plan"]);
  });

  for (const wrong of [false, 5, "", null]) {
    it(`rejects ${JSON.stringify(wrong)} after an equal request of the caller {}`, async () => {
      const callers: unknown[] = [{}, {}, wrong];
      const app = handler({ authorize: () => callers.shift() as Caller });
      const statuses: number[] = [];
      while (callers.length > 0) statuses.push((await app.request(`${BASE}/tools`)).status);
      assertEquals(statuses, [200, 200, 500]);
    });
  }

  it("rejects everything when it throws, and logs the error", async () => {
    const errors: unknown[] = [];
    const app = handler({
      authorize: () => {
        throw new Error("the secret is sesame");
      },
      onError: (error) => void errors.push(error),
    });
    const response = await app.request(`${BASE}/tools`);
    assertEquals([response.status, (await response.text()).includes("sesame")], [500, false]);
    assertEquals(errors.length, 1);
  });
});
