import { describe, it } from "bun:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { bearerAuth, type BearerAuthOptions, type Caller } from "@plue/tools/hono";

const ANN = "ann's-token-is-long";
const BOB = "bob's-token-is-long";
const TOKENS: ReadonlyMap<string, Caller> = new Map([
  [ANN, { principal: "ann", role: "control" }],
  [BOB, { principal: "bob" }],
]);

async function ask(
  authorization: string | undefined,
  options: BearerAuthOptions = { tokens: TOKENS },
): Promise<Caller | Response> {
  return await bearerAuth(options)(
    new Request("http://localhost/", {
      headers: authorization === undefined ? {} : { authorization },
    }),
  );
}

describe("bearerAuth()", () => {
  it("knows whose token it is", async () => {
    assertEquals(await ask(`Bearer ${ANN}`), { principal: "ann", role: "control" });
    assertEquals(await ask(`bearer ${BOB}`), { principal: "bob" });
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
    it(`turns away ${JSON.stringify(header)?.slice(0, 50) ?? "no header"}`, async () => {
      const answer = await ask(header);
      assert(answer instanceof Response);
      assertEquals([answer.status, answer.headers.get("www-authenticate")], [status, challenge]);
      assertEquals((await answer.text()).includes("token-is-long"), false);
    });
  }

  it("asks a function, which may turn callers away itself", async () => {
    const verify: NonNullable<BearerAuthOptions["verify"]> = (token, request) =>
      token === "slow"
        ? new Response(null, { status: 503 })
        : token === new URL(request.url).hostname
        ? { principal: token }
        : undefined;
    assertEquals(await ask("Bearer localhost", { verify }), { principal: "localhost" });
    assertEquals((await ask("Bearer slow", { verify }) as Response).status, 503);
    assertEquals((await ask("Bearer other", { verify }) as Response).status, 401);
  });

  it("names the realm and the metadata of the resource", async () => {
    const answer = await ask(undefined, {
      tokens: TOKENS,
      realm: "tools",
      resource: "https://tools.example.com/mcp",
    }) as Response;
    assertEquals(
      answer.headers.get("www-authenticate"),
      'Bearer realm="tools", resource_metadata="https://tools.example.com/.well-known/' +
        'oauth-protected-resource/mcp"',
    );
  });

  it("does not follow changes of the map that it was given", async () => {
    const tokens = new Map(TOKENS);
    const authorize = bearerAuth({ tokens });
    tokens.set("a-later-token-is-long", {});
    const answer = await authorize(
      new Request("http://localhost/", {
        headers: { authorization: "Bearer a-later-token-is-long" },
      }),
    );
    assertEquals((answer as Response).status, 401);
  });

  for (
    const [what, options] of [
      ["nothing", {}],
      ["both", { tokens: TOKENS, verify: () => undefined }],
      ["no tokens", { tokens: new Map() }],
      ["a plain object", { tokens: { [ANN]: {} } }],
      ["a short token", { tokens: new Map([["short", {}]]) }],
      ["a token with a space", { tokens: new Map([[`${ANN} x`, {}]]) }],
    ] as const
  ) {
    it(`refuses to be made with ${what}, and shows no token`, () => {
      const error = assertThrows(() => bearerAuth(options as BearerAuthOptions), TypeError);
      assertEquals(error.message.includes("token-is-long"), false);
    });
  }
});
