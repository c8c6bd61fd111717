import { describe, it } from "bun:test";
import { assertEquals, assertThrows } from "@std/assert";
import * as hono from "@plue/tools/hono";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { memoryCallStore } from "@plue/tools/calls";
import { createMcpEndpoint } from "@plue/tools/mcp";
import * as formats from "@plue/tools/formats";
import { handler } from "../hono/support.ts";

const TOKEN = "correct-horse-battery";
const WINDOW = { limit: 1, windowMs: 1 };
const ISSUER = "https://issuer.example";
const RESOURCE = { resource: "https://tools.example.com", authorizationServers: [ISSUER] };

const serve = (options: unknown): unknown => handler(options as hono.ToolHandlerOptions);
const jwt = (options: object): unknown =>
  hono.jwtAuth(
    {
      jwksUrl: ISSUER,
      issuer: ISSUER,
      audience: ISSUER,
      ...options,
    } as unknown as hono.JwtAuthOptions,
  );
const logins = (options: object): unknown =>
  hono.limitFailedLogins(() => ({}), {
    ...WINDOW,
    clientAddress: () => undefined,
    ...options,
  } as hono.FailedLoginsOptions);
const compose = (options: unknown): unknown =>
  hono.composeToolHandler(new ToolRegistry(), options as hono.ComposedHandlerOptions);
const bearer = (options: unknown): unknown => hono.bearerAuth(options as hono.BearerAuthOptions);
const callerOf = (caller: object): unknown => bearer({ tokens: new Map([[TOKEN, caller]]) });
const limiter = (options: unknown): unknown => hono.limitRate(options as hono.RateLimitOptions);

/** A function, its options, and a part of the error message. */
const WRONG: readonly (readonly [what: string, make: () => unknown, words: string])[] = [
  [
    "createToolHandler: dispatch beside a dispatcher",
    () => serve({ dispatcher: new ToolDispatcher(new ToolRegistry()), dispatch: {} }),
    "set dispatch or dispatcher, not both",
  ],
  [
    "createToolHandler: taskAfterMs without tasks",
    () => serve({ taskAfterMs: 1 }),
    "taskAfterMs has no effect without tasks",
  ],
  [
    "jwtAuth: a misspelt requiredScopes",
    () => jwt({ requiredScope: ["a"] }),
    'did you mean "requiredScopes"',
  ],
  ["jwtAuth: scopes in one string", () => jwt({ requiredScopes: "a b" }), "a list of strings"],
  ["jwtAuth: a misspelt issuer", () => jwt({ isuer: "x" }), 'did you mean "issuer"'],
  ["jwtAuth: a toCaller that is no function", () => jwt({ toCaller: {} }), "a function"],
  [
    "bearerAuth: another field",
    () => bearer({ verify: () => ({}), scopes: ["a"] }),
    '"/scopes" is not',
  ],
  ["bearerAuth: tokens in an object", () => bearer({ tokens: { [TOKEN]: {} } }), "a Map of tokens"],
  ["bearerAuth: a caller with a misspelt field", () => callerOf({ scope: ["a"] }), 'mean "scopes"'],
  ["bearerAuth: a caller with a misspelt risk", () => callerOf({ maxRisk: "lwo" }), "maxRisk"],
  ["bearerAuth: a caller with scopes in one string", () => callerOf({ scopes: "a" }), "scopes"],
  ["bearerAuth: a caller named by a number", () => callerOf({ principal: 1 }), "principal"],
  ["bearerAuth: a caller that ends at a date", () => callerOf({ expiresAt: "today" }), "expiresAt"],
  ["bearerAuth: a caller that is a role", () => callerOf("control" as unknown as object), "caller"],
  ["limitFailedLogins: a misspelt header", () => logins({ headr: "x" }), 'did you mean "header"'],
  ["limitFailedLogins: a store that is none", () => logins({ store: new Map() }), "a store"],
  ["rateLimit: a misspelt keyOf", () => limiter({ ...WINDOW, keyof: () => "" }), '"keyOf"'],
  ["rateLimit: no window", () => limiter({ limit: 1 }), "windowMs must be"],
  [
    "rateLimit of a handler",
    () => serve({ rateLimit: { ...WINDOW, key: "x" } }),
    'did you mean "keyOf"',
  ],
  [
    "MemoryRateLimitStore",
    () => new hono.MemoryRateLimitStore({ maxKey: 1 } as hono.MemoryRateLimitStoreOptions),
    'did you mean "maxKeys"',
  ],
  ["observe", () => serve({ observe: { acces() {} } }), 'did you mean "access"'],
  [
    "dispatch: telemetry that is none",
    () => serve({ dispatch: { telemetry: {} } }),
    "telemetry must have a begin function",
  ],
  [
    "protectedResource",
    () => serve({ protectedResource: { ...RESOURCE, scope: ["a"] } }),
    'did you mean "scopes"',
  ],
  [
    "serveFormats",
    () => hono.serveFormats(formats, { openApi: {} } as hono.ServeFormatsOptions),
    'did you mean "openapi"',
  ],
  [
    "serveFormats: openapi",
    () =>
      hono.serveFormats(
        formats,
        { openapi: { server: ["x"] } } as unknown as hono.ServeFormatsOptions,
      ),
    'did you mean "servers"',
  ],
];

