/**
 * What every way of serving tools over HTTP shares: who calls, how often, what the caller sees, and
 * bodies, streams and problems.
 *
 * @module
 */

export { bearerAuth, type BearerAuthOptions, type TokenVerifier } from "./bearer_auth.ts";
export { BoundedMap, type BoundedMapOptions } from "./bounded_map.ts";
export { CALL_ID_HEADERS, type CallIds, readCallIds } from "./call_ids.ts";
export {
  type ChallengeOptions,
  metadataPaths,
  type ProtectedResource,
  resourceMetadata,
} from "./challenge.ts";
export { checkCount, checkObject, checkOptions, checkTexts } from "./checks.ts";
export type { CorsOptions } from "./cors.ts";
export { EVENT_STREAM_HEADERS, eventStream, frame } from "./event_stream.ts";
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
  takerOf,
  WINDOW_CHECKS,
} from "./rate_limit.ts";
export { storedRateLimits } from "./stored_rate_limits.ts";
export { type FailedLoginsOptions, limitFailedLogins } from "./failed_logins.ts";
export { createGuard, type GuardOptions } from "./guard.ts";
export type { Authorize, Caller } from "./identity.ts";
export { type JwtAlgorithm, jwtAuth, type JwtAuthOptions, type JwtClaims } from "./jwt_auth.ts";
export {
  createPageCache,
  type ExportPage,
  isCurrent,
  ListCache,
  makePage,
  type Page,
  pageOf,
  pageResponse,
  toolPage,
} from "./listing.ts";
export { type ListingChange, ListingWatch } from "./listing_changes.ts";
export {
  type AccessCall,
  type AccessEntry,
  nextTraceParent,
  type ObserveOptions,
  readTraceParent,
  writeTraceParent,
} from "./observe.ts";
export { HTTP_CHECKS, type HttpOptions } from "./options.ts";
export {
  badRequest,
  chooseType,
  json,
  jsonText,
  methodNotAllowed,
  noSuchTool,
  type Problem,
  type ProblemCode,
  ProblemError,
  problemOfFailure,
  problemResponse,
  RequestError,
  SAFE_HEADERS,
  withHeaders,
} from "./responses.ts";
export { readBridgeQuery, readFilters, readListingQuery, refuseQuery } from "./query.ts";
export {
  type KeySource,
  type NamedKey,
  remoteKeys,
  type RemoteKeysOptions,
} from "./remote_keys.ts";
export {
  bridgeOnce,
  type CallTarget,
  type RequestAnswer,
  type RequestCall,
  type RequestContext,
  targetOf,
  type ToolRequest,
  ToolServer,
} from "./request.ts";
export { type CallClient, ClientSignal, type RunningCall } from "./running_calls.ts";
export { isWorkers } from "./runtime.ts";
