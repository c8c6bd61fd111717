/**
 * Serves tools over HTTP with Hono: Workers, Deno, Bun and Node.
 *
 * @module
 */

export { bearerAuth, type BearerAuthOptions, type TokenVerifier } from "./bearer_auth.ts";
export type { ChallengeOptions } from "./challenge.ts";
export type { CorsOptions } from "./cors.ts";
export type { AccessCall } from "./exchange.ts";
export { type FailedLoginsOptions, limitFailedLogins } from "./failed_logins.ts";
export type { FormatFunctions, FormatService } from "./formats.ts";
export { createGuard, type GuardOptions } from "./guard.ts";
export { createToolHandler } from "./handler.ts";
export type { Authorize, Caller } from "./identity.ts";
export { type JwtAlgorithm, jwtAuth, type JwtAuthOptions, type JwtClaims } from "./jwt_auth.ts";
export type { OpenApiOptions } from "./openapi.ts";
export type { ToolHandlerOptions } from "./options.ts";
export type { Problem, ProblemCode } from "./problem.ts";
export type { AccessEntry, ObserveOptions } from "./observe.ts";
export { openTelemetry, type OpenTelemetryApi, type OpenTelemetrySpan } from "./open_telemetry.ts";
export { type ProtectedResource, resourceMetadata } from "./protected_resource.ts";
export {
  createRateLimiter,
  MemoryRateLimitStore,
  type MemoryRateLimitStoreOptions,
  type RateLimitCount,
  type RateLimiter,
  type RateLimitOptions,
  type RateLimitStore,
  type RateLimitVerdict,
  type RateLimitWindow,
} from "./rate_limit.ts";
export {
  type KeySource,
  type NamedKey,
  remoteKeys,
  type RemoteKeysOptions,
} from "./remote_keys.ts";
export { serveFormats, type ServeFormatsOptions } from "./serve_formats.ts";
export type { CallSpan, CallTelemetry, ObservedCall } from "./telemetry.ts";
export type { TraceParent } from "./traceparent.ts";
