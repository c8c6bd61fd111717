/**
 * The caller's side of plain calls: sends them to workers, and reads what comes back.
 *
 * @module
 */

import type { Msg, NatsConnection, Subscription } from "@nats-io/nats-core";
import { createInbox, nuid } from "@nats-io/nats-core";
import {
  type Clock,
  describeThrown,
  type HookLog,
  systemClock,
  type ToolContent,
  type ToolContext,
  type ToolFailure,
  ToolResult,
  type ToolRun,
} from "../../tool/mod.ts";
import type { Fleet } from "./fleet.ts";
import {
  type CallMessage,
  type Control,
  CREDIT_STEP,
  creditOf,
  type Frame,
  TICK_MS,
  TICKS_TO_ACCEPT,
  TICKS_TO_LOSE,
} from "./frames.ts";
import { GAP, logForged, openPart, Receiver, SEEN, Sender } from "./message.ts";
import type { Seal } from "./seal.ts";
import { callSubject, controlSubject } from "./subjects.ts";

/** What a call says. The time and its name are added. */
export type CallRequest = Omit<CallMessage, "id" | "time">;

/** Takes what a generator yields. Calls `taken` when there is room for more. */
export type TakeOutput = (value: unknown, taken: () => void) => void;

/** How one sending of a call ended without a result. */
interface Miss {
  /** It may have run: the worker is silent, or a part of its answer is missing. */
  readonly mayHaveRun: boolean;
  /** Something that it yielded was passed on: repeated, it would come twice. */
  readonly hasYielded?: boolean;
  /** What the worker said. */
  readonly why?: string;
  /** The result if no other worker takes the call. */
  readonly result?: ToolResult;
}

/** A call that a worker has. */
interface RunningCall {
  /** The id of the tool. */
  readonly tool: string;
  readonly worker: string;
  /** Where the call was sent. */
  readonly subject: string;
  readonly context: ToolContext;
  readonly output: TakeOutput;
  readonly receiver: Receiver;
  readonly control: Sender;
  /** How many ticks nothing was heard. */
  silence: number;
  /** It may run twice, so the worker begins without being told to. */
  readonly isRepeatable: boolean;
  /** The worker has answered. */
  isAccepted: boolean;
  /** Something that it yielded was passed on. */
  hasYielded: boolean;
  /** How many bytes of events were taken that credit was not given for. */
  taken: number;
  end(end: ToolResult | Miss): void;
}

/** How much of the reason of an abort is sent. */
const MAX_REASON = 500;
const GIVEN_UP: Control = { abort: "the caller has given up" };
/** How many calls of one process wait at most. */
const MAX_CALLS = 65_536;

/** Sends calls, and hears of them. */
export class RemoteCalls {
  readonly #connection: NatsConnection;
  readonly #seal: Seal;
  readonly #fleet: Fleet;
  readonly #log: HookLog;
  readonly #clock: Clock;
  readonly #lookAgain: (() => Promise<void>) | undefined;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #running: Map<string, RunningCall> = new Map();
  /** How many answers had wrong signatures. */
  #forged = 0;
  #stopTicking: (() => void) | undefined;
  /** Why no call can be sent now. */
  #down: string | undefined;

