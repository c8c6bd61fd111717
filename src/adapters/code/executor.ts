/** The interface of executors, which run the programs of models. */

import { MAX_TIMEOUT_MS, numberFrom, readFields } from "../../tool/mod.ts";

/** A call of a tool by a program. The program is not trusted: any text is possible. */
export interface ProgramCall {
  /** The number of the call in its program, from 0. */
  readonly index: number;
  /** The id of the tool. */
  readonly id: string;
  /** The arguments, as JSON text. */
  readonly json: string;
}

/** The limits of programs. */
export interface CodeLimits {
  /** The time with all calls, in milliseconds. Waiting for a person does not count. @default {60_000} */
  readonly timeoutMs?: number;
  /**
   * The processor time, in milliseconds. Other work of the thread waits. `quickJs` counts steps
   * instead, so that a busy machine ends no program early: 80,000 steps are a millisecond.
   *
   * @default {500}
   */
  readonly cpuMs?: number;
  /** The memory, in bytes. @default {33_554_432} */
  readonly memoryBytes?: number;
  /** The length of the source, in characters. @default {65_536} */
  readonly maxSourceLength?: number;
  /** The number of calls. Further calls throw `overloaded`. @default {100} */
  readonly maxCalls?: number;
  /** The number of concurrent calls. Further calls wait. @default {8} */
  readonly maxConcurrentCalls?: number;
  /** The length of the returned value, in characters of JSON. @default {65_536} */
  readonly maxOutputLength?: number;
  /** The length of the log, in characters. The rest is omitted. @default {8_192} */
  readonly maxLogLength?: number;
  /** The number of concurrent programs. Further programs fail with `overloaded`. @default {32} */
  readonly maxPrograms?: number;
  /** The number of concurrent programs of one principal. @default {4} */
  readonly maxProgramsPerPrincipal?: number;
}

type Limit = readonly [usual: number, least: number, most?: number];

const LIMITS: { readonly [Name in keyof CodeLimits]-?: Limit } = {
  timeoutMs: [60_000, 1, MAX_TIMEOUT_MS],
  cpuMs: [500, 1, 60_000],
  memoryBytes: [33_554_432, 1_048_576, 1_073_741_824],
  maxSourceLength: [65_536, 1],
  maxCalls: [100, 0, 10_000],
  maxConcurrentCalls: [8, 1],
  maxOutputLength: [65_536, 1],
  maxLogLength: [8_192, 0],
  maxPrograms: [32, 1],
  maxProgramsPerPrincipal: [4, 1],
};

export function readLimits(action: string, limits: CodeLimits = {}): Required<CodeLimits> {
  const each = <Value>(make: (limit: Limit) => Value): Record<string, Value> =>
    Object.fromEntries(Object.entries(LIMITS).map(([name, limit]) => [name, make(limit)]));
  const checks = each(([, least, most]) => numberFrom(least, most));
  const read = readFields(action, limits, checks, (name) => `limits.${name}`);
  return { ...each(([usual]) => usual), ...read } as Required<CodeLimits>;
}

/** A program to run. */
export interface Program {
  /** The body of an async function, in JavaScript. */
  readonly source: string;
  readonly limits: Required<CodeLimits>;
  /** The time of `Date` in the program, in milliseconds since 1970. It does not advance. */
  readonly time: number;
  /** Ends the program. */
  readonly signal: AbortSignal;
  /**
   * Runs a call. Returns a JSON object: `{"ok":true,"value":…}`, or `{"ok":false,"value":{"code",
   * "message"}}`, which the program receives as a thrown `ToolError`; or `undefined` if the call
   * waits for a person.
   */
  call(call: ProgramCall): Promise<string | undefined>;
}

/** The end of a program. */
export type ProgramEnd =
  /** `json`: the returned value, as JSON text. */
  | { readonly kind: "returned"; readonly json: string; readonly log: readonly string[] }
  /** It threw, or its source is invalid. `line`: the line in its source, from 1. */
  | {
    readonly kind: "threw";
    readonly message: string;
    readonly line?: number;
    readonly log: readonly string[];
  }
  /** The program exceeded a limit. `why`: a sentence that names the program and the limit. */
  | { readonly kind: "stopped"; readonly why: string }
  /** All unfinished calls wait for a person. To continue, the program must run again. */
  | { readonly kind: "suspended" };

/**
 * Runs programs of models.
 *
 * Contract (`test/contract/executor_contract.ts` checks it):
 * - A program has the globals of JavaScript, `tools`, `console` and `ToolError`, and no other access
 *   to its process. It has no timers, no network and no randomness, and `Date` stands still, so that
 *   it repeats exactly when it runs again.
 * - `tools.a.b(args)` calls the tool `a:b`, and `tools.a(args)` the tool `a`.
 * - Programs share nothing with each other.
 * - `run` rejects if its signal aborts, or if a call rejects.
 */
export interface Executor {
  /** Runs a program until it and its calls have ended, or only calls remain that wait. */
  run(program: Program): Promise<ProgramEnd>;
}
