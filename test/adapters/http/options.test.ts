import { describe, it } from "bun:test";
import { assertEquals, assertThrows } from "@std/assert";
import {
  bearerAuth,
  type BearerAuthOptions,
  type FailedLoginsOptions,
  jwtAuth,
  type JwtAuthOptions,
  limitFailedLogins,
  limitRate,
  MemoryRateLimitStore,
  type MemoryRateLimitStoreOptions,
  type RateLimitOptions,
  serveFormats,
  type ServeFormatsOptions,
  type ToolHandlerOptions,
} from "@plue/tools/hono";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import * as formats from "@plue/tools/formats";
import { handler } from "../hono/support.ts";

const TOKEN = "correct-horse-battery";
const WINDOW = { limit: 1, windowMs: 1 };
const ISSUER = "https://issuer.example";
const RESOURCE = { resource: "https://tools.example.com", authorizationServers: [ISSUER] };

const serve = (options: unknown): unknown => handler(options as ToolHandlerOptions);
const jwt = (options: object): unknown =>
  jwtAuth(
    { jwksUrl: ISSUER, issuer: ISSUER, audience: ISSUER, ...options } as unknown as JwtAuthOptions,
  );
const logins = (options: object): unknown =>
  limitFailedLogins(() => ({}), {
    ...WINDOW,
    clientAddress: () => undefined,
    ...options,
  } as FailedLoginsOptions);
const bearer = (options: unknown): unknown => bearerAuth(options as BearerAuthOptions);
const callerOf = (caller: object): unknown => bearer({ tokens: new Map([[TOKEN, caller]]) });
const limiter = (options: unknown): unknown => limitRate(options as RateLimitOptions);

/** A function, its options, and a part of the error message. */
const WRONG: readonly (readonly [what: string, make: () => unknown, words: string])[] = [
  [
    "createToolHandler: dispatch beside a dispatcher",
    () => serve({ dispatcher: new ToolDispatcher(new ToolRegistry()), dispatch: {} }),
    "dispatch has no effect beside dispatcher",
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
    () => new MemoryRateLimitStore({ maxKey: 1 } as MemoryRateLimitStoreOptions),
    'did you mean "maxKeys"',
  ],
  ["observe", () => serve({ observe: { serverTimings: true } }), 'did you mean "serverTiming"'],
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
    () => serveFormats(formats, { openApi: {} } as ServeFormatsOptions),
    'did you mean "openapi"',
  ],
  [
    "serveFormats: openapi",
    () => serveFormats(formats, { openapi: { server: ["x"] } } as unknown as ServeFormatsOptions),
    'did you mean "servers"',
  ],
];

describe("options", () => {
  for (const [what, make, words] of WRONG) {
    it(`are rejected if they are invalid: ${what}`, () => {
      const error = assertThrows(make, Error, words);
      assertEquals([error.message.startsWith("Cannot "), error.message.includes(TOKEN)], [
        true,
        false,
      ]);
    });
  }

  it("are taken where they are right", () => {
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
    logins({ header: "x-api-key", store: new MemoryRateLimitStore({ maxKeys: 1 }) });
    limiter({ ...WINDOW, keyOf: () => "", store: new MemoryRateLimitStore() });
    serve({
      observe: { access() {}, serverTiming: true },
      protectedResource: { ...RESOURCE, scopes: ["a"] },
    });
  });
});
