/**
 * What the tests of `src/execute` share: a clock that moves when it is told to, promises that are
 * settled by hand, and a dispatcher around a few tools.
 *
 * @module
 */

import {
  type Clock,
  type DispatchContext,
  makeTool,
  type ToolDefinition,
  ToolRegistry,
  type ToolResult,
} from "../../../mod.ts";
import {
  type DispatchErrorReport,
  ToolDispatcher,
  type ToolDispatcherOptions,
} from "../../../src/execute/mod.ts";

interface Timer {
  readonly at: number;
  readonly wake: () => void;
}

/** A manual clock. */
export class FakeClock implements Clock {
  readonly timers: Set<Timer> = new Set();
  #now = 1_000;
  #onArmed: (() => void)[] = [];

  now(): number {
    return this.#now;
  }

  timestamp(): number {
    return 1_800_000_000_000 + this.#now;
  }

  setTimeout(wake: () => void, ms: number): () => void {
    const timer = { at: this.#now + ms, wake };
    this.timers.add(timer);
    for (const tell of this.#onArmed.splice(0)) tell();
    return () => void this.timers.delete(timer);
  }

  /** Resolves when a timer is armed, or immediately if one is. */
  armed(): Promise<void> {
    return this.timers.size > 0
      ? Promise.resolve()
      : new Promise((resolve) => this.#onArmed.push(resolve));
  }

  /** Advances the time, and fires due timers in order. */
  advance(ms: number): void {
    this.#now += ms;
    for (const timer of [...this.timers].sort((a, b) => a.at - b.at)) {
      if (timer.at <= this.#now && this.timers.delete(timer)) timer.wake();
    }
  }

  /** Waits for a timer, then moves the time. */
  async pass(ms: number): Promise<void> {
    await this.armed();
    this.advance(ms);
  }
}

/** A promise that is settled by hand. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

export function deferred<T = void>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** Lets pending promise reactions run until `done` returns true; fails if it never does. */
export async function until(done: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000; turn++) {
    if (done()) return;
    await Promise.resolve();
  }
  throw new Error("It did not come about, however many reactions ran");
}

/** A tool of which only what matters is written out. It accepts anything. */
export type FakeTool = Partial<ToolDefinition> & { readonly name: string };

export interface Fixture {
  readonly registry: ToolRegistry;
  readonly dispatcher: ToolDispatcher;
  readonly clock: FakeClock;
  readonly reports: DispatchErrorReport[];
  call(name: string, args?: unknown, context?: DispatchContext): Promise<ToolResult>;
}

/** A dispatcher over a registry with these tools, on a clock that stands still. */
export function fixture(tools: readonly FakeTool[], options: ToolDispatcherOptions = {}): Fixture {
  const clock = new FakeClock();
  const registry = new ToolRegistry({ tools: tools.map(fakeTool), clock });
  const reports: DispatchErrorReport[] = [];
  const dispatcher = new ToolDispatcher(registry, {
    clock,
    onError: (report) => void reports.push(report),
    ...options,
  });
  return {
    registry,
    dispatcher,
    clock,
    reports,
    call: (name, args, context) =>
      dispatcher.dispatch({ name, ...(args === undefined ? {} : { arguments: args }) }, context),
  };
}

export function fakeTool(tool: FakeTool): ReturnType<typeof makeTool> {
  return makeTool({
    description: "A tool for a test.",
    parameters: { type: "object" },
    risk: "safe",
    ...tool,
  });
}

/** The content of a result, or its failure's code. */
export function outcome(result: ToolResult): unknown {
  return result.ok ? result.content : result.error.code;
}

/** The message of a failure. */
export function messageOf(result: ToolResult): string {
  return result.ok ? "" : result.error.message;
}

/** An abort signal that counts who listens. */
export function countingSignal(): {
  readonly signal: AbortSignal;
  readonly listeners: () => number;
  abort(reason?: unknown): void;
} {
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  Object.defineProperties(signal, {
    addEventListener: {
      value: (...args: Parameters<AbortSignal["addEventListener"]>) => {
        listeners++;
        addEventListener.apply(signal, args);
      },
    },
    removeEventListener: {
      value: (...args: Parameters<AbortSignal["removeEventListener"]>) => {
        listeners--;
        removeEventListener.apply(signal, args);
      },
    },
  });
  return { signal, listeners: () => listeners, abort: (reason) => controller.abort(reason) };
}
