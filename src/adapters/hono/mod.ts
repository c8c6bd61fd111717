/**
 * Serves tools over HTTP with Hono: Workers, Deno, Bun and Node.
 *
 * @module
 */

export {
  type AccessCall,
  type AccessEntry,
  type Authorize,
  bearerAuth,
  type BearerAuthOptions,
  type Caller,
  type ChallengeOptions,
  type CorsOptions,
  createGuard,
  createRateLimiter,
  type FailedLoginsOptions,
  type GuardOptions,
  type JwtAlgorithm,
  jwtAuth,
  type JwtAuthOptions,
  type JwtClaims,
  type KeySource,
  limitFailedLogins,
  MemoryRateLimitStore,
  type MemoryRateLimitStoreOptions,
  type NamedKey,
  type ObserveOptions,
  type Problem,
  type ProblemCode,
  type ProtectedResource,
  type RateLimitCount,
  type RateLimiter,
  type RateLimitOptions,
  type RateLimitStore,
  type RateLimitVerdict,
  type RateLimitWindow,
  remoteKeys,
  type RemoteKeysOptions,
  resourceMetadata,
  storedRateLimits,
  type TokenVerifier,
} from "../http/mod.ts";
export type { ExplorerPage } from "./explorer_page.ts";
export type { FormatFunctions, FormatService } from "./route.ts";
export { createToolHandler, type ToolHandlerOptions } from "./handler.ts";
export type { OpenApiOptions } from "../openapi/service_document.ts";
export { serveFormats, type ServeFormatsOptions } from "./serve_formats.ts";
