/** The dispatcher with all layers of plue, each chosen by an option. */

import { isToolHost, Registry, type ToolHost } from "../registry/mod.ts";
import type { SchemaEngine } from "../schema/mod.ts";
import { explainTool, type Toolset, type ToolSource } from "../select/mod.ts";
import {
  type Answers,
  type Check,
  checkPort,
  fail,
  isObject,
  nearText,
  noop,
  numberFrom,
  once,
  type OutputOverflow,
  systemClock,
  type ToolFailure,
  ToolResult,
} from "../tool/mod.ts";
import { chosenCallId } from "./call.ts";
import { inTime, resumptions } from "./context.ts";
import {
  type CallStarted,
  CONTINUE,
  Dispatcher,
  Kernel,
  nameIn,
  type SelectableToolHost,
  unreadable,
} from "./dispatcher.ts";
import { failure, notAvailable, unknownTool } from "./failures.ts";
import { type DispatcherOptions, MAKE, resolveSettings } from "./kernel_options.ts";
import type { Layer, Outcome } from "./layer.ts";
import { approval, type CallValidator, validators } from "./layers/approval.ts";
import { concurrencyLimit, type ConcurrencyLimits } from "./layers/concurrency_limit.ts";
import { emissions, failureNotice } from "./layers/emissions.ts";
import { hooks } from "./layers/hooks.ts";
import { hostContext } from "./layers/host_context.ts";
import type { IdempotencyOptions } from "./idempotency.ts";
import { idempotency } from "./layers/idempotency.ts";
import { questions, type QuestionsLayer } from "./layers/questions.ts";
import { repair } from "./layers/repair.ts";
import { telemetry } from "./layers/telemetry.ts";
import { truncation } from "./layers/truncation.ts";
import { transactions } from "./layers/transactions.ts";
import { type DispatcherMetrics, metrics, type MetricsLayer } from "./metrics.ts";
import type {
  Approver,
  CallTelemetry,
  RepairHook,
  ToolHooks,
  TransactionManager,
} from "./ports.ts";
import {
  type CallTickets,
  type DispatchContext,
  type ResumedCall,
  TICKET_RUN,
  type ToolCall,
} from "./request.ts";
import { streamCall, type ToolEvent } from "./stream.ts";

/** Options for {@linkcode ToolDispatcher}. */
export interface ToolDispatcherOptions extends DispatcherOptions {
  /**
   * Your layers. In each stage, they are inside the layers of plue: a layer of stage `run` runs
   * directly around the tool, in its transaction.
   */
  readonly layers?: readonly (Layer | readonly Layer[])[];
  /** Compiles schemas, for a toolset that was made of a list. A registry has its own engine. */
  readonly engine?: SchemaEngine;
  /** Opens transactions. If absent, tools that require one fail with `transaction_failed`. */
  readonly transactions?: TransactionManager;
  /** Hooks that run before and after every call. */
  readonly hooks?: ToolHooks | readonly ToolHooks[];
  /**
   * Repairs arguments that are invalid, or not JSON: `coerceArguments` of `@plue/tools/calls`, or a
   * function that calls a model or a library. Several repairs run in order, each once, until the
   * arguments are valid. The result lists the changes in `repaired`.
   */
  readonly repair?: RepairHook | readonly RepairHook[];
  /** Traces and measures every call: `openTelemetry` of `@plue/tools/telemetry` creates it. */
  readonly telemetry?: CallTelemetry;
  /** Rules for the arguments of every tool. */
  readonly validators?: readonly CallValidator[];
  /** Layers that decide on validated arguments: `rules` of `@plue/tools/rules` returns them. */
  readonly rules?: readonly [deciding: Layer, marking: Layer];
  /**
   * Decides on calls whose tool, policy or rule requires approval. `"ask"` asks the caller. Without
   * this option, such calls fail with `approval_required`.
   */
  readonly approve?: Approver | "ask";
  /**
   * Gets the credentials of callers, after all decisions: `credentials` of
   * `@plue/tools/credentials`. Without it, calls of tools with `credentials` fail.
   */
  readonly credentials?: Layer;
  /**
   * Suspends calls whose callers cannot answer immediately: `sealedTickets` or `storedTickets` of
   * `@plue/tools/calls`. Without this option, only callers with `onQuestion` can answer.
   */
  readonly tickets?: CallTickets;
  /** The time limit of the approver and of answers, in milliseconds. @default {600_000} */
  readonly approvalTimeoutMs?: number;
  /**
   * The handling of a text result that is larger than `maxOutputBytes`. Other results of this size
   * fail with `output_too_large`.
   *
   * @default {"fail"}
   */
  readonly outputOverflow?: OutputOverflow;
  /** Limits of running and queued calls. */
  readonly limits?: ConcurrencyLimits;
  /** Limits of the results that are stored for idempotency keys. */
  readonly idempotency?: IdempotencyOptions;
  /** The maximum of calls of one `dispatchAll`. Further calls fail (`overloaded`). @default {128} */
  readonly maxCallsPerBatch?: number;
  /**
   * The maximum number of unread events of a streamed call. At this number, a generator waits, and
   * metadata is dropped and counted. Only the newest progress is stored. An output counts as one
   * event per 16 KiB.
   *
   * @default {64}
   */
  readonly maxBufferedEvents?: number;
}

