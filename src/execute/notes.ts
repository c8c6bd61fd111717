/** Notes of layers about a call, for observers such as a journal. */

import { once } from "../tool/mod.ts";
import type { Call } from "./layer.ts";
import type { TraceParent } from "./ports.ts";

/** A decision about a call, in addition to the selection of its tool. */
export interface CallDecision {
  /** The source: a criterion of the selection, a rule, the approver, or the caller's answer. */
  readonly by: "criterion" | "rule" | "approver" | "caller";
  readonly name?: string | undefined;
  readonly verdict: "allow" | "deny";
  readonly reason?: string | undefined;
}

/** A decision, or the position of a call in its trace. */
export type CallNote = CallDecision | TraceParent;

const notes: WeakMap<Call, CallNote[]> = new WeakMap();

/** Returns the notes of a call, oldest first; `undefined` if there are none. */
export function notesOf(call: Call): readonly CallNote[] | undefined {
  return notes.get(call);
}

export function note(call: Call, fact: CallNote): void {
  once(notes, call, () => []).push(fact);
}
