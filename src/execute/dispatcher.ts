/**
 * The dispatcher: runs calls against a toolset.
 *
 * @module
 */

import type { ToolHost } from "../registry/mod.ts";
import { nearIds, type Selection, type Toolset } from "../select/mod.ts";
import {
  type Answers,
  atOnce,
  clip,
  type FailureCode,
  isFunction,
  NO_LOG,
  refuse,
  TIME_OVER,
  type ToolFailure,
  ToolResult,
  within,
} from "../tool/mod.ts";
import { Call, chosenCallId } from "./call.ts";
import { type EventQueue, streamEvents, tellFailure, type ToolEvent } from "./events.ts";
import { failure, unknownTool } from "./failures.ts";
import type { DispatcherMetrics } from "./metrics.ts";
import { resolveSettings, type ToolDispatcherOptions } from "./options.ts";
import { CallQuestions } from "./questions.ts";
import type { DispatchContext, ResumedCall, ToolCall } from "./request.ts";
import { DispatcherState } from "./state.ts";
import type { Resumption } from "./suspension.ts";

const NO_CONTEXT: DispatchContext = Object.freeze({});
const EVERYTHING: Selection = Object.freeze({});

/**
 * Runs calls of the tools in a toolset: from a model's arguments to a result that is valid, or a
 * failure that the model can read. It never rejects and never throws for what a call does.
 *
 * The order is always the same: find the tool, is it available, read the arguments, its idempotency
 * key, make the tool ready, `before` hooks, schema, rules, approval, turn, transaction, run, check
 * the result, commit or roll back, cleanups, `after` hooks, count.
 *
 * A timeout or an abort ends the call as soon as the tool stops, and at the latest after `graceMs`,
 * also when the tool ignores its signal: `acknowledged` says which it was. What such a tool sends or
 * returns later is dropped; its transaction is rolled back and its cleanups run without it. A tool
 * that neither waits nor returns cannot be ended: JavaScript has one thread.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
 *
 * const add = defineTool({
 *   name: "add",
 *   description: "Adds two numbers.",
 *   parameters: {
 *     type: "object",
 *     properties: { a: { type: "number" }, b: { type: "number" } },
 *     required: ["a", "b"],
 *   },
 *   execute: ({ a, b }) => a + b,
 * });
 * const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [add] }));
 *
 * const sum = await dispatcher.dispatch({ name: "add", arguments: '{"a":2,"b":40}' });
 * assert.equal(sum.ok && sum.content, 42);
 *
 * const wrong = await dispatcher.dispatch({ name: "add", arguments: { a: 2 } });
 * assert.equal(!wrong.ok && wrong.error.code, "invalid_arguments");
 * ```
 */
export class ToolDispatcher {
  readonly #state: DispatcherState;
  /** A registry, which may change; `undefined` for a fixed toolset. */
  readonly #registry: SelectableToolHost | undefined;
  #toolset: Toolset;
  #host: ToolHost;

  /**
   * @param source The tools that may be called: a toolset, or a registry for all of its tools. A
   * registry is followed as it changes. Tools of a list have no services and no configuration, and
   * their `dispose` never runs: what needs those belongs in a registry.
   * @param options What the host adds.
   * @throws {TypeError | RangeError} If an option is wrong, or a toolset that was made from a list
   * comes without the option `engine`.
   */
  constructor(source: Toolset | SelectableToolHost, options: ToolDispatcherOptions = {}) {
    // A view of another dispatcher is handed its state instead of options.
    this.#state = options instanceof DispatcherState
      ? options
      : new DispatcherState(resolveSettings(options));
    if (!isToolset(source) && !isSelectable(source)) {
      refuse("make a dispatcher", "it needs a toolset or a registry");
    }
    if (isSelectable(source)) {
      this.#registry = source;
      this.#host = source;
      this.#toolset = atOnce(source.select(EVERYTHING));
    } else {
      this.#toolset = source;
      this.#host = this.#state.hostOf(source);
    }
  }

  /** The toolset that calls are resolved against now. */
  get toolset(): Toolset {
    const registry = this.#registry;
    if (registry !== undefined && registry.revision !== this.#toolset.revision) {
      this.#toolset = atOnce(registry.select(EVERYTHING));
    }
    return this.#toolset;
  }