  /** @param lookAgain Looks once for other workers where those that are known do not take a call. */
  constructor(
    connection: NatsConnection,
    seal: Seal,
    fleet: Fleet,
    inbox: string,
    log: HookLog,
    lookAgain?: () => Promise<void>,
    clock: Clock = systemClock,
  ) {
    this.#lookAgain = lookAgain;
    this.#connection = connection;
    this.#seal = seal;
    this.#fleet = fleet;
    this.#log = log;
    this.#clock = clock;
    this.#inbox = `${createInbox(inbox)}.`;
    this.#subscription = connection.subscribe(`${this.#inbox}*`, {
      callback: (error, message) => {
        if (error === null) this.#hear(message);
        else log(error);
      },
    });
  }

  /**
   * Runs a call on a worker that serves the tool. Never rejects, unless the call is aborted: then with
   * the reason, once the tool has stopped.
   */
  async run(
    path: string,
    id: string,
    request: CallRequest,
    isRepeatable: boolean,
    context: ToolContext,
    output: TakeOutput,
  ): Promise<ToolResult> {
    let lookAgain = this.#lookAgain;
    const tried = new Set<string>();
    let last: Miss | undefined;
    let mayHaveRun = false;
    for (;;) {
      if (this.#down !== undefined) {
        const why = mayHaveRun ? `${this.#down}; it may have run` : this.#down;
        return unavailable(id, why, mayHaveRun ? "unknown" : "no");
      }
      if (this.#running.size >= MAX_CALLS) {
        return ToolResult.error("overloaded", `Cannot call "${id}": too many calls are waiting`, {
          ran: "no",
        });
      }
      let worker = this.#fleet.choose(path, tried);
      if (worker === undefined && lookAgain !== undefined) {
        await lookAgain().catch(this.#log);
        lookAgain = undefined;
        worker = this.#fleet.choose(path, tried);
      }
      if (worker === undefined) {
        if (last?.result !== undefined) return last.result;
        const why = tried.size === 0
          ? "no worker is there that serves it"
          : "no worker is there that takes it now";
        const said = last?.why === undefined ? "" : ` (${last.why})`;
        return mayHaveRun
          ? unavailable(id, `${why}${said}; it may have run`, "unknown")
          : unavailable(id, `${why}${said}; nothing has run`, "no");
      }
      tried.add(worker);
      const end = await this.#send(worker, path, id, request, isRepeatable, context, output);
      if (!("mayHaveRun" in end)) return end;
      context.throwIfAborted();
      mayHaveRun ||= end.mayHaveRun;
      if (end.mayHaveRun && (!isRepeatable || end.hasYielded)) {
        const why = `${this.#down ?? "its worker does not answer"}; it may have run`;
        return unavailable(id, why, "unknown");
      }
      // That one has no place says more than that others are gone.
      if (end.result !== undefined || last?.result === undefined) last = end;
    }
  }

  /** The connection was lost: what was on its way is not known. */
  disconnect(why: string): void {
    this.#down = why;
    for (const call of [...this.#running.values()]) this.#miss(call);
  }

  /** The server has refused a message of this user. */
  forbid(subject: string): void {
    for (const call of [...this.#running.values()]) {
      if (call.subject !== subject) continue;
      const why = `the user of the connection may not publish to "${subject}"; nothing has run`;
      call.end(ToolResult.error("unavailable", `Cannot call "${call.tool}": ${why}`, {
        retryable: false,
        ran: "no",
      }));
    }
  }

  reconnect(): void {
    this.#down = undefined;
  }

  stop(): void {
    this.disconnect("its registry is closed");
    this.#subscription.unsubscribe();
    this.#stopTicking?.();
  }

  #send(
    worker: string,
    path: string,
    tool: string,
    request: CallRequest,
    isRepeatable: boolean,
    context: ToolContext,
    output: TakeOutput,
  ): Promise<ToolResult | Miss> {
    const id = nuid.next();
    const subject = callSubject(worker, path);
    const { signal } = context;
    return new Promise((resolve, reject) => {
      const abort = (): void => this.#say(call, { abort: reasonOf(signal) });
      const call: RunningCall = {
        tool,
        worker,
        subject,
        context,
        output,
        receiver: new Receiver(),
        control: new Sender(this.#connection, this.#seal, controlSubject(worker, id)),
        silence: 0,
        isRepeatable,
        isAccepted: false,
        hasYielded: false,
        taken: 0,
        end: (end) => {
          if (!this.#running.delete(id)) return;
          signal.removeEventListener("abort", abort);
          this.#fleet.count(worker, -1);
          const isMiss = "mayHaveRun" in end;
          if (isMiss && end.mayHaveRun) this.#say(call, GIVEN_UP);
          if (!signal.aborted) resolve(end);
          // The dispatcher waits for a tool that has not stopped, and says that it has not.
          else if (isMiss || end.ok || end.error.acknowledged !== false) {
            reject(signal.reason);
          }
        },
      };
      this.#running.set(id, call);
      this.#fleet.count(worker, 1);
      this.#tick();
      try {
        const message: CallMessage = { id, time: this.#clock.timestamp(), ...request };
        new Sender(this.#connection, this.#seal, subject, this.#inbox + id).send(message);
      } catch (error) {
        this.#log(error);
        return call.end({ mayHaveRun: false, why: describeThrown(error) });
      }
      signal.addEventListener("abort", abort, { once: true });
      if (signal.aborted) abort();
    });
  }

  #hear(message: Msg): void {
    const id = message.subject.slice(this.#inbox.length);
    const call = this.#running.get(id);
    // The server says that the worker does not listen. Others can say so too, which does no harm: the
    // worker runs only what may run twice before this side has answered its signed `accepted`.
    if (message.data.byteLength === 0 && message.headers?.code === 503) {
      if (call?.isAccepted === false) this.#miss(call);
      return;
    }
    if (call === undefined) return this.#decline(message);
    const part = openPart(this.#seal, message);
    if (part === undefined) {
      return logForged(this.#log, "An answer of a worker has a wrong signature", ++this.#forged);
    }
    const frame = call.receiver.take(part);
    // Anyone who may publish to inboxes can send it again: it is no sign of life.
    if (frame === SEEN) return;
    call.silence = 0;
    if (frame === GAP) return this.#miss(call);
    call.isAccepted = true;
    if (frame !== undefined) this.#take(call, frame as Frame);
  }

  /** Tells a worker that a call which it has accepted late is not to be begun. */
  #decline(message: Msg): void {
    const { reply } = message;
    const part = reply === undefined ? undefined : openPart(this.#seal, message);
    if (reply === undefined || part?.sequence !== 0 || this.#down !== undefined) return;
    try {
      new Sender(this.#connection, this.#seal, reply).send(GIVEN_UP);
    } catch (error) {
      this.#log(error);
    }
  }

  /** Nothing is heard of a call's worker. */
  #miss(call: RunningCall): void {
    const { isRepeatable, isAccepted, hasYielded, worker } = call;
    this.#fleet.lose(worker);
    call.end({ mayHaveRun: isAccepted || isRepeatable, hasYielded });
  }

  #take(call: RunningCall, frame: Frame): void {
    const { context } = call;
    const credit = creditOf(call.receiver.bytes);
    switch (frame.type) {
      case "accepted":
        return this.#say(call, { go: true });
      case "metadata":
        call.hasYielded = true;
        context.metadata(frame.value);
        return this.#taken(call, credit);
      case "progress": {
        const { done, total, message } = frame.progress;
        context.progress(done, total, message);
        return this.#taken(call, credit);
      }
      case "output":
        call.hasYielded = true;
        return call.output(frame.value, () => this.#taken(call, credit));
      case "refused":
        return call.end({
          mayHaveRun: false,
          why: frame.why,
          ...(frame.result !== undefined && { result: resultOf({ result: frame.result }) }),
        });
      case "result":
        return call.end(resultOf(frame));
    }
  }

  /** Gives credit for what was taken. */
  #taken(call: RunningCall, credit: number): void {
    call.taken += credit;
    if (call.taken < CREDIT_STEP) return;
    this.#say(call, { credit: call.taken });
    call.taken = 0;
  }

  #say(call: RunningCall, control: Control): void {
    // A client keeps what it cannot send, and this is of no use later.
    if (this.#down !== undefined) return;
    try {
      call.control.send(control);
    } catch (error) {
      this.#log(error);
    }
  }

  /** Counts the silence of all calls, while there are some. */
  #tick(): void {
    this.#stopTicking ??= this.#clock.setTimeout(() => {
      this.#stopTicking = undefined;
      for (const call of [...this.#running.values()]) {
        const most = call.isAccepted || call.isRepeatable ? TICKS_TO_LOSE : TICKS_TO_ACCEPT;
        if (++call.silence > most) this.#miss(call);
      }
      if (this.#running.size > 0) this.#tick();
    }, TICK_MS);
  }
}

function unavailable(id: string, why: string, ran: ToolRun): ToolFailure {
  return ToolResult.error("unavailable", `Cannot call "${id}": ${why}`, { ran });
}

/** A worker's result, as one that a tool may return. */
export function resultOf({ result }: { readonly result: ToolResult }): ToolResult {
  if (result.ok) {
    const { truncated } = result;
    const cut = truncated === true ? { truncated } : {};
    if (result.blocks !== true) return Object.assign(ToolResult.ok(result.content), cut);
    const { content, ...more } = result.content as ToolContent;
    return Object.assign(ToolResult.blocks(content, more), cut);
  }
  const { code, message, ...more } = result.error;
  const { questions, ticket } = result;
  const failed = ToolResult.error(code, message, more);
  return questions === undefined || ticket === undefined
    ? failed
    : { ...failed, questions, ticket };
}

function reasonOf({ reason }: AbortSignal): string {
  const text = reason instanceof Error ? reason.message : String(reason);
  return text.slice(0, MAX_REASON);
}
