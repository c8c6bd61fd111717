/**
 * The calls that run for clients now, so that one can be aborted from elsewhere.
 *
 * @module
 */

/** Whose call it is, and its name. */
export interface CallKey {
  /** Callers without a principal are one caller, as they are for idempotency keys. */
  readonly principal: string | undefined;
  readonly callId: string;
}

/** A call that runs. */
export interface RunningCall {
  /** Aborts when the client goes away, or when somebody aborts the call. */
  readonly signal: AbortSignal;
  /** Aborts the call. */
  abort(reason: DOMException): void;
  /** The call has ended: nothing reaches it any more. */
  end(): void;
}

/** The calls of one handler. */
export class RunningCalls {
  /** More than one where a client gave the same name twice. */
  readonly #calls = new Map<string, Set<(reason: DOMException) => void>>();

  /** How many calls run. */
  get size(): number {
    let size = 0;
    for (const calls of this.#calls.values()) size += calls.size;
    return size;
  }

  /**
   * A call begins.
   *
   * @param client The request's signal. It is let go of when the call ends: Deno aborts it after
   * every answered request.
   */
  begin(key: CallKey, client: AbortSignal): RunningCall {
    const controller = new AbortController();
    // In workerd, what another request does must not run this one's code: it settles a promise, and
    // the runtime goes on in the request that waits for it.
    let tell: (reason: DOMException) => void = () => {};
    const told = new Promise<DOMException>((resolve) => tell = resolve);
    void told.then((reason) => controller.abort(reason));
    const text = textOf(key);
    let calls = this.#calls.get(text);
    if (calls === undefined) this.#calls.set(text, calls = new Set());
    calls.add(tell);

    const leave = (): void => controller.abort(clientLeft());
    if (client.aborted) leave();
    else client.addEventListener("abort", leave, { once: true });
    return {
      signal: controller.signal,
      abort: (reason) => controller.abort(reason),
      end: () => {
        client.removeEventListener("abort", leave);
        const left = this.#calls.get(text);
        if (left?.delete(tell) === true && left.size === 0) {
          this.#calls.delete(text);
        }
      },
    };
  }

  /**
   * Aborts a caller's calls of that name.
   *
   * @returns Whether there was one.
   */
  abort(key: CallKey): boolean {
    const calls = this.#calls.get(textOf(key));
    if (calls === undefined) return false;
    for (const tell of calls) {
      tell(new DOMException("The caller aborted the call", "AbortError"));
    }
    return true;
  }
}

/** Why a call is aborted whose client is gone. */
export function clientLeft(): DOMException {
  return new DOMException("The client went away", "AbortError");
}

/** A call's id has no line break, so the first one ends it. */
function textOf({ principal, callId }: CallKey): string {
  return principal === undefined ? callId : `${callId}\n${principal}`;
}
