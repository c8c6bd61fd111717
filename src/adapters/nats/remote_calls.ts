/** The caller's side of plain calls: sends them to workers, receives their events and results. */

import { createInbox, type Msg, type Subscription } from "@nats-io/nats-core";
import {
  brandResult,
  callHook,
  describeThrown,
  isToolResult,
  systemClock,
  type ToolContext,
  type ToolFailure,
  type ToolResult,
  type ToolRun,
} from "../../tool/mod.ts";
import { failure } from "../../execute/mod.ts";
import type { Fleet } from "./fleet.ts";
import * as protocol from "./protocol.ts";
import { Sender } from "./protocol.ts";
import type { Link } from "./link.ts";

export type CallRequest = Omit<protocol.CallMessage, "id" | "time">;

/** A call of a tool, for any worker that serves its definition. */
export interface RemoteCall {
  readonly tool: string;
  readonly path: string;
  readonly request: CallRequest;
  /** True if the tool may run twice, so that a worker starts without a confirmation. */
  readonly isRepeatable: boolean;
  readonly context: ToolContext;
  /** Receives an output of a generator. Calls `taken` when the output was consumed. */
  output(value: unknown, taken: () => void): void;
}

/** The end of one attempt to send a call, without a result. */
interface Miss {
  /** True if the call may have run: the worker is silent, or a part of its answer is missing. */
  readonly mayHaveRun: boolean;
  /** True if an output or metadata was passed on: a repetition would duplicate it. */
  readonly hasYielded?: boolean;
  readonly why?: string;
  /** The result if no other worker accepts the call. */
  readonly result?: ToolResult;
}

interface RunningCall extends RemoteCall {
  readonly worker: string;
  readonly subject: string;
  readonly receiver: protocol.Receiver;
  readonly control: Sender;
  silence: number;
  isAccepted: boolean;
  hasYielded: boolean;
  taken: number;
  granted: number;
  end(end: ToolResult | Miss): void;
}

const MAX_REASON = 500;
const GIVEN_UP: protocol.Control = { abort: "the caller has given up" };
const MAX_CALLS = 65_536;

export class RemoteCalls {
  readonly #link: Link;
  readonly #fleet: Fleet;
  readonly #refresh: (() => Promise<void>) | undefined;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #running: Map<string, RunningCall> = new Map();
  #stopTicking: (() => void) | undefined;