  /** Whether calls are traced: only then does it look at the `trace` of their context. */
  get traces(): boolean {
    return this.#state.settings.telemetry !== undefined;
  }

  /** How large the arguments of a call may be, in bytes of JSON. */
  get maxArgumentBytes(): number {
    return this.#state.settings.maxArgumentBytes;
  }

  /** How many calls one `dispatchAll` takes. */
  get maxCallsPerBatch(): number {
    return this.#state.settings.maxCallsPerBatch;
  }

  /**
   * Runs one call.
   *
   * @param call What the model asks for, or a call that goes on.
   * @param context What the host adds; `null` adds nothing.
   * @returns The result. Never rejects.
   */
  dispatch(
    call: ToolCall | ResumedCall,
    context?: DispatchContext | null,
  ): Promise<ToolResult> {
    const result = this.#begin(call, context);
    return result instanceof Promise ? result : Promise.resolve(result);
  }

  /**
   * Continues a call that waited for answers, in this process or another one with the same tickets.
   * Its tool runs again from its beginning, with the answers and the steps that were taken.
   *
   * The ticket is good for the principal that it was given to, until it expires, and as long as the
   * definition of the tool is the same. With a store it continues its call once; without one it may
   * be used again while it lives.
   *
   * @example Usage
   * ```ts
   * import assert from "node:assert/strict";
   * import { isSuspended, ToolDispatcher, ToolRegistry } from "@plue/tools";
   * import { memoryCallStore, storedTickets } from "@plue/tools/calls";
   *
   * const registry = new ToolRegistry({
   *   tools: [{
   *     name: "launch",
   *     description: "Launches it.",
   *     requiresApproval: true,
   *     execute: () => "launched",
   *   }],
   * });
   * const dispatcher = new ToolDispatcher(registry, {
   *   approve: "ask",
   *   tickets: storedTickets(memoryCallStore()),
   * });
   *
   * const waiting = await dispatcher.dispatch({ name: "launch" }, { principal: "ann" });
   * assert.ok(isSuspended(waiting));
   * const [question] = waiting.questions;
   * assert.equal(question?.message, 'Run the tool "launch"?');
   *
   * const answers = { [question.key]: { action: "accept" } } as const;
   * const result = await dispatcher.resume(waiting.ticket, answers, { principal: "ann" });
   * assert.equal(result.ok && result.content, "launched");
   * ```
   *
   * @param ticket What the suspended call gave.
   * @param answers By the keys of the questions. A question without an answer is asked again.
   * @param context What the host adds. The call keeps its id, session, message and idempotency key.
   * @returns The result, or another suspended call. Never rejects.
   */
  resume(
    ticket: string,
    answers: Answers,
    context?: DispatchContext | null,
  ): Promise<ToolResult> {
    return this.dispatch({ ticket, answers }, context);
  }

  /**
   * Runs one call, and says what happens meanwhile: any number of `metadata`, `progress` and
   * `output` events, then exactly one `result`. The call begins when the first event is asked for.
   * Leaving the loop aborts the call, and waits until it has ended. A generator runs only as fast as
   * its output is taken.
   *
   * @example Usage
   * ```ts
   * import assert from "node:assert/strict";
   * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
   *
   * const count = defineTool({
   *   name: "count",
   *   description: "Counts to three.",
   *   async *execute() {
   *     for (const number of [1, 2, 3]) yield number;
   *     return "done";
   *   },
   * });
   * const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [count] }));
   *
   * const types: string[] = [];
   * for await (const event of dispatcher.stream({ name: "count" })) types.push(event.type);
   * assert.deepEqual(types, ["output", "output", "output", "result"]);
   * ```
   */
  stream(
    call: ToolCall | ResumedCall,
    context?: DispatchContext | null,
  ): AsyncIterableIterator<ToolEvent, undefined> {
    return streamEvents(
      this.#state.settings.maxBufferedEvents,
      (queue) => this.#resolve(call, context, queue),
      () => this.#idOf(call),
    );
  }

