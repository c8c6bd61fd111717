/**
 * Sends what a tool says while it runs: to the host's callbacks, and to the stream if there is one.
 *
 * @module
 */

import { clip, copyJson } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { describeRefusal, readJson } from "./json_value.ts";
import type { ToolProgress } from "./tool_call.ts";

const MAX_PROGRESS_MESSAGE = 1_000;

/** Sends for one call. Values that are not JSON are dropped and counted: they never fail the tool. */
export class EventSender {
  /** How many values were lost. */
  dropped = 0;
  readonly #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  metadata(value: unknown): void {
    const { events, options } = this.#call;
    if (!this.#isHeard(options.metadata)) return;
    const copy = this.#copy(value);
    if (copy === undefined) return;
    if (events?.push({ type: "metadata", value: copy.value }) === false) this.dropped++;
    this.#tell(() => options.metadata?.(copy.value));
  }

  progress(done: number, total: number | undefined, message: string | undefined): void {
    const { events, options } = this.#call;
    if (!this.#isHeard(options.progress)) return;
    if (!Number.isFinite(done) || (total !== undefined && !Number.isFinite(total))) {
      return this.#drop(new RangeError("Cannot send progress: it must be finite numbers"));
    }
    const progress: ToolProgress = Object.freeze({
      done,
      ...(total === undefined ? {} : { total }),
      ...(typeof message === "string" ? { message: clip(message, MAX_PROGRESS_MESSAGE) } : {}),
    });
    events?.push({ type: "progress", progress });
    this.#tell(() => options.progress?.(progress));
  }

  /** Sends what a generator yielded. Resolves when it has been taken, or need not be. */
  async output(value: unknown): Promise<void> {
    const { events, options } = this.#call;
    if (!this.#isHeard(options.output)) return;
    const copy = this.#copy(value);
    if (copy === undefined) return;
    try {
      await options.output?.(copy.value);
    } catch (error) {
      this.#call.report("metadata", error);
    }
    await events?.pushAndWait({ type: "output", value: copy.value });
  }

  /** What is sent after the result was decided comes too late. */
  #isHeard(callback: unknown): boolean {
    return !this.#call.over && (this.#call.events !== undefined || callback !== undefined);
  }

  /** A frozen copy of a value, within the limit; a value that has none is dropped. */
  #copy(value: unknown): { readonly value: unknown } | undefined {
    const limit = this.#call.maxOutputBytes;
    const verdict = readJson(value, limit);
    if (verdict.kind === "json") return { value: copyJson(verdict.value, "the value") };
    this.#drop(
      new TypeError(
        verdict.kind === "large"
          ? `Cannot send a value: it is larger than ${limit} bytes of JSON`
          : `Cannot send a value: ${describeRefusal(verdict)}`,
      ),
    );
    return undefined;
  }

  #drop(error: Error): void {
    this.dropped++;
    this.#call.report("metadata", error);
  }

  #tell(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#call.report("metadata", error);
    }
  }
}
