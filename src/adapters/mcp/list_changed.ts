/**
 * Tells clients that their list of tools has changed, in the way of each era.
 *
 * @module
 */

import type { ServerEvent, ServerEventBus } from "@modelcontextprotocol/server";
import { type EventStream, eventStream } from "../hono/event_stream.ts";
import type { ListingWatch } from "./listing_watch.ts";

/**
 * What the SDK's `subscriptions/listen` stream of one caller listens to. The stream subscribes when
 * it begins, and lets go when its client is gone.
 */
export class ListChangedBus implements ServerEventBus {
  readonly #watch: () => ListingWatch;
  readonly #onEnd: (error: unknown) => void;

  /** @param onEnd There is nothing to follow any more; with what was thrown, if that is why. */
  constructor(watch: () => ListingWatch, onEnd: (error: unknown) => void) {
    this.#watch = watch;
    this.#onEnd = onEnd;
  }

  /** Nobody else has a say on this bus. */
  publish(_event: ServerEvent): void {}

  subscribe(listener: (event: ServerEvent) => void): () => void {
    const watch = this.#watch();
    void (async () => {
      try {
        while (await watch.changed()) listener({ kind: "tools_list_changed" });
        this.#onEnd(undefined);
      } catch (error) {
        this.#onEnd(error);
      }
    })();
    return () => watch.stop();
  }
}

const LIST_CHANGED = `event: message\ndata: ${
  JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" })
}\n\n`;

/** The `GET` stream of clients before revision 2026-07-28. */
export function listChangedStream(
  watch: ListingWatch,
  options: {
    readonly heartbeatMs: number;
    readonly signal: AbortSignal;
    readonly expiresAt: number | undefined;
    onError(error: unknown): void;
  },
): EventStream {
  return eventStream({
    async next() {
      try {
        return await watch.changed() ? LIST_CHANGED : undefined;
      } catch (error) {
        watch.stop();
        options.onError(error);
        return undefined;
      }
    },
    cancel: () => Promise.resolve(watch.stop()),
  }, options);
}
