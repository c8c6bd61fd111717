/**
 * Tickets and stores for calls that wait for an answer and outlive their process
 * (`@plue/tools/calls`).
 *
 * @module
 */

export {
  type CallStore,
  CallTasks,
  callTasks,
  type CallTasksOptions,
  checkStored,
  checkStoreKey,
  type DueEntry,
  MAX_STORE_KEY,
  MAX_STORED_BYTES,
  memoryCallStore,
  type RecoveredCall,
  runByClient,
  type RunByClientOptions,
  type StoredEntry,
  storedKeys,
  storedTickets,
  type StoredValue,
  type StoreLimits,
  type StoreOptions,
  type TaskList,
  type TaskListOptions,
  type TaskOwner,
  type TaskState,
  type TaskStatus,
  type TicketOptions,
} from "../../execute/durable/mod.ts";
export { coerceArguments } from "./coerce_arguments.ts";
export { sealedTickets, type SealedTicketsOptions } from "./sealed_tickets.ts";
