/**
 * The calls that run, so that another request can abort one.
 *
 * @module
 */

import { isWorkers } from "./event_stream.ts";

/** Whose call it is, and its name. */
export interface CallKey {
  /** Callers without a principal are one caller, as they are for idempotency keys. */
  readonly principal: string | undefined;
  /** Tells apart two clients that both count their calls from 0. */
  readonly session?: string | undefined;
  /** As the client wrote it. */
  readonly callId: unknown;
}

/** What says that a client has left: a request, or what else has its signal. */
export interface CallClient {
  readonly signal: AbortSignal;
}

/** The calls of one handler. */
export class RunningCalls {
  readonly #calls = new Map<string, RunningCall>();

  /** Adds a call, which is to be told when it has ended. */
  begin(key: CallKey, client: CallClient): RunningCall {
    return new RunningCall(this.#calls, textOf(key), client);
  }

  /**
   * Aborts a caller's calls of that name.
   *
   * @returns Whether there was one.
   */
  abort(key: CallKey): boolean {
    const first = this.#calls.get(textOf(key));
    for (let call = first; call !== undefined; call = call.other) call.abort();
    return first !== undefined;
  }
}

/** After how many turns of the microtask queue a call counts as long. */
const TURNS = 12;

/** Counts turns: on all runtimes as fast as `queueMicrotask`, or faster. */
const SETTLED = Promise.resolve();

/** A call that runs. */
export class RunningCall {
  /** Aborts the call, from another request. */
  readonly abort: () => void;
  /** Another call with the same key: a client may use a name twice. */
  other: RunningCall | undefined;
  readonly #calls: Map<string, RunningCall>;
  readonly #key: string;
  readonly #client: CallClient;
  #turns = TURNS;
  #hasEnded = false;
  #controller: AbortController | undefined;
  #leave: (() => void) | undefined;
  #whenLong: (() => void) | undefined;

  /** @ignore Made by {@linkcode RunningCalls.begin}. */
  constructor(calls: Map<string, RunningCall>, key: string, client: CallClient) {
    this.#calls = calls;
    this.#key = key;
    this.#client = client;
    const abort = (): void => this.#end("The caller aborted the call");
    this.abort = isWorkers() ? inThisRequest(abort) : abort;
    this.other = calls.get(key);
    calls.set(key, this);
  }

  /**
   * Aborts when the client leaves, or when another request aborts the call. It is made when it is
   * asked for.
   */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.#wait();
    }
    return this.#controller.signal;
  }

  /** Does something if the call takes more than a few turns of the microtask queue with its signal. */
  whenLong(work: () => void): void {
    if (this.#turns === 0) work();
    else this.#whenLong = work;
  }

  /** The call has ended: removes it, and lets go of the client. */
  end(): void {
    this.#hasEnded = true;
    // Deno aborts the signal of every request that was answered.
    if (this.#leave !== undefined) {
      this.#client.signal.removeEventListener("abort", this.#leave);
    }
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
   * Listens to the client after a few turns of the microtask queue. No runtime says earlier that a
   * client has left, and Node and Deno make the signal of a request when it is asked for: a call that
   * ends at once does not pay for it.
   */
  #wait(): void {
    const look = (): void => {
      if (this.#hasEnded) return;
      if (--this.#turns > 0) return void SETTLED.then(look);
      const { signal } = this.#client;
      this.#leave = () => this.#end("The client went away");
      if (signal.aborted) this.#leave();
      else signal.addEventListener("abort", this.#leave, { once: true });
      this.#whenLong?.();
    };
    void SETTLED.then(look);
  }

  #end(why: string): void {
    this.#controller ??= new AbortController();
    this.#controller.abort(new DOMException(why, "AbortError"));
  }
}

/**
 * Work that another request may start. In workerd, a request must not run the code of another one:
 * it resolves a promise, and the runtime goes on in the request that waits for it.
 */
function inThisRequest(work: () => void): () => void {
  // Node 20 has no Promise.withResolvers.
  let begin = (): void => {};
  void new Promise<void>((resolve) => {
    begin = resolve;
  }).then(work);
  return begin;
}

/** JSON, so that no id that a client makes up reads as another caller's key. */
function textOf({ principal, session, callId }: CallKey): string {
  return JSON.stringify([principal ?? null, session ?? null, callId]);
}
