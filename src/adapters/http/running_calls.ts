/**
 * The running calls, which are aborted when their client leaves, or by another request. Also the
 * records of requests for their observers.
 */

import type { TraceParent } from "../../execute/mod.ts";
import { type QuickWait, type ToolResult, watchLater } from "../../tool/mod.ts";
import { IS_WORKERS } from "./runtime.ts";

export interface CallKey {
  /** Callers without a principal count as one caller, as for idempotency keys. */
  readonly principal: string | undefined;
  /** Distinguishes two clients that both count their calls from 0. */
  readonly session?: string | undefined;
  readonly callId: unknown;
}

/** The client of a call, such as its request. The signal aborts when the client leaves. */
export type CallClient = Pick<Request, "signal">;

/**
 * The number of turns of the microtask queue after which a call counts as long. An async tool without
 * I/O has ended by then.
 */
const TURNS_OF_A_SHORT_CALL = 12;

/**
 * Aborts when a client leaves. It costs almost nothing until its signal is read: Node and Deno
 * create the signal of a request on first use.
 */
export class ClientSignal implements CallClient, QuickWait<unknown> {
  readonly #client: CallClient;
  #isLong = false;
  #hasEnded = false;
  #controller: AbortController | undefined;
  #leave: (() => void) | undefined;
  #whenLong: (() => void) | undefined;

  constructor(client: CallClient) {
    this.#client = client;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      watchLater(this, undefined, TURNS_OF_A_SHORT_CALL);
    }
    return this.#controller.signal;
  }

  abortWith(why: string): void {
    this.#controller ??= new AbortController();
    this.#controller.abort(new DOMException(why, "AbortError"));
  }

  /** Calls `work` when the call counts as long. A call counts as long only after its signal was read. */
  whenLong(work: () => void): void {
    if (this.#isLong) work();
    else this.#whenLong = work;
  }

  /** Ends the call, and removes its listener: Deno aborts a request's signal after the response. */
  end(): void {
    this.#hasEnded = true;
    if (this.#leave !== undefined) this.#client.signal.removeEventListener("abort", this.#leave);
  }

  waitsFor(): boolean {
    return !this.#hasEnded;
  }

  /** Listens to the client once the call counts as long: no runtime reports a disconnect earlier. */
  watch(): void {
    this.#isLong = true;
    const { signal } = this.#client;
    this.#leave = () => this.abortWith("The client has disconnected");
    if (signal.aborted) this.#leave();
    else signal.addEventListener("abort", this.#leave, { once: true });
    this.#whenLong?.();
  }
}

export class RunningCall extends ClientSignal {
  readonly key: CallKey;
  readonly #calls: Set<RunningCall>;

  /** @ignore Made by {@linkcode RunningCalls.begin}. */
  constructor(calls: Set<RunningCall>, key: CallKey, client: CallClient) {
    super(client);
    this.key = key;
    this.#calls = calls;
    if (IS_WORKERS) this.abort = inThisRequest(this.abort.bind(this));
  }

  abort(): void {
    this.abortWith("The caller aborted the call");
  }

  override end(): void {
    super.end();
    this.#calls.delete(this);
  }
}

/** The calls of one handler. An abort searches all of them, because a key takes each call longer. */
export class RunningCalls {
  readonly #calls: Set<RunningCall> = new Set();

  /** Adds a call; its `end` must be called once it has ended. */
  begin(key: CallKey, client: CallClient): RunningCall {
    const call = new RunningCall(this.#calls, key, client);
    this.#calls.add(call);
    return call;
  }

  /** Aborts the calls with this key, of which clients may use several; false if there is none. */
  abort({ principal, session, callId }: CallKey): boolean {
    const found = [...this.#calls].filter(({ key }) =>
      key.principal === principal && key.session === session && key.callId === callId
    );
    for (const call of found) call.abort();
    return found.length > 0;
  }
}

/**
 * Returns a function that runs `work` in the current request, even if another request calls it, as
 * workerd requires. The function only resolves a promise, on which the current request waits.
 */
function inThisRequest(work: () => void): () => void {
  // `Promise.withResolvers` does not exist in Node 20.
  let begin = (): void => {};
  void new Promise<void>((resolve) => {
    begin = resolve;
  }).then(work);
  return begin;
}

/** One call of a request, for an access log. */
export interface AccessCall {
  /** The id in the request, even of an unknown tool; empty for a call that continues with a ticket. */
  readonly toolId: string;
  readonly callId: string;
  /** `ok`, or the code of its failure. `undefined` if it has not ended. */
  readonly outcome: string | undefined;
}

export type RequestObserver = (
  request: Request,
  answer: () => Response | Promise<Response>,
) => Promise<Response>;

export interface RequestCall {
  /** Records the first result only: the client may disconnect while the result is sent. */
  end(result: ToolResult): void;
}

interface RecordedCall extends AccessCall {
  outcome: string | undefined;
}

/** Longer than any tool id. */
const MAX_ID = 260;

export class RequestRecord {
  /** The pattern of the route, such as `/tools/:id`. */
  route: string | undefined;
  principal: string | undefined;
  readonly calls: RecordedCall[] = [];
  /** The span of the call, if the request has one call. */
  span: TraceParent | undefined;
  /** Resolves when a stream has ended; `undefined` for a response that is not a stream. */
  ended: Promise<void> | undefined;

  addCall(toolId: string, callId: string): RequestCall {
    const call: RecordedCall = { toolId: toolId.slice(0, MAX_ID), callId, outcome: undefined };
    this.calls.push(call);
    return {
      end(result) {
        call.outcome ??= result.ok ? "ok" : result.error.code;
      },
    };
  }

  began(span: TraceParent): void {
    this.span = this.calls.length === 1 ? span : undefined;
  }
}

export const records: WeakMap<Request, RequestRecord> = new WeakMap();
