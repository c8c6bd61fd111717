/**
 * The parts that all protocols over HTTP share: callers, rates, toolsets, bodies, streams and
 * problems; and the parts of a handler.
 *
 * @module
 */

export {
  bearerAuth,
  type BearerAuthOptions,
  type ChallengeOptions,
  type ProtectedResource,
  resourceMetadata,
  serveProtectedResource,
  type TokenVerifier,
} from "./bearer_auth.ts";
export { BoundedMap, type BoundedMapOptions } from "./bounded_map.ts";
export {
  bridgeByQuery,
  bridgeOnce,
  type CallTarget,
  showThrough,
  type ShowTools,
  targetOf,
} from "./bridge.ts";
export { runTasks, type RunTasksOptions, serveCalls, type ServeCallsOptions } from "./calls.ts";
export { checkCount, checkObject, checkOptions, checkTexts } from "./checks.ts";
export { allowCrossOrigin, type CorsOptions } from "./cors.ts";
export { EVENT_STREAM_HEADERS, eventStream, frame } from "./event_stream.ts";
export {
  CALL_ID_HEADERS,
  type CallIds,
  type CallMode,
  type ExecutionOptions,
  type PreparedCall,
  readCallIds,
  serveExecution,
  streamCall,
} from "./execute_tool.ts";
export { checkExplorer, type ExplorerPage, serveExplorer } from "./explorer_page.ts";
export { serveEvents, type ServeEventsOptions, slotsFor, StreamSlots } from "./follow_tools.ts";
export { createGuard, type GuardOptions } from "./guard.ts";
export {
  type ComposedHandlerOptions,
  composeToolHandler,
  type HttpHandler,
  type HttpPart,
  installParts,
  type PartHooks,
  type PublicRoute,
  type Route,
  RoutedServer,
} from "./handler.ts";
export type { Authorize, Caller } from "./identity.ts";
export { type JwtAlgorithm, jwtAuth, type JwtAuthOptions, type JwtClaims } from "./jwt_auth.ts";
export {
  type ExportPage,
  type FormatFunctions,
  type FormatService,
  type ListingOptions,
  queryPages,
  type QueryPagesOptions,
  serveExplanations,
  serveListing,
  serveTurns,
  type ServeTurnsOptions,
} from "./listing.ts";
export { type ListingChange, ListingWatch } from "./listing_changes.ts";
export { serveHealth, serveMetrics } from "./metrics.ts";
export {
  type AccessEntry,
  nextTraceParent,
  type ObserveOptions,
  observeRequests,
  readTraceParent,
  writeTraceParent,
} from "./observe.ts";
export type { ServerOptions } from "./options.ts";
export { createPageCache, isCurrent, ListCache, type Page, pageOf, pageResponse } from "./page.ts";
export { readBridgeQuery, readFilters, readListingQuery } from "./query.ts";
export {
  createRateLimiter,
  type FailedLoginsOptions,
  limitFailedLogins,
  limitRate,
  type RateLimiter,
  type RateLimitOptions,
  type RateLimitVerdict,
  takerOf,
  WINDOW_CHECKS,
} from "./rate_limit.ts";
export type { AccessCall, RequestCall, RequestObserver } from "./records.ts";
export {
  type KeySource,
  type NamedKey,
  remoteKeys,
  type RemoteKeysOptions,
} from "./remote_keys.ts";
export {
  type RequestAnswer,
  type RequestContext,
  type ServerHooks,
  type ToolRequest,
  ToolServer,
  withAllLayers,
} from "./request.ts";
export {
  MemoryRateLimitStore,
  type MemoryRateLimitStoreOptions,
  type RateLimitCount,
  type RateLimitStore,
  type RateLimitWindow,
  storedRateLimits,
  type StoredRateLimitsOptions,
  WindowCounts,
} from "./request_counts.ts";
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
  refuseQuery,
  RequestError,
  SAFE_HEADERS,
  withHeaders,
} from "./responses.ts";
export { type CallClient, ClientSignal, type RunningCall } from "./running_calls.ts";
export { isWorkers } from "./runtime.ts";
export { HTTP_CHECKS, type HttpOptions, sharedParts } from "./shared_parts.ts";