  /**
   * Runs a model's parallel calls.
   *
   * @example Usage
   * ```ts
   * import assert from "node:assert/strict";
   * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
   *
   * const registry = new ToolRegistry({
   *   tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
   * });
   * const dispatcher = new ToolDispatcher(registry);
   * const results = await dispatcher.dispatchAll([{ name: "ping" }, { name: "pong" }]);
   *
   * assert.deepEqual(results.map((result) => result.ok ? result.content : result.error.code), [
   *   "pong",
   *   "unknown_tool",
   * ]);
   * ```
   *
   * @param calls The calls. Those beyond `maxCallsPerBatch` fail with `overloaded`.
   * @param context What the host adds to each. An idempotency key is made one key per call, by
   * its place in the list.
   * @returns The results, in the order of the calls. Rejects only if `calls` is no list.
   */
  async dispatchAll(
    calls: readonly (ToolCall | ResumedCall)[],
    context?: DispatchContext | null,
  ): Promise<readonly ToolResult[]> {
    if (!Array.isArray(calls)) refuse("dispatch calls", "they must be a list");
    const { maxCallsPerBatch } = this;
    const shared = context ?? NO_CONTEXT;
    return await Promise.all(calls.map((call: ToolCall | ResumedCall, index) => {
      if (index >= maxCallsPerBatch) {
        const why = `more than ${maxCallsPerBatch} calls at once; send the rest later`;
        return this.#refuse(call, shared, failure("overloaded", clip(nameOf(call) ?? ""), why));
      }
      try {
        return this.#begin(call, ofPlace(shared, index));
      } catch {
        return failure("threw", clip(nameOf(call) ?? ""), "its context cannot be read");
      }
    }));
  }

  /**
   * A dispatcher for another caller, who sees other tools. It shares this one's options, limits,
   * idempotency keys and metrics, and costs next to nothing.
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
   * @throws {TypeError} If the toolset was made from a list, and there is no engine.
   */
  withToolset(toolset: Toolset): ToolDispatcher {
    return new ToolDispatcher(toolset, this.#state as ToolDispatcherOptions);
  }

  /**
   * A dispatcher with options, limits and keys of its own, whose calls are counted with these: both
   * have the same metrics. For a process that takes calls in several ways. Calls that wait for their
   * turn there are not counted.
   *
   * @param source The tools that may be called, as the constructor takes them.
   * @throws {TypeError | RangeError} If an option is wrong.
   */
  withOptions(
    source: Toolset | SelectableToolHost,
    options: ToolDispatcherOptions,
  ): ToolDispatcher {
    const state = new DispatcherState(resolveSettings(options), this.#state);
    return new ToolDispatcher(source, state as ToolDispatcherOptions);
  }

  /** Counts and durations of the calls, per tool. JSON. */
  metrics(): DispatcherMetrics {
    return this.#state.counter.metrics();
  }

  /** Sets the metrics back to zero. Calls that are under way stay counted as such. */
  resetMetrics(): void {
    this.#state.counter.resetMetrics();
  }

  #begin(
    request: ToolCall | ResumedCall,
    context?: DispatchContext | null,
  ): ToolResult | Promise<ToolResult> {
    const call = this.#resolve(request, context);
    return call instanceof Promise ? call.then(run) : run(call);
  }

  /** Makes the call of a ticket, or says why it does not go on. */
  async #resume(
    request: ResumedCall,
    options: DispatchContext,
    events: EventQueue | undefined,
  ): Promise<Call | ToolFailure> {
    const { tickets, clock, closeTimeoutMs } = this.#state.settings;
    let resumed: Resumption | ToolFailure;
    try {
      const asked = tickets?.resume({
        request,
        principal: options.principal,
        findTool: (id) => this.toolset.resolve(id),
        now: clock.timestamp(),
      });
      const answer = asked && await within(clock, closeTimeoutMs, asked);
      if (answer === TIME_OVER) {
        // Nothing has run, so the ticket stays good.
        asked?.then((late) => "ok" in late ? undefined : late.release()).catch(NO_LOG);
        refuse("use the ticket", "it took too long");
      }
      resumed = answer ?? cannotContinue("ticket_refused", "the option tickets is not set");
    } catch (error) {
      this.#state.report(nameOf(request) ?? "", "", "ask", error);
      const why = "its ticket cannot be looked up now; nothing has run";
      resumed = cannotContinue("unavailable", why);
    }
    if ("ok" in resumed) return this.#refuse(request, options, resumed);
    const call = await this.#resolve(resumed.call, { ...options, ...resumed.context }, events);
    if (call instanceof Call) {
      call.questions = new CallQuestions(call, resumed);
      call.repaired = resumed.repaired;
      call.resumed = true;
    }
    return call;
  }

