/** A dispatcher around a few tools, and readers of its results, for the tests of `src/execute`. */

import {
  type DispatchContext,
  makeTool,
  type StandardSchema,
  type ToolDefinition,
  ToolRegistry,
  type ToolResult,
} from "../../../mod.ts";
import * as plue from "../../../src/execute/mod.ts";
import { FakeClock } from "../../support/waiting.ts";

export * from "../../support/waiting.ts";

/** A tool with only the fields that matter to a test. It accepts any arguments. */
export type FakeTool = Partial<ToolDefinition> & { readonly name: string };

export interface Fixture {
  readonly registry: ToolRegistry;
  readonly dispatcher: plue.ToolDispatcher;
  readonly clock: FakeClock;
  readonly reports: plue.DispatchErrorReport[];
  call(name: string, args?: unknown, context?: DispatchContext): Promise<ToolResult>;
}

/** A dispatcher over a registry with these tools, on a manual clock. */
export function fixture(
  tools: readonly FakeTool[],
  options: plue.ToolDispatcherOptions = {},
): Fixture {
  const clock = new FakeClock();
  const registry = new ToolRegistry({ tools: tools.map(fakeTool), clock });
  const reports: plue.DispatchErrorReport[] = [];
  const dispatcher = new plue.ToolDispatcher(registry, {
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

/** A {@linkcode fixture} of one tool, `t`, which `call` calls. A function is its `execute`. */
export function single(
  tool: Partial<FakeTool> | NonNullable<FakeTool["execute"]>,
  options?: plue.ToolDispatcherOptions,
): Omit<Fixture, "call"> & {
  call(args?: unknown, context?: DispatchContext): Promise<ToolResult>;
} {
  const fields = typeof tool === "function" ? { execute: tool } : tool;
  const world = fixture([{ name: "t", ...fields }], options);
  return { ...world, call: (args, context) => world.call("t", args, context) };
}

/** A dispatcher of the core with these layers, of one tool, `t`, which `call` calls. */
export function core(
  layers: readonly plue.Layer[],
  tool: Partial<FakeTool> = {},
  options: plue.DispatcherOptions = {},
): Pick<Fixture, "clock" | "reports"> & {
  readonly dispatcher: plue.Dispatcher;
  call(args?: unknown, context?: DispatchContext): Promise<ToolResult>;
} {
  const clock = new FakeClock();
  const reports: plue.DispatchErrorReport[] = [];
  const registry = new ToolRegistry({
    tools: [fakeTool({ name: "t", execute: () => "done", ...tool })],
    clock,
  });
  const onError = (report: plue.DispatchErrorReport): void => void reports.push(report);
  const dispatcher = new plue.Dispatcher(registry, { layers, clock, onError, ...options });
  return {
    ...{ clock, reports, dispatcher },
    call: (args, context) => dispatcher.dispatch({ name: "t", arguments: args }, context),
  };
}

/** A layer around the rest of a call, by default next to the tool. */
export function around(run: plue.LayerFunction, stage: plue.Layer["stage"] = "run"): plue.Layer {
  return { name: "own", stage, for: () => run };
}

/** A library's schema with this check, for JSON of any form. */
export function standardSchema(
  validate: StandardSchema["~standard"]["validate"],
  input: object = {},
): StandardSchema {
  const jsonSchema = { input: () => ({ ...input }), output: () => ({}) };
  return { "~standard": { version: 1, vendor: "test", validate, jsonSchema } };
}

/** Always throws: a hook or a tool that fails. */
export function broken(..._: readonly unknown[]): never {
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

/** An abort signal that counts its listeners. */
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
