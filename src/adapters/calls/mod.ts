/**
 * Calls that wait for an answer and outlive their process (`@plue/tools/calls`): where they are kept.
 *
 * @module
 */

export {
  type CallStore,
  checkStored,
  checkStoreKey,
  MAX_STORE_KEY,
  MAX_STORED_BYTES,
  memoryCallStore,
  type MemoryCallStoreOptions,
  type StoredEntry,
  type StoredValue,
  type StoreOptions,
} from "../../execute/durable/mod.ts";
