import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { sign } from "hono/jwt";
import { readFile } from "node:fs/promises";
import { folder, postJson, service } from "../support.ts";
import { bearer, type Gateway, gatewayIn } from "./serving.ts";

const files = folder();
const gateway = gatewayIn(files);

const toolList = (description: string): object => ({
  tools: [{ name: "read", description, inputSchema: { type: "object" } }],
});

const token = (name: string): string => `${name}-of-the-sources-test`;

/** Callers with different rights. Only `op` and `tom` may approve. */
const callers = {
  tokens: {
    op: { token: token("op"), operator: true },
    eye: { token: token("eye"), explain: true },
    ann: { token: token("ann"), role: "operator", scopes: ["operator"] },
    tom: { token: token("tom"), operator: true, tenant: "acme" },
  },
  jwt: [{
    issuer: "https://id.example",
    audience: "plue",
    secret: "0123".repeat(8),
    operator: true,
  }],
};

interface Listed {
  readonly name: string;
  readonly tenant?: string;
  readonly mayApprove: boolean;
  readonly state: string;
  readonly since: number;
  readonly reason?: string;
  readonly held: readonly { readonly id: string; readonly digest: string }[];
}

/** Sends a request to the sources as a caller. */
async function ask(
  { url }: Gateway,
  name: string | undefined,
  path: string,
  body?: object,
): Promise<{ readonly status: number; readonly detail: string; readonly sources: Listed[] }> {
  const headers = { ...(name && bearer(token(name))) };
  const response =
    await (body ? postJson(url + path, body, headers) : fetch(url + path, { headers }));
  return { ...await response.json(), status: response.status };
}

/** Serves sources whose pins hide a changed tool each. */
async function changed(name: string): Promise<Gateway> {
  const from = (file: string) => ({ from: file, pins: `${name}-pins.json` });
  const settings = {
    sources: { one: from(`${name}-1.json`), two: from(`${name}-2.json`) },
    tenants: { acme: { use: ["one"], sources: { own: from(`${name}-1.json`) } } },
    callers,
  };
  const write = (description: string) =>
    Promise.all([1, 2].map((at) => files.write(`${name}-${at}.json`, toolList(description))));
  await write("Reads.");
  await using first = await gateway(`${name}.json`, settings);
  assertEquals(await first.tools(bearer(token("op"))), ["one:read", "two:read"]);
  await write("Reads and sends.");
  return await gateway(`${name}.json`, settings);
}

describe("GET /sources", () => {
  it("shows the state of each source and its held tools to callers with explain", async () => {
    await using served = await changed("listed");
    const { sources } = await ask(served, "eye", "/sources");
    assertEquals(
      sources.map(({ tenant, name, state, held, mayApprove }) => [
        ...[tenant, name, state, held.map(({ id }) => id), mayApprove],
      ]),
      [
        [undefined, "one", "ready", ["one:read"], false],
        [undefined, "two", "ready", ["two:read"], false],
        ["acme", "own", "ready", ["own:read"], false],
      ],
    );
    assertEquals(sources.every(({ since }) => since > Date.now() - 600_000), true);
    const { sources: own } = await ask(served, "tom", "/t/acme/sources");
    assertEquals(own.map(({ name, mayApprove }) => `${name} ${mayApprove}`), [
      "one false",
      "own true",
    ]);
    assertEquals((await ask(served, "ann", "/sources")).status, 403);
    assertEquals((await ask(served, undefined, "/sources")).status, 401);
  });

  it("has the reason of an unavailable source without its path and query", async () => {
    const url = "http://127.0.0.1:9/secret-path?key=secret-query";
    await using served = await gateway("down.json", { sources: { far: { url } } });
    const answer = await (await fetch(`${served.url}/sources`)).text();
    assertStringIncludes(answer, '"state":"unavailable"');
    assertStringIncludes(answer, "Cannot import the MCP server at http://127.0.0.1:9/");
    assertEquals(answer.includes("secret-query"), false);
  });
});

