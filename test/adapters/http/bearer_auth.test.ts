import { describe, it } from "bun:test";
import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import * as hono from "@plue/tools/hono";
import { ToolRegistry } from "@plue/tools";
import { BASE, execution } from "../hono/support.ts";
import { toolOf, waitingTool } from "../../support/tool_of.ts";

const ANN = "ann's-token-is-long";
const BOB = "bob's-token-is-long";
const TOKENS: ReadonlyMap<string, hono.Caller> = new Map([
  [ANN, { principal: "ann", role: "control" }],
  [BOB, { principal: "bob" }],
]);

async function ask(
  authorization: string | undefined,
  options: hono.BearerAuthOptions = { tokens: TOKENS },
): Promise<hono.Caller | Response> {
  return await hono.bearerAuth(options)(
    new Request("http://localhost/", {
      headers: authorization === undefined ? {} : { authorization },
    }),
  );
}

describe("bearerAuth()", () => {
  it("finds the caller of a token", async () => {
    assertEquals(await ask(`Bearer ${ANN}`), { principal: "ann", role: "control" });
    assertEquals(await ask(`bearer ${BOB}`), { principal: "bob" });
  });

  for (
    const [by, options] of [
      ["a map", { tokens: new Map([[ANN, { role: "impl" }], [BOB, {}]]) }],
      ["a function", { verify: (token: string) => token.endsWith("long") ? {} : undefined }],
    ] as const
  ) {
    it(`names a caller of ${by} without a principal by a digest of its token`, async () => {
      const authorize = hono.bearerAuth(options);
      const name = async (token: string) =>
        (await authorize(
          new Request("http://localhost/", { headers: { authorization: `Bearer ${token}` } }),
        ) as hono.Caller).principal;
      const [ann, bob] = [await name(ANN), await name(BOB)];
      assertMatch(ann ?? "", /^token:[0-9a-f]{32}$/);
      assertNotEquals(ann, bob);
      assertEquals(await name(ANN), ann);
    });
  }

  it("separates the results and calls of callers without a name", async () => {
    let runs = 0;
    const { tool, begun } = waitingTool();
    const registry = new ToolRegistry({ tools: [toolOf("count", () => ++runs), tool] });
    const app = hono.createToolHandler(registry, {
      authorize: hono.bearerAuth({ tokens: new Map([[ANN, {}], [BOB, {}]]) }),
    });
    const post = async (path: string, token: string): Promise<Response> =>
      await app.request(
        BASE + path,
        execution({}, {
          authorization: `Bearer ${token}`,
          "idempotency-key": "k",
          "x-call-id": "c",
        }),
      );
    for (const token of [ANN, BOB, ANN]) await (await post("/tools/count/execute", token)).text();
    assertEquals(runs, 2);
    const waiting = post("/tools/wait/execute", ANN);
    await begun;
    assertEquals((await post("/executions/c/abort", BOB)).status, 404);
    assertEquals((await post("/executions/c/abort", ANN)).status, 202);
    assertEquals((await waiting).status, 499);
  });

  for (
    const [header, status, challenge] of [
      [undefined, 401, "Bearer"],
      ["", 401, "Bearer"],
      [`Basic ${ANN}`, 401, "Bearer"],
      [ANN, 401, "Bearer"],
      [`Bearer ${ANN.slice(0, -1)}`, 401, 'Bearer error="invalid_token"'],
      [`Bearer ${ANN}x`, 401, 'Bearer error="invalid_token"'],
      [`Bearer ${ANN.toUpperCase()}`, 401, 'Bearer error="invalid_token"'],
      ["Bearer constructor", 401, 'Bearer error="invalid_token"'],
      [`Bearer ${ANN}, Bearer ${BOB}`, 400, 'Bearer error="invalid_request"'],
      [`Bearer  ${ANN}`, 400, 'Bearer error="invalid_request"'],
      [`Bearer ${"x".repeat(20_000)}`, 400, 'Bearer error="invalid_request"'],
    ] as const
  ) {
    it(`rejects ${JSON.stringify(header)?.slice(0, 50) ?? "no header"}`, async () => {
      const answer = await ask(header);
      assert(answer instanceof Response);
      assertEquals([answer.status, answer.headers.get("www-authenticate")], [status, challenge]);
      assertEquals((await answer.text()).includes("token-is-long"), false);
    });
  }

  it("calls a function, which may reject callers itself", async () => {
    const verify: NonNullable<hono.BearerAuthOptions["verify"]> = (token, request) =>
      token === "slow"
        ? new Response(null, { status: 503 })
        : token === new URL(request.url).hostname
        ? { principal: token }
        : undefined;
    assertEquals(await ask("Bearer localhost", { verify }), { principal: "localhost" });
    assertEquals((await ask("Bearer slow", { verify }) as Response).status, 503);
    assertEquals((await ask("Bearer other", { verify }) as Response).status, 401);
  });

  it("names the metadata of the resource", async () => {
    const answer = await ask(undefined, {
      tokens: TOKENS,
      resource: "https://tools.example.com/mcp",
    }) as Response;
    assertEquals(
      answer.headers.get("www-authenticate"),
      'Bearer resource_metadata="https://tools.example.com/.well-known/' +
        'oauth-protected-resource/mcp"',
    );
  });

  it("ignores later changes of the passed map", async () => {
    const tokens = new Map(TOKENS);
    const authorize = hono.bearerAuth({ tokens });
    tokens.set("a-later-token-is-long", {});
    const answer = await authorize(
      new Request("http://localhost/", {
        headers: { authorization: "Bearer a-later-token-is-long" },
      }),
    );
    assertEquals((answer as Response).status, 401);
  });
});
