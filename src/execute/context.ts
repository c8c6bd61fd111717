/**
 * The context of a tool, the information about a call for hooks, rules and approvers, and helpers
 * that call functions of the host.
 */

import {
  type Answer,
  defined,
  fail,
  noop,
  type QuestionFields,
  type Services,
  TIME_OVER,
  type Tool,
  type ToolContext,
  type Transaction,
  within,
} from "../tool/mod.ts";
import { frozenCopy } from "./json_value.ts";
import type { Call, CallSettings, DispatchPhase, Layer } from "./layer.ts";
import type { CallInfo } from "./ports.ts";
import type { Resumption, ToolCall } from "./request.ts";

/**
 * The context of one call. Members are created when they are first read. Every member is a getter,
 * so a tool can destructure the context: `execute(params, { signal, progress })`. Layers implement
 * the members that do nothing here, such as `progress`.
 */
export class CallContext implements ToolContext<never, never, never> {
  // Members that only layers define.
  declare readonly context: never;
  declare readonly transaction: Transaction | undefined;
  declare readonly credential: ToolContext["credential"];
  readonly #call: Call;
  #services: Services | undefined;

  constructor(call: Call) {
    this.#call = call;
  }

  /** Returns the call of a context; `undefined` for other objects. For layers and plue's tools. */
  static callOf(context: object): Call | undefined {
    return #call in context ? context.#call : undefined;
  }

  get sessionId(): string | undefined {
    return this.#call.options.sessionId;
  }

  get messageId(): string | undefined {
    return this.#call.options.messageId;
  }

  get callId(): string {
    return this.#call.callId;
  }

  get principal(): string | undefined {
    return this.#call.options.principal;
  }

  get signal(): AbortSignal {
    return this.#call.deadline.signal;
  }

  get services(): Services {
    const { runtime, options: { services } } = this.#call;
    return services === undefined
      ? runtime.services
      : this.#services ??= overlay(runtime.services, services);
  }

  get config(): never {
    return this.#call.runtime.config as never;
  }

  get state(): never {
    return this.#call.runtime.state as never;
  }

  get metadata(): (value: unknown) => void {
    return noop;
  }

  get progress(): (done: number, total?: number, message?: string) => void {
    return noop;
  }

  get ask(): <Content>(key: string, question: QuestionFields) => Promise<Answer<Content>> {
    return withoutQuestions;
  }

  get step(): <Result>(key: string, work: () => Result | Promise<Result>) => Promise<Result> {
    return withoutQuestions;
  }

  get defer(): (cleanup: () => void | Promise<void>) => void {
    return (cleanup) => this.#call.defer(cleanup);
  }

  get throwIfAborted(): () => void {
    return () => this.#call.deadline.throwIfAborted();
  }
}

export function contextWith(layers: readonly Layer[]): typeof CallContext {
  const members = layers.flatMap(({ context }) => Object.entries(context ?? {}));
  if (members.length === 0) return CallContext;
  const Context = class extends CallContext {
    // The default constructor would spread its arguments, which takes Bun twice as long.
    constructor(call: Call) {
      super(call);
    }
  };
  for (const [name, get] of members) {
    Object.defineProperty(Context.prototype, name, {
      configurable: true,
      get(this: CallContext): unknown {
        return get(CallContext.callOf(this) as Call);
      },
    });
  }
  return Context;
}

async function withoutQuestions(): Promise<never> {
  return await fail("ask or use a step", "the layer questions() is missing");
}

/** Returns `below` with the defined members of `above`, and with the prototype of `below`. */
function overlay(below: Services, above: Services): Services {
  return Object.setPrototypeOf({ ...below, ...defined(above) }, Object.getPrototypeOf(below));
}

export const resumptions: WeakMap<ToolCall, Resumption> = new WeakMap();

export class CallView implements CallInfo {
  readonly tool: Tool;
  readonly sessionId: string | undefined;
  readonly messageId: string | undefined;
  readonly principal: string | undefined;
  readonly context: unknown;
  readonly resumed: boolean;
  readonly #call: Call;
  readonly #args: unknown;
  #shown: unknown;

  /** @param args The arguments to show, by default the call's current arguments. */
  constructor(call: Call, args: unknown = call.arguments) {
    const { sessionId, messageId, principal } = call.options;
    this.tool = call.tool;
    this.sessionId = sessionId;
    this.messageId = messageId;
    this.principal = principal;
    this.context = call.context.context;
    this.resumed = resumptions.has(call.request);
    this.#args = args;
    this.#call = call;
  }

  /** A getter, because an id is created when it is first read. */
  get callId(): string {
    return this.#call.callId;
  }

  get signal(): AbortSignal {
    return this.#call.deadline.signal;
  }

  /** A frozen copy, so that a hook cannot change the validated arguments. */
  get arguments(): unknown {
    // Arguments that a Standard Schema has converted may not be JSON. They are not copied.
    return this.#shown ??= frozenCopy(this.#args) ?? this.#args;
  }
}

/** The result of `callHost` if the host's function threw or rejected. */
export const FAILED: unique symbol = Symbol();

/** Calls a host's function until its result or the call's end. Reports all its errors. */
export function callHost<T>(
  call: Call,
  doing: string,
  phase: DispatchPhase,
  work: () => T | Promise<T>,
  limitMs?: number,
): Promise<T | typeof FAILED> {
  return call.wait(doing, () => settled(call, phase, work), limitMs);
}

/** Returns the value of a host's function; reports its error and returns {@linkcode FAILED}. */
export async function settled<T>(
  call: Call,
  phase: DispatchPhase,
  work: () => T | Promise<T>,
): Promise<T | typeof FAILED> {
  try {
    return await work();
  } catch (error) {
    call.report(phase, error);
    return FAILED;
  }
}

/** Waits for an operation of a store. Rejects if it takes longer than `closeTimeoutMs`. */
export async function inTime<T>(
  { clock, closeTimeoutMs }: CallSettings,
  work: Promise<T>,
): Promise<T> {
  const answer = await within(clock, closeTimeoutMs, work);
  return answer === TIME_OVER ? fail("use the store", "it took too long") : answer;
}
