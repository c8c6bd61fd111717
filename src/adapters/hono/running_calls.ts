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

/** The calls of one handler. */
export class RunningCalls {
  readonly #calls = new Map<string, RunningCall>();

  /**
   * A call begins.
   *
   * @param client The request: its signal says that the client is gone. It is let go of when the
   * call ends: Deno aborts it after every answered request.
   */
  begin(key: CallKey, client: Request): RunningCall {
    return new RunningCall(this.#calls, textOf(key), client);
  }

  /**
   * Aborts a caller's calls of that name.
   *
   * @returns Whether there was one.
   */
  abort(key: CallKey): boolean {
    const first = this.#calls.get(textOf(key));
    for (let call = first; call !== undefined; call = call.other) call.tell();
    return first !== undefined;
  }
}

/** After how many turns of the microtask queue a call counts as one that takes its time. */
const TURNS = 12;

/** A call that runs. */
export class RunningCall {
  /** Aborts when the client goes away, or when somebody aborts the call. */
  readonly signal: AbortSignal;
  /** Another call with the same key: a client may give a name twice. */
  other: RunningCall | undefined;
  /** Aborts the call, from another request. */
  readonly tell: () => void;
  readonly #calls: Map<string, RunningCall>;
  readonly #key: string;
  readonly #client: Request;
  #turns = TURNS;
  #isOver = false;
  readonly #leave: () => void;
  #whenLong: (() => void) | undefined;

  /** @ignore Made by {@linkcode RunningCalls.begin}. */
  constructor(calls: Map<string, RunningCall>, key: string, client: Request) {
    const controller = new AbortController();
    const abort = (why: string): void => controller.abort(new DOMException(why, "AbortError"));
    this.signal = controller.signal;
    // In workerd, what another request does must not run this one's code: it settles a promise, and
    // the runtime goes on in the request that waits for it.
    let tell = (): void => {};
    void new Promise<void>((resolve) => tell = resolve)
      .then(() => abort("The caller aborted the call"));
    this.tell = tell;
    this.#leave = () => abort("The client went away");
    this.#client = client;
    this.#listen();
    this.#key = key;
    this.#calls = calls;
    this.other = calls.get(key);
    calls.set(key, this);
  }

  /** What to do when the call takes long: more than a few turns of the queue. */
  whenLong(work: () => void): void {
    if (this.#turns === 0) work();
    else this.#whenLong = work;
  }

  /** The call has ended: nothing reaches it any more. */
  end(): void {
    this.#isOver = true;
    if (this.#turns === 0) this.#client.signal.removeEventListener("abort", this.#leave);
    let call = this.#calls.get(this.#key);
    if (call === this) {
      if (this.other === undefined) this.#calls.delete(this.#key);
      else this.#calls.set(this.#key, this.other);
      return;
    }
    while (call !== undefined && call.other !== this) call = call.other;
    if (call !== undefined) call.other = this.other;
  }

  /**
   * Listens to the client once the call has taken a few turns of the queue: nothing is heard of a
   * client before that, and a call that has ended by then need not pay for a signal, which Node and
   * Deno make when it is asked for.
   */
  #listen(): void {
    if (this.#isOver) return;
    if (--this.#turns > 0) return queueMicrotask(() => this.#listen());
    const { signal } = this.#client;
    if (signal.aborted) this.#leave();
    else signal.addEventListener("abort", this.#leave, { once: true });
    this.#whenLong?.();
  }
}

/** JSON, so that no id that a client makes up reads as another caller's key. */
function textOf({ principal, callId }: CallKey): string {
  return JSON.stringify([principal ?? null, callId]);
}
