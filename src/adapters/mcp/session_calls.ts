/**
 * The calls of clients before revision 2026-07-28, which cancel a call by another request. Only the
 * session says that the two belong together: every client counts its requests from 0.
 *
 * @module
 */

/** Which call. */
export interface SessionCallKey {
  /** Another caller that has found out a session cannot cancel its calls. */
  readonly principal: string | undefined;
  readonly session: string;
  /** As the client wrote it. */
  readonly requestId: unknown;
}

/** A call that can be cancelled. */
export interface SessionCall {
  /** Aborts when the client cancels the call, or goes away. */
  readonly signal: AbortSignal;
  /** The call has ended: nothing reaches it any more. */
  end(): void;
}

/** The calls that run. */
export class SessionCalls {
  readonly #calls = new Map<string, () => void>();

  /**
   * A call begins.
   *
   * @param client Aborts when the client goes away.
   */
  begin(key: SessionCallKey, client: AbortSignal): SessionCall {
    const controller = new AbortController();
    // In workerd, what another request does must not run this one's code: it settles a promise, and
    // the runtime goes on in the request that waits for it.
    let cancel = (): void => {};
    void new Promise<void>((resolve) => cancel = resolve).then(() =>
      controller.abort(new DOMException("The client cancelled the call", "AbortError"))
    );
    const leave = (): void => controller.abort(client.reason);
    if (client.aborted) leave();
    else client.addEventListener("abort", leave, { once: true });
    const name = nameOf(key);
    this.#calls.set(name, cancel);
    return {
      signal: controller.signal,
      end: () => {
        client.removeEventListener("abort", leave);
        // A client that gives a number twice can cancel the later call only.
        if (this.#calls.get(name) === cancel) this.#calls.delete(name);
      },
    };
  }

  /** Aborts a call, if it runs. */
  cancel(key: SessionCallKey): void {
    this.#calls.get(nameOf(key))?.();
  }
}

function nameOf({ principal = null, session, requestId }: {
  readonly principal?: string | null | undefined;
  readonly session: string;
  readonly requestId: unknown;
}): string {
  return JSON.stringify([principal, session, requestId]);
}
