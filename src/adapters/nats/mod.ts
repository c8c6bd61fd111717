/**
 * Tools over NATS (`@plue/tools/nats`): a process offers its tools, and other processes call them.
 *
 * @module
 */

export { natsCallStore, type NatsCallStoreOptions } from "./call_store.ts";
export { attemptOf } from "./durable_worker.ts";
export type { NatsOptions } from "./link.ts";
export {
  type PerCallTools,
  type PerCallToolsOptions,
  type RemoteTools,
  remoteTools,
  type RemoteToolsOptions,
  remoteToolsPerCall,
} from "./remote_tools.ts";
export type { NatsKeys } from "./seal.ts";
export { type ServedTools, serveTools, type ServeToolsOptions } from "./serve_tools.ts";
