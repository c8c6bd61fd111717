/**
 * Events for clients: changes of their own list of tools, and the host's announcements about
 * prompts and resources of an extension.
 *
 * @module
 */

import type { ServerCapabilities, ServerEvent, ServerEventBus } from "@modelcontextprotocol/server";
import { eventStream, type EventStreamOptions, type ListingWatch } from "../http/mod.ts";

/** Sends notifications about prompts and resources to following clients. */
export interface McpNotify {
  /** The list of prompts has changed. */
  promptsChanged(): void;
  /** The list of resources, or of their templates, has changed. */
  resourcesChanged(): void;
  /** A resource has changed. Only clients that subscribed to this URI are notified. */
  resourceUpdated(uri: string): void;
}

/** The streams of one endpoint, for the host's announcements. */
export class Followers implements McpNotify {
  readonly #following = new Set<Following>();

  /** @param watch Follows the caller's own list. */
  follow(watch: ListingWatch, onError: (error: unknown) => void): Following {
    const following: Following = new Following(watch, (error) => {
      this.#following.delete(following);
      if (error !== undefined) onError(error);
    });
    this.#following.add(following);
    return following;
  }

  promptsChanged(): void {
    this.#tell({ kind: "prompts_list_changed" });
  }

  resourcesChanged(): void {
    this.#tell({ kind: "resources_list_changed" });
  }

  resourceUpdated(uri: string): void {
    this.#tell({ kind: "resource_updated", uri });
  }

  #tell(event: ServerEvent): void {
    for (const following of this.#following) following.tell(event);
  }
}

/** The maximum number of unread events of a stream. */
const MAX_UNREAD = 256;

/** The events of one stream. Equal unread events are merged. */
export class Following {
  readonly #watch: ListingWatch;
  readonly #onEnd: (error: unknown) => void;
  readonly #unread = new Map<string, ServerEvent>();
  #isOver = false;
  #wake: (() => void) | undefined;

  /** @param onEnd Called once, with the error if following failed. */
  constructor(watch: ListingWatch, onEnd: (error: unknown) => void) {
    this.#watch = watch;
    this.#onEnd = onEnd;
    void this.#follow();
  }

  /** Returns the next event, or `undefined` at the end. */
  async next(): Promise<ServerEvent | undefined> {
    for (;;) {
      for (const [text, event] of this.#unread) {
        this.#unread.delete(text);
        return event;
      }
      if (this.#isOver) return undefined;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  /** Adds an event. It only settles a promise: a Worker may not run another request's code. */
  tell(event: ServerEvent): void {
    if (this.#isOver) return;
    // A client that receives a change of the list reads its resources again, so that single updates
    // may be dropped.
    if (this.#unread.size >= MAX_UNREAD) {
      this.#unread.clear();
      for (const kind of ["tools_list_changed", "prompts_list_changed"] as const) {
        this.#unread.set(kind, { kind });
      }
      event = { kind: "resources_list_changed" };
    }
    this.#unread.set(event.kind === "resource_updated" ? `uri ${event.uri}` : event.kind, event);
    this.#wake?.();
  }

  stop(): void {
    this.#watch.stop();
  }

  async #follow(): Promise<void> {
    let failure: unknown;
    try {
      while ((await this.#watch.changes()).length > 0) this.tell({ kind: "tools_list_changed" });
    } catch (error) {
      failure = error;
      this.#watch.stop();
    }
    this.#isOver = true;
    this.#wake?.();
    this.#onEnd(failure);
  }
}

/** The source of one `subscriptions/listen` stream of the SDK, which subscribes when it begins. */
export class FollowingBus implements ServerEventBus {
  readonly #begin: () => Following;
  readonly #onEnd: () => void;
  readonly #idle: () => Promise<void>;

  /**
   * @param onEnd Called when no further changes are possible.
   * @param idle Resolves when the client waits for more events: the SDK buffers unread events
   * without bound.
   */
  constructor(begin: () => Following, onEnd: () => void, idle: () => Promise<void>) {
    this.#begin = begin;
    this.#onEnd = onEnd;
    this.#idle = idle;
  }

  /** Announces events to all streams of the endpoint, see {@linkcode Followers}. */
  publish(_event: ServerEvent): void {}

  subscribe(listener: (event: ServerEvent) => void): () => void {
    const following = this.#begin();
    void (async () => {
      for (;;) {
        const event = await following.next();
        if (event === undefined) return this.#onEnd();
        await this.#idle();
        listener(event);
      }
    })();
    return () => following.stop();
  }
}

const METHODS = {
  tools_list_changed: "notifications/tools/list_changed",
  prompts_list_changed: "notifications/prompts/list_changed",
  resources_list_changed: "notifications/resources/list_changed",
  resource_updated: "notifications/resources/updated",
} as const satisfies Record<ServerEvent["kind"], string>;

/**
 * The `GET` stream of clients before revision 2026-07-28.
 *
 * @param wants Returns true if the client receives an event.
 */
export function followingStream(
  following: Following,
  wants: (event: ServerEvent) => boolean,
  options: EventStreamOptions,
): Response {
  return eventStream({
    async next() {
      for (;;) {
        const event = await following.next();
        if (event === undefined) return undefined;
        if (!wants(event)) continue;
        const message = {
          jsonrpc: "2.0",
          method: METHODS[event.kind],
          ...(event.kind === "resource_updated" ? { params: { uri: event.uri } } : {}),
        };
        return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
      }
    },
    cancel: () => following.stop(),
  }, options).response;
}

/** Returns true if a server with these capabilities may send an event. */
export function announces(
  { tools, prompts, resources }: ServerCapabilities,
  event: ServerEvent,
): boolean {
  switch (event.kind) {
    case "tools_list_changed":
      return tools?.listChanged === true;
    case "prompts_list_changed":
      return prompts?.listChanged === true;
    case "resources_list_changed":
      return resources?.listChanged === true;
    case "resource_updated":
      return resources?.subscribe === true;
  }
}
