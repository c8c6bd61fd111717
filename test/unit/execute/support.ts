/** A dispatcher around a few tools, and readers of its results, for the tests of `src/execute`. */

import {
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
import { FakeClock } from "../../support/waiting.ts";

export * from "../../support/waiting.ts";

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

/** A {@linkcode fixture} of one tool, `t`, which `call` calls. */
export function single(
  tool: Partial<FakeTool>,
  options?: ToolDispatcherOptions,
): Omit<Fixture, "call"> & {
  call(args?: unknown, context?: DispatchContext): Promise<ToolResult>;
} {
  const world = fixture([{ name: "t", ...tool }], options);
  return { ...world, call: (args, context) => world.call("t", args, context) };
}

/** Always throws: a hook or a tool that fails. */
export function broken(): never {
  throw new Error("broken");
}

/** Never settles. */
export function never(): Promise<never> {
  return new Promise(() => {});
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