  /** Makes a call of the tool that is named, or says why there is none. */
  #resolve(
    request: ToolCall | ResumedCall,
    context?: DispatchContext | null,
    events?: EventQueue,
  ): Call | ToolFailure | Promise<Call | ToolFailure> {
    const name = nameOf(request);
    const options = context ?? NO_CONTEXT;
    // A bridge leads a call that goes on as it leads the others.
    const call = request as ToolCall;
    let failed: ToolFailure;
    try {
      const toolset = this.toolset;
      const { bridge } = toolset;
      const led = bridge?.lead(call, this.#state.settings.maxArgumentBytes);
      if (bridge && led) return this.withToolset(bridge.behind).#resolve(led, context, events);
      if (name === null) return this.#resume(request as ResumedCall, options, events);
      const tool = name === undefined ? undefined : toolset.resolve(name);
      if (tool !== undefined) {
        const plan = this.#state.planOf(tool, this.#host);
        if (tool.id !== name) plan.stats.countAlias();
        return new Call(this.#state, toolset, this.#host, plan, call, options, events);
      }
      this.#state.counter.unknown++;
      failed = name === undefined
        ? ToolResult.error(
          "unknown_tool",
          "Cannot call a tool: the call names none; decodeCalls() reads what a provider sent",
        )
        : unknownTool(name, nearIds(name, toolset.available().map(({ id }) => id)));
    } catch {
      // Only a toolset or a registry that the host wrote itself can throw here.
      failed = failure("threw", clip(name ?? ""), "its toolset cannot be read");
    }
    return this.#refuse(request, options, failed);
  }

  /** Ends a call before it has begun, and tells its host as of any other failure. */
  #refuse(
    request: ToolCall | ResumedCall,
    context: DispatchContext,
    result: ToolFailure,
  ): ToolFailure {
    const name = nameOf(request) ?? "";
    tellFailure(context, name, result, (error) => {
      this.#state.report(name, this.#idOf(request), "metadata", error);
    });
    return result;
  }

  #idOf(request: ToolCall | ResumedCall): string {
    return chosenCallId(request as Partial<ToolCall>) ?? this.#state.nextCallId();
  }
}

function run(call: Call | ToolFailure): ToolResult | Promise<ToolResult> {
  return call instanceof Call ? call.run() : call;
}

function cannotContinue(code: FailureCode, why: string): ToolFailure {
  return ToolResult.error(code, `Cannot continue the call: ${why}`);
}

/** The context of one of several calls: a key for all becomes a key for each. */
function ofPlace(context: DispatchContext, index: number): DispatchContext {
  const { idempotencyKey: key } = context;
  return key === undefined ? context : { ...context, idempotencyKey: `${key}#${index}` };
}

/** The name of the tool; `null` for a call that goes on, whose ticket has it. */
function nameOf(
  call: Partial<ToolCall & ResumedCall> | null | undefined,
): string | null | undefined {
  try {
    if (call?.ticket !== undefined) return null;
    const name: unknown = call?.name;
    return typeof name === "string" ? name : undefined;
  } catch {
    return undefined;
  }
}

/** A registry, as the dispatcher needs it: tools that it can run and select from. */
export interface SelectableToolHost extends ToolHost {
  select(selection?: Selection): Toolset;
}

function isSelectable(source: unknown): source is SelectableToolHost {
  const { select, acquire } = (source ?? {}) as Partial<SelectableToolHost>;
  return isFunction(select) && isFunction(acquire);
}

/** Whether `source` is a toolset. Not `instanceof`: another copy of plue may have made it. */
function isToolset(source: unknown): source is Toolset {
  const { get, isAvailable, tools } = (source ?? {}) as Partial<Toolset>;
  return isFunction(get) && isFunction(isAvailable) && Array.isArray(tools);
}
