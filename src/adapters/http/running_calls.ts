/**
 * The running calls, which are aborted when their client leaves, or by another request. Also the
 * records of requests for their observers.
 */

import type { TraceParent } from "../../execute/mod.ts";
import { once, type QuickWait, type ToolResult, watchLater } from "../../tool/mod.ts";
import { IS_WORKERS } from "./runtime.ts";

/** The identity of a call. */
export interface CallKey {
  /** Callers without a principal count as one caller, as for idempotency keys. */
  readonly principal: string | undefined;
  /** Distinguishes two clients that both count their calls from 0. */
  readonly session?: string | undefined;
  /** The id as the client wrote it. */
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

  /** Aborts when the client leaves, or with {@linkcode abortWith}. */
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
    this.becameLong();
    const { signal } = this.#client;
    this.#leave = () => this.abortWith("The client has disconnected");
    if (signal.aborted) this.#leave();
    else signal.addEventListener("abort", this.#leave, { once: true });
    this.#whenLong?.();
  }

  /** Called once the call counts as long. */
  protected becameLong(): void {}
}

export class RunningCall extends ClientSignal {
  readonly #calls: RunningCalls;
  readonly key: CallKey;
  /** @ignore The index among the short calls. */
  index: number;
  /** @ignore Made by {@linkcode RunningCalls.begin}. */
  constructor(calls: RunningCalls, key: CallKey, index: number, client: CallClient) {
    super(client);
    this.#calls = calls;
    this.key = key;
    this.index = index;
    if (IS_WORKERS) this.abort = inThisRequest(this.abort.bind(this));
  }

  /** Aborts the call, from another request. */
  abort(): void {
    this.abortWith("The caller aborted the call");
  }

  override end(): void {
    super.end();
    this.#calls.remove(this);
  }

  protected override becameLong(): void {
    this.#calls.addLong(this);
  }
}

/**
 * The calls of one handler. Only long calls are stored by key: to write a key takes longer than a short
 * call. An abort searches the short calls, of which there are few at a time.
 */
export class RunningCalls {
  /** When a call ends, the last call takes its index. A Set takes 0.1 µs longer. */
  readonly #short: RunningCall[] = [];
  /** Several calls may have the same key, because clients may reuse an id. */
  readonly #long = new Map<string, Set<RunningCall>>();

  /** Adds a call; its `end` must be called once it has ended. */
  begin(key: CallKey, client: CallClient): RunningCall {
    const call = new RunningCall(this, key, this.#short.length, client);
    this.#short.push(call);
    return call;
  }

  /** @ignore */
  addLong(call: RunningCall): void {
    this.#removeShort(call);
    once(this.#long, textOf(call.key), () => new Set<RunningCall>()).add(call);
  }

  /** @ignore */
  remove(call: RunningCall): void {
    if (this.#removeShort(call) || this.#long.size === 0) return;
    const key = textOf(call.key);
    const calls = this.#long.get(key);
    if (calls?.delete(call) && calls.size === 0) this.#long.delete(key);
  }

  #removeShort(call: RunningCall): boolean {
    const short = this.#short;
    const { index } = call;
    if (short[index] !== call) return false;
    const last = short.pop();
    if (last === undefined || last === call) return true;
    short[index] = last;
    last.index = index;
    return true;
  }

  /** Aborts the calls with this key; returns false if there is none. */
  abort(key: CallKey): boolean {
    const text = textOf(key);
    const short = this.#short.filter((call) => textOf(call.key) === text);
    const found = [...this.#long.get(text) ?? [], ...short];
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

/** Written as JSON, so that no id chosen by a client can equal another caller's key. */
function textOf({ principal, session, callId }: CallKey): string {
  return JSON.stringify([principal ?? null, session ?? null, callId]);
}

/** One call of a request, for an access log. */
export interface AccessCall {
  /** The id in the request, even of an unknown tool; empty for a call that continues with a ticket. */
  readonly toolId: string;
  readonly callId: string;
  /** `ok`, or the code of its failure. `undefined` if it has not ended. */
  readonly outcome: string | undefined;
}

/** Observes a request. `answer` fills in the record of the request. */
export type RequestObserver = (
  request: Request,
  answer: () => Response | Promise<Response>,
) => Promise<Response>;

/** One call of a request, while it runs. */
export interface RequestCall {
  /** Records the first result only: the client may disconnect while the result is sent. */
  end(result: ToolResult): void;
}

interface RecordedCall extends AccessCall {
  outcome: string | undefined;
}

/** Longer than any tool id. */
const MAX_ID = 260;

/** The record of a request, for its observers. */
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

/** The record of each observed request. */
export const records: WeakMap<Request, RequestRecord> = new WeakMap();
