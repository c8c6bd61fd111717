/**
 * A streamed call before it has begun.
 *
 * @module
 */

import type { ToolFailure, ToolResult } from "../tool/mod.ts";
import { Call } from "./call.ts";
import type { StreamedCall } from "./stream.ts";

/** A streamed call, which is resolved when it begins. */
export class LazyCall implements StreamedCall {
  readonly #resolve: () => Call | ToolFailure;
  readonly #nextCallId: () => string;
  #call: Call | undefined;
  #callId: string | undefined;

  constructor(resolve: () => Call | ToolFailure, nextCallId: () => string) {
    this.#resolve = resolve;
    this.#nextCallId = nextCallId;
  }

  get callId(): string {
    return this.#call?.callId ?? (this.#callId ??= this.#nextCallId());
  }

  get dropped(): number {
    return this.#call?.dropped ?? 0;
  }

  run(): ToolResult | Promise<ToolResult> {
    const call = this.#resolve();
    if (!(call instanceof Call)) return call;
    this.#call = call;
    return call.run();
  }

  abort(reason: unknown): void {
    this.#call?.abort(reason);
  }
}
