/** Shared code of the tests of resilience. */

import * as plue from "@plue/tools";
import { ToolResult } from "@plue/tools";
import { type FakeClock, type FakeTool, fakeTool } from "../../unit/execute/support.ts";

/** A temporary failure. */
export const unavailable: ToolResult = ToolResult.error("unavailable", "Not now");

/** A dispatcher of one tool, whose runs return these values in order, and then repeat the last. */
export function answering(
  answers: readonly unknown[],
  options: plue.ToolDispatcherOptions,
  tool: Partial<FakeTool> = {},
) {
  let runs = 0;
  const execute = (): unknown => {
    const answer = answers[Math.min(runs++, answers.length - 1)];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const dispatcher = new plue.ToolDispatcher(
    new plue.ToolRegistry({ tools: [fakeTool({ name: "t", idempotent: true, execute, ...tool })] }),
    options,
  );
  return {
    call: (args: unknown = {}, context: plue.DispatchContext = {}): Promise<ToolResult> =>
      dispatcher.dispatch({ name: "t", arguments: args }, context),
    dispatcher,
    runs: () => runs,
  };
}

/** Moves the time in small steps until the call ends. For calls that wait only for the clock. */
export async function end(clock: FakeClock, call: Promise<ToolResult>): Promise<ToolResult> {
  let result: ToolResult | undefined;
  void call.then((ended) => result = ended);
  for (let step = 0; step < 10_000; step++) {
    for (let turn = 0; turn < 60; turn++) await Promise.resolve();
    if (result !== undefined) return result;
    clock.advance(5);
  }
  throw new Error("The call did not end");
}