describe("POST /sources/approve", () => {
  it("rejects callers without the right, of another tenant, and other definitions", async () => {
    await using served = await changed("denied");
    const { sources: [one] } = await ask(served, "op", "/sources");
    const [held] = one?.held ?? [];
    const tools = [{ id: held?.id, digest: held?.digest }];
    const old = [{ id: held?.id, digest: "sha256:0" }];
    const cases: [string | undefined, string, object, number, string][] = [
      [undefined, "", { source: "one", tools }, 401, "requires a token"],
      ["ann", "", { source: "one", tools }, 403, "Cannot approve tools"],
      ["eye", "", { source: "one", tools }, 403, "Cannot approve tools"],
      ["tom", "", { source: "one", tools }, 404, "no such tenant"],
      ["tom", "/t/acme", { source: "one", tools }, 403, "does not belong"],
      ["op", "", { source: "one", tools: old }, 409, "list it again"],
      ["op", "", { source: "none", tools }, 409, "no such source"],
      ["op", "", { source: "one", tools: [] }, 422, "the body is invalid"],
      ["op", "", { source: "one", tools, command: "sh" }, 422, "the body is invalid"],
    ];
    for (const [name, place, body, status, detail] of cases) {
      const answer = await ask(served, name, `${place}/sources/approve`, body);
      assertEquals([answer.status, answer.detail.includes(detail)], [status, true], answer.detail);
    }
    assertEquals(await served.tools(bearer(token("op"))), []);
  });

  it("rejects every caller if the file has no operators", async () => {
    await using served = await gateway("open.json", { sources: {} });
    const answer = await ask(served, undefined, "/sources/approve", { source: "a", tools: [] });
    assertEquals(answer.status, 403);
  });

  it("shows an approved tool, and keeps the approval when plue starts again", async () => {
    const restart = async (served: Gateway): Promise<Gateway> => {
      const settings = JSON.parse(await readFile(served.path, "utf8"));
      await served[Symbol.asyncDispose]();
      return await gateway("approved.json", settings);
    };
    let served = await changed("approved");
    const { sources } = await ask(served, "op", "/sources");
    for (const { name: source, tenant, held } of sources) {
      const tools = held.map(({ id, digest }) => ({ id, digest }));
      const answer = await ask(served, "op", "/sources/approve", { source, tenant, tools });
      const same = answer.sources.find((one) => one.name === source);
      assertEquals(same?.held, []);
      // The approval is done, so there is nothing left to approve.
      const again = await ask(served, "op", "/sources/approve", { source, tenant, tools });
      assertEquals(again.status, 409);
    }
    await served.printed(/"op" approved "one:read" of source "one"/);
    await served.printed(/"op" approved "own:read" of source "acme\/own"/);
    assertEquals(await served.tools(bearer(token("op"))), ["one:read", "two:read"]);
    served = await restart(served);
    assertEquals(await served.tools(bearer(token("op"))), ["one:read", "two:read"]);
    await served[Symbol.asyncDispose]();
  });

  it("writes the name of an operator in one line, whatever its token has", async () => {
    await using served = await changed("named");
    const [{ issuer: iss, audience: aud, secret }] = callers.jwt as [typeof callers.jwt[number]];
    const exp = Math.floor(Date.now() / 1000) + 600;
    const headers = bearer(await sign({ iss, aud, exp, sub: 'eve\n"op"\u202e' }, secret));
    const { sources: [one] } = await (await fetch(`${served.url}/sources`, { headers })).json();
    const tools = one.held.map(({ id, digest }: Listed["held"][number]) => ({ id, digest }));
    await postJson(`${served.url}/sources/approve`, { source: "one", tools }, headers);
    await served.printed(
      /"https:.*\|eve\\n\\"op\\"\\u\{202e\}" approved "one:read" of source "one"/,
    );
  });

  it("shows an approved tool of an MCP server", async () => {
    const tool = (description: string) =>
      `export const read = { name: "read", risk: "safe", description: "${description}" };`;
    const path = await files.write("server.mjs", tool("Reads."));
    const settings = (url: string) => ({
      sources: { far: { url, pins: "far-pins.json" } },
      callers,
      tenants: { acme: {} },
    });
    {
      await using server = await service([path]);
      await using served = await gateway("far.json", settings(`${server.url}/mcp`));
      assertEquals(await served.tools(bearer(token("op"))), ["far:read"]);
    }
    const other = await files.write("other.mjs", tool("Reads and sends."));
    await using server = await service([other]);
    await using served = await gateway("far.json", settings(`${server.url}/mcp`));
    const { sources: [far] } = await ask(served, "op", "/sources");
    const tools = (far?.held ?? []).map(({ id, digest }) => ({ id, digest }));
    assertEquals(await served.tools(bearer(token("op"))), []);
    await ask(served, "op", "/sources/approve", { source: "far", tools });
    assertEquals(await served.tools(bearer(token("op"))), ["far:read"]);
  });
});
