/**
 * Options that workers and callers share, and the traces that their calls belong to.
 *
 * @module
 */

import type { CallTelemetry, CallTrace } from "../../execute/mod.ts";
import {
  atOnce,
  callHook,
  type Check,
  checkFunction,
  type HookLog,
  isObject,
  must,
  NO_LOG,
} from "../../tool/mod.ts";
import { readTraceParent, writeTraceParent } from "../http/mod.ts";
import { type NatsKeys, type Role, Seal } from "./seal.ts";
import { STORAGE, STORAGE_OPTIONS, type StorageSettings } from "./streams.ts";
import { checkRegistryName } from "./subjects.ts";

/** Options of workers and callers. */
export interface NatsOptions {
  /**
   * The secret that callers and workers share, at least 16 characters without spaces. The first of a
   * list signs and all are accepted, so that it can be replaced.
   */
  readonly secret: string | readonly string[];
  /**
   * Keys with which a worker cannot act as a caller, nor a caller as a worker. All processes of a
   * registry have them, or none. Each message then costs a signature and a check more.
   */
  readonly keys?: NatsKeys;
  /**
   * The name of the registry. Workers that offer the same tools, and their callers, have the same.
   *
   * @default {"default"}
   */
  readonly name?: string;
  /**
   * The number of servers in a cluster that store the streams and buckets that are missing.
   *
   * @default {1}
   */
  readonly replicas?: number;
  /**
   * The maximum size of each of these in bytes, which the server reserves.
   *
   * @default {1_073_741_824}
   */
  readonly maxBytes?: number;
  /**
   * Makes a worker's span a child of its caller's: `openTelemetry` returns it. A worker also measures
   * its calls with it, as with `telemetry` of its `dispatcher`; a caller's dispatcher has its own.
   */
  readonly telemetry?: CallTelemetry;
  /** Receives errors that no call returns. */
  onError?(error: unknown): void;
}

/** The checks of these options. */
export const NATS_OPTIONS: {
  readonly [Name in keyof NatsOptions]-?: Check<Required<NatsOptions>[Name]>;
} = {
  secret: (_action: string, value: unknown): string | readonly string[] => value as string,
  keys: (_action: string, value: unknown): NatsKeys => value as NatsKeys,
  name: checkRegistryName,
  ...STORAGE_OPTIONS,
  telemetry: must(
    "what openTelemetry makes",
    (value): value is CallTelemetry => isObject(value) && typeof value["begin"] === "function",
  ),
  onError: checkFunction,
};

/** The settings that follow from them. */
export interface NatsSettings {
  readonly seal: Seal;
  readonly name: string;
  readonly storage: StorageSettings;
  readonly log: HookLog;
}

/**
 * Reads options whose fields were checked.
 *
 * @param options The options as they were given, whose `onError` is called as their method.
 * @throws {TypeError} If the secret or the keys are not valid.
 */
export function readNatsOptions(
  action: string,
  role: Role,
  { secret, keys, name = "default", ...read }: Partial<NatsOptions>,
  options: Pick<NatsOptions, "onError">,
): NatsSettings {
  if (keys !== undefined && keys.seed === undefined) {
    throw new TypeError(`Cannot ${action}: keys must have a seed, callers and workers`);
  }
  return {
    seal: new Seal(action, secret as string, role, keys),
    name,
    storage: {
      replicas: read.replicas ?? STORAGE.replicas,
      maxBytes: read.maxBytes ?? STORAGE.maxBytes,
    },
    log: (error) => callHook(() => options.onError?.(error), NO_LOG),
  };
}

/** Returns the position in a trace of the call that runs now, in the form of W3C's `traceparent`. */
export function currentTrace(
  telemetry: CallTelemetry | undefined,
  log: HookLog,
): string | undefined {
  let trace: string | undefined;
  callHook(() => {
    const place = atOnce(telemetry?.place?.());
    const header = place && writeTraceParent(place);
    // Telemetry may return another form.
    if (header && readTraceParent(header)) trace = header;
  }, log);
  return trace;
}

/** Returns the trace that a call came with, for the worker's dispatcher. */
export function traceOf(trace: string | undefined): CallTrace | undefined {
  return trace === undefined ? undefined : { headers: new Map([["traceparent", trace]]) };
}
