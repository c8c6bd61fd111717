/**
 * The step that keeps the limits on calls at once.
 *
 * @module
 */

import type { Call } from "./call.ts";
import type { StepAnswer } from "./plan.ts";

/**
 * Takes a place among the running calls, or waits for one. It is given back when the call is
 * answered: a tool that ignores its signal then still runs, uncounted, since otherwise one such
 * tool could close the dispatcher for good. The metrics count it as abandoned.
 */
export function takeTurn(call: Call): StepAnswer {
  const { gate } = call.shared;
  const { id } = call.tool;
  const turn = gate.enter(id);
  if (turn === true) {
    call.giveTurnBack = () => gate.leave(id);
    return undefined;
  }
  if (turn === false) {
    return call.fail("overloaded", "too many calls are running and waiting; try again later");
  }
  call.giveTurnBack = turn.cancel;
  return turn.entered.then(() => undefined);
}