const OTHERS: readonly string[] =
  ("transactions hooks repair telemetry validators rules approve credentials approvalTimeoutMs " +
    "tickets outputOverflow limits idempotency engine maxCallsPerBatch maxBufferedEvents").split(
      " ",
    );

const checkCount: Check<number> = numberFrom(1);

/** The number of calls of a batch that begin in one turn of the event loop. */
const CALLS_PER_TURN = 8;

/**
 * The state that a dispatcher and its copies for other callers share: the layers of the options, in
 * the documented order. It also creates registries for lists of tools, and explains unknown names.
 */
class FullKernel extends Kernel {
  readonly metrics: MetricsLayer;
  readonly limit: { readonly queued: number };
  readonly questions: QuestionsLayer;
  readonly tickets: CallTickets | undefined;
  readonly traces: boolean;
  readonly maxCallsPerBatch: number;
  readonly maxBufferedEvents: number;
  readonly #engine: SchemaEngine | undefined;
  readonly #hosts: WeakMap<ToolSource, ToolHost> = new WeakMap();

  constructor(options: ToolDispatcherOptions, counted?: MetricsLayer) {
    // A second variable, because narrowing `options` would lose its type.
    const checked: unknown = options;
    if (!isObject(checked)) fail(MAKE, "the options must be an object");
    const { clock = systemClock, telemetry: port, tickets, repair: repairs = [] } = options;
    const { approvalTimeoutMs: timeoutMs, layers: own = [] } = options;
    checkPort(MAKE, "telemetry", port, ["begin"]);
    const counter = counted ?? metrics(clock);
    const repairing = [repairs].flat().length > 0 ? repair(repairs) : undefined;
    const questionLayers = questions({ tickets, timeoutMs, repair: repairing });
    const limit = concurrencyLimit(options.limits);
    const { before, after } = hooks(options.hooks);
    const layers: readonly (Layer | readonly Layer[])[] = [
      emissions(),
      port === undefined ? [] : telemetry(port),
      counter,
      failureNotice(),
      idempotency(options.idempotency, clock),
      after,
      hostContext(),
      repairing ?? [],
      before,
      validators(options.validators),
      options.rules?.[0] ?? [],
      approval(options.approve, { timeoutMs, questions: questionLayers }),
      options.credentials ?? [],
      options.rules?.[1] ?? [],
      limit,
      transactions(options.transactions),
      questionLayers,
      ...own,
      truncation(options.outputOverflow),
      // Innermost. Needed only with layers of the host, because only these may run a tool again.
      own.length > 0 ? questionLayers.again : [],
    ];
    super(resolveSettings({ ...options, layers }, OTHERS));
    this.tickets = tickets;
    this.traces = port !== undefined;
    this.#engine = options.engine;
    this.metrics = counter;
    this.limit = limit;
    this.questions = questionLayers;
    this.maxCallsPerBatch = checkCount(MAKE, options.maxCallsPerBatch ?? 128, "maxCallsPerBatch");
    this.maxBufferedEvents = checkCount(MAKE, options.maxBufferedEvents ?? 64, "maxBufferedEvents");
  }

