/**
 * Recordings of calls in a file, and a layer that returns their results without running the tools.
 *
 * @module
 */

import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import type { Layer } from "../../execute/mod.ts";
import * as check from "../../tool/mod.ts";
import { attempt, canonicalJson, clip, fail, isObject, type ToolResult } from "../../tool/mod.ts";
import { Redactor, scrub } from "./redact.ts";

/** Options for {@linkcode replay}. */
export interface ReplayOptions {
  /** `strict`: calls come in the order of the recordings; `unordered`: in any. @default {"strict"} */
  readonly match?: "strict" | "unordered" | undefined;
  /** A call without a recording fails (`unavailable`), or its tool runs. @default {"fail"} */
  readonly onMiss?: "fail" | "call" | undefined;
}

/** A layer that returns recorded results. The end of its `using` block calls `assertUsed`. */
export interface Replay extends Layer, Disposable {
  /** Throws an error if a recording was not used, or a call failed because no recording fits. */
  assertUsed(): void;
}

interface Recording {
  /** Counts the calls from 1, by their starts. */
  readonly call: number;
  readonly tool: string;
  readonly arguments: unknown;
  readonly result: ToolResult;
}

const CHECKS = {
  match: check.oneOf<NonNullable<ReplayOptions["match"]>>(["strict", "unordered"]),
  onMiss: check.oneOf<NonNullable<ReplayOptions["onMiss"]>>(["fail", "call"]),
};

/**
 * Creates a layer that writes the calls of tools and their results into a file, for
 * {@linkcode replay}. Stage `run`. Secrets are removed by schemas and names, as in a journal.
 * Progress, yielded output, and calls that are aborted or suspended are not recorded. Writing
 * blocks the process.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { mkdtempSync } from "node:fs";
 * import { tmpdir } from "node:os";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { record, replay } from "@plue/tools/replay";
 *
 * const file = `${mkdtempSync(`${tmpdir()}/`)}/calls.jsonl`;
 * let runs = 0;
 * const registry = new ToolRegistry({
 *   tools: [{ name: "stock", description: "Counts.", execute: () => ++runs }],
 * });
 * await new ToolDispatcher(registry, { layers: [record(file)] }).dispatch({ name: "stock" });
 *
 * const replayed = replay(file);
 * const dispatcher = new ToolDispatcher(registry, { layers: [replayed] });
 * const result = await dispatcher.dispatch({ name: "stock" });
 * assert.deepEqual([result.ok && result.content, runs], [1, 1]);
 * replayed.assertUsed();
 * ```
 *
 * @param path The path of the file. An existing file is replaced.
 * @throws {TypeError} If the file cannot be written.
 */
export function record(path: string): Layer {
  const action = "record calls";
  attempt(action, () => writeFileSync(check.checkWord(action, path, "the path"), ""));
  let calls = 0;
  return {
    name: "record",
    stage: "run",
    for: (tool) => {
      const redactor = new Redactor(tool);
      return async (call, next) => {
        const number = ++calls;
        const secrets: Set<string> = new Set();
        // Before the tool runs, because it may change its arguments.
        const args = withoutSecrets(redactor, call.plainArguments, secrets);
        const result = await next(call);
        const code = result.ok ? undefined : result.error.code;
        if (code === "aborted" || code === "input_required") return result;
        const cleaned = result.ok
          ? { content: withoutSecrets(redactor, result.content, secrets) }
          : { error: { ...scrubAll(result.error, secrets), code } };
        const recording = {
          call: number,
          tool: tool.id,
          arguments: args,
          result: { ...result, ...cleaned },
        };
        appendFileSync(path, `${JSON.stringify(recording)}\n`);
        return result;
      };
    },
  };
}

/**
 * Creates a layer that returns the results in a file of {@linkcode record}. Stage `run`: calls are
 * validated and approved like any other, and then their tools do not run. A recording fits a call of
 * its tool with equal arguments; secrets are not compared.
 *
 * @throws {TypeError} If an option is invalid, or the file is not a recording.
 */
export function replay(path: string, options: ReplayOptions = {}): Replay {
  const action = "replay calls";
  const { match = "strict", onMiss = "fail" } = check.readFields(action, options, CHECKS);
  const unused = readRecordings(action, check.checkWord(action, path, "the path"))
    .map((one) => ({ ...one, text: textOf(one) }));
  const misses: string[] = [];
  const assertUsed = (): void => {
    const problems = [...misses, ...unused.map((one) => `no call used ${one.text}`)];
    if (problems.length === 0) return;
    const why = clip(problems.join("; "), 2_000);
    throw new Error(`Cannot end the replay of ${path}: ${why}; correct the test, or record again`);
  };
  return {
    name: "replay",
    stage: "run",
    for: (tool) => {
      const redactor = new Redactor(tool);
      return (call, next) => {
        const args = withoutSecrets(redactor, call.plainArguments, new Set());
        const text = textOf({ tool: tool.id, arguments: args });
        const at = unused.findIndex((one) => one.text === text);
        const [found] = at === 0 || at > 0 && match === "unordered" ? unused.splice(at, 1) : [];
        if (found !== undefined) return { ...found.result, durationMs: 0 };
        if (onMiss === "call") return next(call);
        const why = match === "strict" && unused[0] !== undefined
          ? `the next recording is ${clip(unused[0].text, 300)}`
          : "no unused recording has its arguments";
        misses.push(`${clip(text, 300)}: ${why}`);
        return call.fail("unavailable", `${why}; record the calls again`, { retryable: false });
      };
    },
    assertUsed,
    [Symbol.dispose]: assertUsed,
  };
}

function withoutSecrets(redactor: Redactor, value: unknown, secrets: Set<string>): unknown {
  return scrubAll(redactor.redact(value ?? null, secrets), secrets);
}

/** Copies a JSON value. Removes secrets from its strings, and from the names of its members. */
function scrubAll<T>(value: T, secrets: ReadonlySet<string>): T {
  return JSON.parse(JSON.stringify(value), (_name, part) => {
    if (typeof part === "string") return scrub(part, secrets);
    if (!isObject(part)) return part;
    const members = Object.entries(part);
    return Object.fromEntries(members.map(([name, member]) => [scrub(name, secrets), member]));
  });
}

function readRecordings(action: string, path: string): Recording[] {
  const lines = attempt(action, () => readFileSync(path, "utf8")).split("\n").filter(check.isWord);
  return lines.map((line, at) => {
    const recording: unknown = check.attemptOr(undefined, () => JSON.parse(line));
    if (isObject(recording) && isObject(recording["result"])) {
      return recording as never as Recording;
    }
    return fail(action, `line ${at + 1} of ${path} is not a recording; record the calls again`);
  }).sort((a, b) => a.call - b.call);
}

function textOf({ tool, arguments: args }: Pick<Recording, "tool" | "arguments">): string {
  return `${tool}(${canonicalJson(args)})`;
}
