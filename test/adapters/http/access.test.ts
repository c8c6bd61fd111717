import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { createToolHandler, jwtAuth } from "@plue/tools/hono";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { assertMatches, BASE, execution, sampleRegistry } from "../hono/support.ts";
import { SAFE } from "../hono/transcript.ts";
import { AUDIENCE, bearer, createIssuer, ISSUER, NOW, SECONDS } from "./tokens.ts";

const issuer = await createIssuer();
const stranger = await createIssuer();
const app = createToolHandler(sampleRegistry(), {
  authorize: jwtAuth({
    keys: issuer.keys,
    issuer: ISSUER,
    audience: AUDIENCE,
    resource: AUDIENCE,
    now: () => NOW,
  }),
});

/** The callers and the status of their responses: `own` and `hidden` are fields of the routes. */
const CALLERS: readonly {
  readonly who: string;
  readonly headers: Record<string, string>;
  readonly status: number | "own" | "hidden";
}[] = [
  { who: "no token", headers: {}, status: 401 },
  { who: "another scheme", headers: { authorization: "Basic YTpi" }, status: 401 },
  { who: "no token after the scheme", headers: { authorization: "Bearer" }, status: 400 },
  { who: "two tokens", headers: { authorization: "Bearer a b" }, status: 400 },
  { who: "a word", headers: bearer("sesame"), status: 401 },
  { who: "a stranger's token", headers: bearer(await stranger.token()), status: 401 },
  {
    who: "an expired token",
    headers: bearer(await issuer.token({ role: "control", exp: SECONDS - 6 })),
    status: 401,
  },
  {
    who: "a token for another audience",
    headers: bearer(await issuer.token({ role: "control", aud: "https://other.example" })),
    status: 401,
  },
  {
    who: "the right role",
    headers: bearer(await issuer.token({ role: "control" })),
    status: "own",
  },
  {
    who: "the wrong role",
    headers: bearer(await issuer.token({ role: "impl" })),
    status: "hidden",
  },
];

/** The status for callers with the tool `task:approve` (`own`), and for others (`hidden`). */
const ROUTES: readonly {
  readonly path: string;
  readonly init?: RequestInit;
  readonly own: number;
  readonly hidden: number;
}[] = [
  { path: "/tools", own: 200, hidden: 200 },
  { path: "/tools/task:approve", own: 200, hidden: 404 },
  { path: "/tools/task:approve/explain", own: 200, hidden: 404 },
  { path: "/tools/task:approve/execute", init: execution({}), own: 200, hidden: 404 },
  {
    path: "/tools/task:approve/execute",
    init: execution({}, { accept: "text/event-stream" }),
    own: 200,
    hidden: 404,
  },
  { path: "/executions/nothing/abort", init: { method: "POST" }, own: 404, hidden: 404 },
  { path: "/explain", own: 200, hidden: 200 },
  { path: "/calls", own: 200, hidden: 200 },
  { path: "/calls/nothing", own: 404, hidden: 404 },
  { path: "/events", own: 200, hidden: 200 },
  { path: "/metrics", own: 200, hidden: 200 },
  { path: "/healthz", own: 200, hidden: 200 },
];

describe("access", () => {
  it("is checked on every route", () => {
    const shown = new Set(
      ROUTES.map(({ path }) =>
        path.replace("task:approve", ":id").replace("/calls/nothing", "/calls/:id")
          .replace("nothing", ":callId")
      ),
    );
    assertEquals(app.routes.map(({ path }) => path).filter((path) => !shown.has(path)), []);
  });

  for (const { path, init, ...wanted } of ROUTES) {
    for (const { who, headers, status } of CALLERS) {
      const expected = typeof status === "string"
        ? wanted[status]
        : path === "/healthz"
        ? 200
        : status;
      const accept = new Headers(init?.headers).get("accept");
      it(`answers ${who} on ${path}${accept === null ? "" : " as a stream"} with ${expected}`, async () => {
        const response = await app.request(BASE + path, {
          ...init,
          headers: { ...init?.headers as Record<string, string>, ...headers },
        });
        assertEquals(response.status, expected);
        if (expected === 401 || expected === 400) {
          const challenge = response.headers.get("www-authenticate") ?? "";
          assertStringIncludes(
            challenge,
            `resource_metadata="${AUDIENCE}/.well-known/oauth-protected-resource"`,
          );
        }
        await response.body?.cancel();
      });
    }
  }

  it("returns that a token is invalid, without a reason", async () => {
    const answers = new Set<string>();
    for (const { headers } of CALLERS.slice(4, 8)) {
      const response = await app.request(`${BASE}/tools`, { headers });
      answers.add(await response.text() + response.headers.get("www-authenticate"));
    }
    assertEquals(answers.size, 1);
    assertStringIncludes([...answers].join(), 'error="invalid_token"');
  });

  it("does not report a missing token as invalid", async () => {
    const response = await app.request(`${BASE}/tools`);
    assertEquals(response.headers.get("www-authenticate")?.includes("error"), false);
  });
});

describe("a stream of changes", () => {
  it("forbids embedding by other sites, and type sniffing", async () => {
    const registry = sampleRegistry();
    const events = { headers: { accept: "text/event-stream" } };
    for (
      const response of [
        await createToolHandler(registry).request(`${BASE}/events`),
        await createMcpEndpoint(registry).fetch(new Request(`${BASE}/mcp`, events)),
      ]
    ) {
      await response.body?.cancel();
      assertEquals(response.status, 200);
      assertMatches(Object.fromEntries(response.headers), SAFE);
    }
  });
});
