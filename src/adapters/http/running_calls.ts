/**
 * The calls that run: each is aborted when its client leaves, or by another request.
 *
 * @module
 */

import { isWorkers } from "./runtime.ts";

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

/**
 * After how many turns of the microtask queue a call counts as long. An async tool that waits for
 * nothing outside has ended by then, with the dispatcher's turns around its own.
 */
const TURNS_OF_A_SHORT_CALL = 12;

/** Counts turns: on all runtimes as fast as `queueMicrotask`, or faster. */
const SETTLED = Promise.resolve();

/**
 * Aborts when a client leaves, and costs next to nothing until it is asked for its signal: Node and
 * Deno make the signal of a request when it is read.
 */
export class ClientSignal implements CallClient {
  readonly #client: CallClient;
  #turns = TURNS_OF_A_SHORT_CALL;
  #hasEnded = false;
  #controller: AbortController | undefined;
  #leave: (() => void) | undefined;
  #whenLong: (() => void) | undefined;

  constructor(client: CallClient) {
    this.#client = client;
  }

  /** Aborts when the client leaves, or with {@linkcode abortWith}. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.#wait();
    }
    return this.#controller.signal;
  }

  /** Aborts the signal. */
  abortWith(why: string): void {
    this.#controller ??= new AbortController();
    this.#controller.abort(new DOMException(why, "AbortError"));
  }

  /** Does something if the call takes more than a few turns of the microtask queue with its signal. */
  whenLong(work: () => void): void {
    if (this.#turns === 0) work();
    else this.#whenLong = work;
  }

  /** The call has ended: lets go of the client. Deno aborts the signal of every answered request. */
  end(): void {
    this.#hasEnded = true;
    if (this.#leave !== undefined) this.#client.signal.removeEventListener("abort", this.#leave);
  }

  /** Listens to the client once the call counts as long: no runtime says earlier that it has left. */
  #wait(): void {
    const look = (): void => {
      if (this.#hasEnded) return;
      if (--this.#turns > 0) return void SETTLED.then(look);
      const { signal } = this.#client;
      this.#leave = () => this.abortWith("The client went away");
      if (signal.aborted) this.#leave();
      else signal.addEventListener("abort", this.#leave, { once: true });
      this.#whenLong?.();
    };
    void SETTLED.then(look);
  }
}

/** A call that runs. */
export class RunningCall extends ClientSignal {
  /** Aborts the call, from another request. */
  readonly abort: () => void;
  readonly #key: string;
  readonly #newest: Map<string, RunningCall>;
  // A client may use a name twice, so the calls of one key are a list that any of them can leave.
  #older: RunningCall | undefined;
  #newer: RunningCall | undefined;

  /** @ignore Made by {@linkcode RunningCalls.begin}. */
  constructor(newest: Map<string, RunningCall>, key: string, client: CallClient) {
    super(client);
    const abort = (): void => this.abortWith("The caller aborted the call");
    this.abort = isWorkers() ? inThisRequest(abort) : abort;
    this.#key = key;
    this.#newest = newest;
    this.#older = newest.get(key);
    if (this.#older !== undefined) this.#older.#newer = this;
    newest.set(key, this);
  }

  /** The call of the same key that began before this one. */
  get older(): RunningCall | undefined {
    return this.#older;
  }

  /** The call has ended: no request can abort it now, and its client is let go. */
  override end(): void {
    super.end();
    const older = this.#older;
    const newer = this.#newer;
    if (newer !== undefined) newer.#older = older;
    else if (this.#newest.get(this.#key) !== this) return;
    else if (older !== undefined) this.#newest.set(this.#key, older);
    else this.#newest.delete(this.#key);
    if (older !== undefined) older.#newer = newer;
    // A second end finds no neighbours, and changes nothing.
    this.#older = this.#newer = undefined;
  }
}

/** The calls of one handler. */
export class RunningCalls {
  /** The newest call of each key; it leads to the others. */
  readonly #newest = new Map<string, RunningCall>();

  /** Adds a call, which is to be told when it has ended. */
  begin(key: CallKey, client: CallClient): RunningCall {
    return new RunningCall(this.#newest, textOf(key), client);
  }

  /**
   * Aborts a caller's calls of that name.
   *
   * @returns Whether there was one.
   */
  abort(key: CallKey): boolean {
    const newest = this.#newest.get(textOf(key));
    for (let call = newest; call !== undefined; call = call.older) call.abort();
    return newest !== undefined;
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