  override hostOf({ source, bridge, name }: Toolset): ToolHost {
    if (isToolHost(source)) return source;
    return once(this.#hosts, source, () => {
      const engine = this.#engine ?? (bridge && this.hostOf(bridge.target).engine) ?? fail(
        `${MAKE} for the toolset "${name}"`,
        "it was made from a list; set the option engine",
      );
      // The registry has all tools of the list, so each tool is initialised once for all toolsets.
      return new Registry({ engine, tools: source.tools });
    });
  }

  override withToolset(toolset: Toolset): ToolDispatcher {
    return new ToolDispatcher(toolset, this as ToolDispatcherOptions);
  }

  override unknown(name: string, toolset: Toolset): ToolFailure {
    // A tool that is never available is in no toolset. Its calls fail like calls of a tool that is
    // currently unavailable.
    if (toolset.source.getTool(name)?.isAvailable === false) {
      const failed = toolset.explain(name, explainTool).steps.filter(({ passed }) => !passed);
      if (failed.every(({ step }) => step === "availability")) return notAvailable(name);
    }
    const ids = nearText(name, toolset.available().map(({ id }) => id));
    return unknownTool(name, ids && `. Did you mean ${ids}?`);
  }
}

/**
 * A {@linkcode Dispatcher} with all layers of plue, in the order of `@plue/tools/layers`. If a tool
 * ignores its signal, its transaction is rolled back and its cleanups run while it still runs.
 */
export class ToolDispatcher extends Dispatcher {
  override readonly traces: boolean;
  readonly #shared: FullKernel;

  /**
   * @param source The tools that may be called: a toolset, or a registry for all of its tools. A
   * registry may change later. Tools of a list have no services and no configuration, and their
   * `dispose` never runs: register tools that need these.
   * @throws {TypeError | RangeError} If an option is invalid, or if the toolset was created from a
   * list and there is no option `engine`.
   */
  constructor(source: Toolset | SelectableToolHost, options: ToolDispatcherOptions = {}) {
    // `withToolset` and `withOptions` pass the shared state instead of options.
    const shared = options instanceof FullKernel ? options : new FullKernel(options);
    super(source, shared as DispatcherOptions);
    this.#shared = shared;
    this.traces = shared.traces;
  }

  /**
   * Resumes a suspended call, in this process or in another process with the same tickets. The tool
   * runs again from its beginning, with the answers and the results of completed steps.
   *
   * The ticket is valid for its principal, until the ticket expires or the definition of the tool
   * changes. With a store, a ticket resumes its call only once. Without a store, a ticket can be
   * used repeatedly during its lifetime.
   *
   * @param answers The answers by question key. Questions without answers are repeated.
   * @param context The host's additions. Id, session, message and idempotency key stay the same.
   * @returns The result, or another suspended call. Never rejects.
   */
  resume(ticket: string, answers: Answers, context?: DispatchContext | null): Promise<ToolResult> {
    return this.dispatch({ ticket, answers }, context);
  }

  /**
   * Runs one call, and yields its events: any number of `metadata`, `progress` and `output` events,
   * then exactly one `result`. The call begins when the first event is read. Leaving the loop
   * aborts the call, and waits until it has ended. A generator runs only as fast as its output is
   * read.
   */
  stream(
    call: ToolCall | ResumedCall,
    context?: DispatchContext | null,
  ): AsyncIterableIterator<ToolEvent> {
    return streamCall(
      (streamed, started) => this.run(call, streamed, started),
      context ?? {},
      this.#shared.maxBufferedEvents,
      () => chosenCallId(call as ToolCall) ?? this.#shared.nextCallId(),
    );
  }

