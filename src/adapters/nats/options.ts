/** The options that workers and callers share. */

import type { CallTelemetry } from "../../execute/mod.ts";
import {
  callHook,
  type Check,
  checkFunction,
  createCheck,
  isObject,
  noop,
} from "../../tool/mod.ts";
import type { LinkSettings } from "./link.ts";
import { checkRegistryName } from "./protocol.ts";
import { type NatsKeys, type Role, Seal } from "./seal.ts";

/** Options of workers and callers. */
export interface NatsOptions {
  /**
   * The secret that callers and workers share: at least 16 characters without spaces. With a list,
   * the first secret signs and all are accepted, so that you can replace a secret step by step.
   */
  readonly secret: string | readonly string[];
  /**
   * Keys that separate callers and workers: neither can act as the other. Set keys in all processes of
   * a registry, or in no process. With keys, each message needs another signature and another check.
   */
  readonly keys?: NatsKeys;
  /**
   * The name of the registry. All workers with the same tools, and their callers, use one name.
   *
   * @default {"default"}
   */
  readonly name?: string;
  /**
   * The result of `openTelemetry`, which makes a worker's span a child of the caller's span. Workers
   * also measure their calls with it; callers use the `telemetry` of their own dispatcher.
   */
  readonly telemetry?: CallTelemetry;
  /** Receives errors that no call returns. */
  onError?(error: unknown): void;
}

export const NATS_OPTIONS: {
  readonly [Name in keyof NatsOptions]-?: Check<Required<NatsOptions>[Name]>;
} = {
  secret: (_action: string, value: unknown): string | readonly string[] => value as string,
  keys: (_action: string, value: unknown): NatsKeys => value as NatsKeys,
  name: checkRegistryName,
  telemetry: createCheck(
    "the result of openTelemetry()",
    (value): value is CallTelemetry => isObject(value) && typeof value["begin"] === "function",
  ),
  onError: checkFunction,
};

/** Reads checked options. @throws {TypeError} If the secret or the keys are not valid. */
export function readLinkSettings(
  action: string,
  role: Role,
  { secret, keys, name = "default" }: Partial<NatsOptions>,
  options: Pick<NatsOptions, "onError">,
): LinkSettings {
  if (keys !== undefined && keys?.seed === undefined) {
    throw new TypeError(`Cannot ${action}: keys must have a seed, callers and workers`);
  }
  return {
    seal: new Seal(action, secret as string, role, keys),
    name,
    log: (error) => callHook(() => options.onError?.(error), noop),
  };
}
