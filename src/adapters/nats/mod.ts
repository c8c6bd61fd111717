/**
 * Tools over NATS (`@plue/tools/nats`): a process offers its tools, and others see and call them.
 *
 * @module
 */

export { natsCallStore, type NatsCallStoreOptions } from "./call_store.ts";
export { attemptOf } from "./durable_worker.ts";
export {
  type PerCallTools,
  type PerCallToolsOptions,
  remoteToolsPerCall,
} from "./per_call_tools.ts";
export type { NatsOptions } from "./options.ts";
export { type RemoteTools, remoteTools, type RemoteToolsOptions } from "./remote_tools.ts";
export type { NatsKeys } from "./seal.ts";
export { type ServedTools, serveTools, type ServeToolsOptions } from "./serve_tools.ts";