  /** @param refresh Reads the list of workers again if the known workers do not accept a call. */
  constructor(link: Link, fleet: Fleet, inbox: string, refresh?: () => Promise<void>) {
    this.#refresh = refresh;
    this.#link = link;
    this.#fleet = fleet;
    this.#inbox = `${createInbox(inbox)}.`;
    this.#subscription = link.listen(`${this.#inbox}*`, (message) => this.#receive(message));
    link.follow({
      // These calls may have run.
      down: () => {
        for (const call of [...this.#running.values()]) this.#miss(call);
      },
      forbidden: (subject) => this.#forbid(subject),
    });
  }

  /** Runs a call on a worker that serves the tool. Does not end before the tool of an aborted call. */
  async run(call: RemoteCall): Promise<ToolResult> {
    const { tool: id, path, isRepeatable, context } = call;
    let refresh = this.#refresh;
    const tried = new Set<string>();
    let last: Miss | undefined;
    let mayHaveRun = false;
    for (;;) {
      if (this.#link.down !== undefined) {
        const why = mayHaveRun ? `${this.#link.down}; the tool may have run` : this.#link.down;
        return unavailable(id, why, mayHaveRun ? "unknown" : "no");
      }
      if (this.#running.size >= MAX_CALLS) {
        return failure("overloaded", id, "too many calls are waiting", { ran: "no" });
      }
      let worker = this.#fleet.choose(path, tried);
      if (worker === undefined && refresh !== undefined) {
        await refresh().catch(this.#link.log);
        refresh = undefined;
        worker = this.#fleet.choose(path, tried);
      }
      if (worker === undefined) {
        if (last?.result !== undefined) return afterMiss(last.result, mayHaveRun);
        const what = tried.size === 0 ? "serves the tool" : "accepts the call now";
        const reason = last?.why === undefined ? "" : ` (${last.why})`;
        const [ran, outcome] = mayHaveRun
          ? ["unknown", "the tool may have run"] as const
          : ["no", "nothing has run"] as const;
        return unavailable(id, `there is no worker that ${what}${reason}; ${outcome}`, ran);
      }
      tried.add(worker);
      const end = await this.#send(worker, call);
      if (!("mayHaveRun" in end)) return afterMiss(end, mayHaveRun);
      mayHaveRun ||= end.mayHaveRun;
      if (context.signal.aborted) return aborted(id, mayHaveRun ? "unknown" : "no");
      if (end.mayHaveRun && (!isRepeatable || end.hasYielded)) {
        const why = `${this.#link.down ?? "the worker does not answer"}; the tool may have run`;
        return unavailable(id, why, "unknown");
      }
      // The rejection of a busy worker is a better result than the absence of another one.
      if (end.result !== undefined || last?.result === undefined) last = end;
    }
  }

  #forbid(subject: string): void {
    for (const call of [...this.#running.values()]) {
      // If a worker has accepted the call, it was sent before the permission was removed.
      if (call.subject !== subject || call.isAccepted) continue;
      const ran = call.isRepeatable ? "unknown" : "no";
      const outcome = call.isRepeatable ? "the tool may have run" : "nothing has run";
      const why = `the user of the connection may not publish to "${subject}"; ${outcome}`;
      call.end(failure("unavailable", call.tool, why, { retryable: false, ran }));
    }
  }

  /** Ends the calls, after its link has ended. */
  stop(): void {
    this.#subscription.unsubscribe();
    this.#stopTicking?.();
  }

  #send(worker: string, remote: RemoteCall): Promise<ToolResult | Miss> {
    // The id is random, because another caller that guessed it could receive this call's answers.
    const id = crypto.randomUUID();
    const { connection, seal, log } = this.#link;
    const { request, context: { signal } } = remote;
    const subject = protocol.callSubject(worker, remote.path);
    return new Promise((resolve) => {
      const abort = (): void => this.#control(call, { abort: reasonOf(signal) });
      const call: RunningCall = {
        ...remote,
        worker,
        subject,
        receiver: new protocol.Receiver(),
        control: new Sender(connection, seal, protocol.controlSubject(worker, id)),
        ...{ silence: 0, isAccepted: false, hasYielded: false, taken: 0, granted: 0 },
        end: (end) => {
          if (!this.#running.delete(id)) return;
          signal.removeEventListener("abort", abort);
          this.#fleet.count(worker, -1);
          const isMiss = "mayHaveRun" in end;
          if (isMiss && end.mayHaveRun) this.#control(call, GIVEN_UP);
          // After an abort, a tool that has not stopped leaves this promise pending: the caller's
          // dispatcher waits for `graceMs`, and returns `acknowledged: false`.
          const hasStopped = isMiss || end.ok || end.error.acknowledged !== false;
          if (!signal.aborted || hasStopped) resolve(end);
        },
      };
      this.#running.set(id, call);
      this.#fleet.count(worker, 1);
      this.#tick();
      try {
        const message: protocol.CallMessage = { id, time: systemClock.timestamp(), ...request };
        new Sender(connection, seal, subject, this.#inbox + id).send(message);
      } catch (error) {
        log(error);
        return call.end({ mayHaveRun: false, why: describeThrown(error) });
      }
      signal.addEventListener("abort", abort, { once: true });
      if (signal.aborted) abort();
    });
  }

  #receive(message: Msg): void {
    const id = message.subject.slice(this.#inbox.length);
    const call = this.#running.get(id);
    // The server reports that the worker has no subscription. A fake report does no harm: before
    // the caller has confirmed `accepted`, only a tool that may run twice has started.
    if (message.data.byteLength === 0 && message.headers?.code === 503) {
      if (call?.isAccepted === false) this.#miss(call);
      return;
    }
    if (call === undefined) return this.#decline(id, message);
    // Ignores other workers: another caller may have given them this reply subject.
    if (message.reply !== protocol.controlSubject(call.worker, id)) return;
    const part = protocol.openPart(this.#link.seal, message);
    if (part === undefined) {
      return this.#link.logForged("An answer of a worker has a wrong signature");
    }
    const frame = call.receiver.take(part);
    // A replayed message, which anyone who may publish to inboxes can send, is not a heartbeat.
    if (frame === protocol.SEEN) return;
    call.silence = 0;
    if (frame === protocol.GAP) return this.#miss(call);
    call.isAccepted = true;
    if (frame !== undefined) this.#take(call, frame as protocol.Frame);
  }

  /** Aborts a call that a worker has accepted too late. */
  #decline(id: string, message: Msg): void {
    const { reply = "" } = message;
    const [, , , worker = ""] = reply.split(".");
    if (reply !== protocol.controlSubject(worker, id) || this.#link.down !== undefined) return;
    if (protocol.openPart(this.#link.seal, message)?.sequence !== 0) return;
    const { connection, seal, log } = this.#link;
    callHook(() => new Sender(connection, seal, reply).send(GIVEN_UP), log);
  }

  #miss(call: RunningCall): void {
    const { isRepeatable, isAccepted, hasYielded, worker } = call;
    this.#fleet.lose(worker);
    call.end({ mayHaveRun: isAccepted || isRepeatable, hasYielded });
  }

  #take(call: RunningCall, frame: protocol.Frame): void {
    const { context } = call;
    const credit = protocol.creditOf(call.receiver.bytes);
    switch (frame.type) {
      case "accepted":
        return this.#control(call, { go: true });
      case "beat":
        // The message may have been lost while the worker connected again, so it is repeated.
        if (context.signal.aborted) this.#control(call, { abort: reasonOf(context.signal) });
        else if (call.granted > 0) this.#control(call, { credit: 0, granted: call.granted });
        return;
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
      case "refused": {
        const result = frame.result && adopt(frame.result);
        // Another worker would repeat outputs that the caller has already received.
        if (call.hasYielded && result !== undefined) return call.end(result);
        return call.end({ mayHaveRun: false, why: frame.why, ...(result && { result }) });
      }
      case "result":
        return call.end(adopt(frame.result));
    }
  }

  #taken(call: RunningCall, credit: number): void {
    call.taken += credit;
    if (call.taken < protocol.CREDIT_STEP) return;
    call.granted += call.taken;
    this.#control(call, { credit: call.taken, granted: call.granted });
    call.taken = 0;
  }

  #control(call: RunningCall, control: protocol.Control): void {
    // Without a connection, the client would buffer this message and send it too late.
    if (this.#link.down !== undefined) return;
    callHook(() => call.control.send(control), this.#link.log);
  }

  #tick(): void {
    this.#stopTicking ??= systemClock.setTimeout(() => {
      this.#stopTicking = undefined;
      for (const call of [...this.#running.values()]) {
        const most = call.isAccepted || call.isRepeatable
          ? protocol.TICKS_TO_LOSE
          : protocol.TICKS_TO_ACCEPT;
        if (++call.silence > most) this.#miss(call);
      }
      if (this.#running.size > 0) this.#tick();
    }, protocol.TICK_MS);
  }
}

export function unavailable(id: string, why: string, ran: ToolRun): ToolFailure {
  return failure("unavailable", id, why, { ran });
}

/** The result of an aborted call. Its `ran` informs the dispatcher whether the tool has run. */
export function aborted(id: string, ran: ToolRun | undefined): ToolFailure {
  return failure("aborted", id, "the call was aborted", { ran });
}

/** Returns the result. If another worker may have run the call, `ran` is not "no". */
export function afterMiss(result: ToolResult, mayHaveRun: boolean): ToolResult {
  if (!mayHaveRun || result.ok || result.error.ran !== "no") return result;
  return adopt({ ...result, error: { ...result.error, ran: "unknown" } });
}

export function adopt(result: ToolResult): ToolResult {
  if (!isToolResult(result)) brandResult(result);
  return result;
}

function reasonOf({ reason }: AbortSignal): string {
  const text = reason instanceof Error ? reason.message : String(reason);
  return text.slice(0, MAX_REASON);
}