/** Options that a function rejects, each with a part of the message. */
function rejected(
  what: string,
  make: (options: never) => unknown,
  rows: readonly (readonly [options: object, words: string])[],
): typeof WRONG {
  return rows.map(([options, words]) => [
    `${what}: ${JSON.stringify(options).slice(0, 60)}`,
    () => make(options as never),
    words,
  ]);
}

const ALL: typeof WRONG = [
  ...WRONG,
  ...rejected("createToolHandler", serve, [
    [{ allowedHosts: ["localhost:80x"] }, "a host name without a port"],
    [{ allowedHosts: ["localhost:8787"] }, "a host name without a port"],
    [{ allowedHosts: ["a/b"] }, "a host name without a port"],
    [{ allowedHosts: ["*.example.com"] }, "a host name without a port"],
    [{ allowedHosts: "localhost" }, "allowedHosts must be a list"],
    [{ allowedOrigins: ["https://*.example.com"] }, "an origin"],
    [{ allowedOrigins: ["*"] }, "an origin"],
    [{ allowedOrigins: ["app.example.com"] }, "an origin"],
    [{ allowedOrigins: ["https://app.example.com/"] }, "an origin"],
    [{ cors: true }, "serve other origins (cors)"],
    [{ maxBodyBytes: 0 }, "maxBodyBytes"],
    [{ openExecutoin: true }, "openExecution"],
    [{ openExecution: "false" }, "openExecution"],
    [{ openExplain: 1 }, "openExplain"],
    [{ authorize: 5 }, "authorize"],
    [{ selection: { maxRisk: "lwo" } }, "maxRisk"],
    [{ dispatcher: {} }, "a dispatcher"],
    [{ onError: 3 }, "onError"],
    [{ maxStreams: 0.5 }, "maxStreams"],
    [{ explorer: true }, "the explorer of @plue/tools/explorer"],
    [{ protectedResource: { ...RESOURCE, resource: "tools" } }, "a URL"],
    [{ protectedResource: { ...RESOURCE, resource: "https://a.example/?a=b" } }, "a URL"],
    [{ protectedResource: { ...RESOURCE, authorizationServers: [] } }, "Servers is empty"],
    [{ protectedResource: { ...RESOURCE, authorizationServers: ["issuer"] } }, "a URL"],
    [{ rateLimit: { limit: 0, windowMs: 1 } }, "limit must be"],
    [{ rateLimit: { limit: 1, windowMs: 0 } }, "windowMs must be"],
    [{ rateLimit: { limit: 1.5, windowMs: 1 } }, "limit must be"],
  ]),
  ...rejected("composeToolHandler", compose, [
    [{ parts: [{}] }, "a list of parts"],
    [{ parts: () => ({}) }, "a list of parts"],
    [{ parts: [], cors: true }, '"/cors" is not one of its fields'],
  ]),
  ...rejected("bearerAuth", bearer, [
    [{}, "set tokens to a Map"],
    [{ tokens: new Map([[TOKEN, {}]]), verify: () => undefined }, "not both"],
    [{ tokens: new Map() }, "set tokens to a Map"],
    [{ tokens: new Map([["short", {}]]) }, "16 to 8192 visible ASCII characters"],
    [{ tokens: new Map([[`${TOKEN} x`, {}]]) }, "16 to 8192 visible ASCII characters"],
  ]),
  ...rejected("jwtAuth", jwt, [
    [{ jwksUrl: undefined }, "one of keys, jwksUrl and secret"],
    [{ jwksUrl: undefined, keys: [] }, "keys is empty"],
    [{ secret: "x".repeat(32) }, "one of keys, jwksUrl and secret"],
    [{ jwksUrl: undefined, keys: [{ kty: "oct", k: "AA" }] }, "use the option secret"],
    [{ jwksUrl: undefined, secret: "short" }, "32 characters"],
    [{ issuer: undefined }, "issuer is required"],
    [{ audience: undefined }, "audience is required"],
    [{ audience: "" }, "audience is required"],
    [{ audience: [] }, "audience is required"],
    [{ algorithms: ["HS256"] }, "cannot be used with public keys"],
    [{ algorithms: [] }, "algorithms is empty"],
    [{ algorithms: ["none"] }, "cannot be used with public keys"],
    [{ clockToleranceS: Infinity }, "clockToleranceS"],
    [{ jwksUrl: "http://issuer.example/jwks" }, "must begin with https:"],
    [{ resource: "tools" }, "a URL without a query"],
  ]),
  ...rejected("limitFailedLogins", logins, [
    [{ limit: 0 }, "the option limit must be"],
    [{ windowMs: 0.5 }, "the option windowMs must be"],
    [{ clientAddress: undefined }, "the option clientAddress must be"],
  ]),
  ...rejected("storedRateLimits", (options) => hono.storedRateLimits(memoryCallStore(), options), [
    [{ permits: 5 }, "permits"],
    [{ maxPermits: 0 }, "maxPermits"],
    [{ maxPermits: 1.5 }, "maxPermits"],
    [{ maxPermits: NaN }, "maxPermits"],
  ]),
  ...rejected("MemoryRateLimitStore", (options) => new hono.MemoryRateLimitStore(options), [
    [{ maxKeys: 0 }, "maxKeys"],
  ]),
  ...rejected("createMcpEndpoint", (options) => createMcpEndpoint(new ToolRegistry(), options), [
    [{ port: 1 }, '"/port" is not one of its fields'],
    [{ pagesize: 1 }, 'did you mean "pageSize"?'],
    [{ authorize: "me" }, "the option authorize must be a function"],
    [{ extend: "notes" }, "the option extend must be a function"],
    [{ tools: "brigde" }, '"all", "bridge" or a function'],
    [{ selection: { risk: 1 } }, "risk"],
    [{ pageSize: 0 }, "the option pageSize must be a whole number, 1 or above"],
    [{ ttlMs: -1 }, "the option ttlMs must be a whole number, 0 or above"],
    [{ heartbeatMs: 2 ** 31 }, "the option heartbeatMs must be a number from 1 to"],
  ]),
];

describe("options", () => {
  for (const [what, make, words] of ALL) {
    it(`are rejected if they are invalid: ${what}`, () => {
      const error = assertThrows(make, Error, words);
      assertEquals([error.message.startsWith("Cannot "), error.message.includes(TOKEN)], [
        true,
        false,
      ]);
    });
  }

  it("are accepted if they are valid", () => {
    jwt({
      requiredScopes: ["a"],
      algorithms: ["ES256"],
      clockToleranceS: 0,
      toCaller: () => ({}),
      now: () => 0,
    });
    callerOf({
      role: "control",
      scopes: ["a"],
      context: { hasGitRepository: false },
      maxRisk: "low",
      principal: "ann",
      expiresAt: 1,
      explain: true,
    });
    callerOf({ role: undefined, scopes: undefined, principal: undefined });
    logins({ header: "x-api-key", store: new hono.MemoryRateLimitStore({ maxKeys: 1 }) });
    limiter({ ...WINDOW, keyOf: () => "", store: new hono.MemoryRateLimitStore() });
    serve({ observe: { access() {} }, protectedResource: { ...RESOURCE, scopes: ["a"] } });
  });
});