  /**
   * Runs a model's parallel calls.
   *
   * @param calls The calls. Calls beyond `maxCallsPerBatch` fail with `overloaded`.
   * @param context The host's additions to each call. The position of the call in the list is
   * appended to the idempotency key.
   * @returns The results, in the order of the calls. Rejects only if `calls` is not a list.
   */
  async dispatchAll(
    calls: readonly (ToolCall | ResumedCall)[],
    context?: DispatchContext | null,
  ): Promise<readonly ToolResult[]> {
    if (!Array.isArray(calls)) fail("dispatch calls", "the calls must be a list");
    const { maxCallsPerBatch } = this.#shared;
    const shared = context ?? {};
    const outcomes: Outcome[] = [];
    for (const [index, request] of ([...calls] as ToolCall[]).entries()) {
      if (index >= maxCallsPerBatch) {
        const why = `a batch has at most ${maxCallsPerBatch} calls; send the rest later`;
        const failed = failure("overloaded", nameIn(request), why);
        outcomes.push(this.#shared.endUnresolved(request, shared, failed));
        continue;
      }
      // Without a pause, calls without I/O would block the process until the last call has ended.
      if (index > 0 && index % CALLS_PER_TURN === 0) {
        await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, 0));
      }
      try {
        const { idempotencyKey: key } = shared;
        const own = key === undefined ? shared : { ...shared, idempotencyKey: `${key}#${index}` };
        outcomes.push(this.run(request, own));
      } catch {
        outcomes.push(unreadable(request, "context"));
      }
    }
    return await Promise.all(outcomes);
  }

  /**
   * Returns a dispatcher for another caller with other tools. It shares the options, limits,
   * idempotency keys and metrics of this dispatcher, and is cheap to create.
   *
   * @example Usage
   * ```ts
   * import assert from "node:assert/strict";
   * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
   *
   * const registry = new ToolRegistry({
   *   tools: [{ name: "rm", description: "Deletes.", risk: "high", execute: () => "deleted" }],
   * });
   * const dispatcher = new ToolDispatcher(registry);
   * const forGuests = dispatcher.withToolset(registry.select({ maxRisk: "low" }));
   *
   * assert.equal((await dispatcher.dispatch({ name: "rm" })).ok, true);
   * assert.equal((await forGuests.dispatch({ name: "rm" })).ok, false);
   * ```
   *
   * @throws {TypeError} If the toolset was created from a list, and there is no engine.
   */
  override withToolset(toolset: Toolset): ToolDispatcher {
    return this.#shared.withToolset(toolset);
  }

  /**
   * Returns a dispatcher with separate options, limits and keys but the same metrics, for a process
   * that receives calls in several ways. `queued` of the metrics omits its queued calls.
   *
   * @param source The tools that may be called, as in the constructor.
   * @throws {TypeError | RangeError} If an option is invalid.
   */
  withOptions(
    source: Toolset | SelectableToolHost,
    options: ToolDispatcherOptions,
  ): ToolDispatcher {
    const shared: unknown = new FullKernel(options, this.#shared.metrics);
    return new ToolDispatcher(source, shared as ToolDispatcherOptions);
  }

  /**
   * Returns a dispatcher with the same tools, limits and clock, but only these layers. It can preview
   * calls, with layers that end each call before its tool runs.
   */
  withLayers(layers: readonly Layer[]): Dispatcher {
    const kernel = new Kernel({ ...this.settings, layers });
    // A toolset that was created from a list has the registry of this dispatcher.
    kernel.hostOf = (toolset) => this.#shared.hostOf(toolset);
    return new Dispatcher(this.toolset, kernel as DispatcherOptions);
  }

  /** Counts and durations of the calls, per tool. JSON. */
  metrics(): DispatcherMetrics {
    return { ...this.#shared.metrics.snapshot(), queued: this.#shared.limit.queued };
  }

  protected override continueCall(
    request: ResumedCall,
    options: DispatchContext,
    started?: CallStarted,
  ): Outcome {
    const { tickets } = this.#shared;
    return tickets === undefined
      ? super.continueCall(request, options)
      : this.#resume(tickets, request, options, started);
  }

  async #resume(
    tickets: CallTickets,
    request: ResumedCall,
    options: DispatchContext,
    started: CallStarted | undefined,
  ): Promise<ToolResult> {
    const call = request as unknown as ToolCall;
    const { settings } = this;
    try {
      const pending = tickets.resume({
        request,
        principal: options.principal,
        context: options.context,
        findTool: (id) => this.toolset.resolve(id),
        now: settings.clock.timestamp(),
        run: options.services?.[TICKET_RUN],
      });
      const resumed = await inTime(settings, pending).catch((error) => {
        // Nothing has run, so a ticket that is found later stays valid.
        pending.then((late) => "ok" in late ? undefined : late.release()).catch(noop);
        throw error;
      });
      if ("ok" in resumed) return this.#shared.endUnresolved(call, options, resumed);
      resumptions.set(resumed.call, resumed);
      return await this.run(resumed.call, { ...options, ...resumed.context }, (created) => {
        this.#shared.questions.of(created);
        started?.(created);
      });
    } catch (error) {
      this.#shared.report(nameIn(call), "", "ask", error);
      const why = `${CONTINUE}its ticket cannot be looked up now; nothing has run`;
      return this.#shared.endUnresolved(call, options, ToolResult.error("unavailable", why));
    }
  }
}
