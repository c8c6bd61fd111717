/** Calls that outlive their request. The folder's table of contents. */

export * from "./call_store.ts";
export * from "./memory_store.ts";
export * from "./quotas.ts";
export * from "./records.ts";
export * from "./run_by_client.ts";
export * from "./settled_store.ts";
export * from "./store_driver.ts";
export * from "./stored_keys.ts";
export * from "./task_engine.ts";
export * from "./task_queue.ts";
export * from "./task_records.ts";
export type { TaskRetry } from "./task_retries.ts";
export type { CallTasksOptions, RecoveredCall } from "./task_runs.ts";
export * from "./tasks.ts";
export * from "./tickets.ts";
