/**
 * Calls that outlive their request. The folder's table of contents.
 *
 * @module
 */

export {
  type CallStore,
  checkStored,
  checkStoreKey,
  MAX_STORE_KEY,
  MAX_STORED_BYTES,
  type StoredEntry,
  type StoredValue,
  type StoreOptions,
} from "./call_store.ts";
export { memoryCallStore, type MemoryCallStoreOptions } from "./memory_store.ts";
export {
  type Delivery,
  notStored,
  type QueuedTask,
  type RunRecord,
  TaskEngine,
  type TaskQueue,
} from "./task_engine.ts";
export { runByClient, type RunByClientOptions } from "./run_by_client.ts";
export { MEASURED_AFTER_MS, MeasuredQuotas, quotaExhausted, Quotas } from "./quotas.ts";
export { definitionDigest, ownerDigest } from "./digest.ts";
export {
  Lease,
  type LeasedRecord,
  LeasedRecords,
  type RevisedRecord,
  StoredRecords,
} from "./records.ts";
export { storedKeys, type StoredKeysOptions } from "./stored_keys.ts";
export {
  createTickets,
  storedTickets,
  type TicketLabel,
  type TicketOptions,
  type TicketSealer,
  type UnopenedTicket,
} from "./tickets.ts";
export {
  CallTasks,
  callTasks,
  type CallTasksOptions,
  type RecoveredCall,
  type TaskList,
  type TaskListOptions,
  type TaskOwner,
} from "./tasks.ts";
export type { TaskState, TaskStatus } from "./task_records.ts";
