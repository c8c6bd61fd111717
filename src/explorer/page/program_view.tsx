/** The calls of a program, and the parts of its questions and of its result. */

import type { ComponentChildren, JSX } from "preact";
import type { ProgramCallState } from "../../adapters/code/code_run.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Id, milliseconds } from "./parts.tsx";

/** The tool that runs programs. */
export const RUN_CODE = "run_code";

/**
 * The calls of a program as a timeline.
 *
 * @param children The questions of the calls that wait, shown below the first of these calls.
 */
export function ProgramCalls({ inner, children }: {
  readonly inner: readonly ProgramCallState[];
  readonly children: ComponentChildren;
}): JSX.Element {
  const waiting = inner.find(({ outcome }) => outcome === "input_required");
  const times = inner.flatMap(({ startMs = 0, durationMs = 0 }) => [startMs, startMs + durationMs]);
  const fromMs = Math.min(...times);
  const totalMs = Math.max(...times, fromMs + 1) - fromMs;
  return (
    <>
      <ol class="steps stack" aria-label="Calls of the program">
        {inner.map((state) => (
          <li key={state.index}>
            <ProgramCall {...{ state, fromMs, totalMs }} />
            {state === waiting && children}
          </li>
        ))}
      </ol>
      {waiting === undefined && children}
    </>
  );
}

const OUTCOMES: Readonly<Record<string, readonly [text: string, tone: string, icon: IconName]>> = {
  running: ["running", "dim", "play"],
  input_required: ["waits for you", "warn", "hand"],
  ok: ["succeeded", "good", "check"],
};

function ProgramCall({ state, fromMs, totalMs }: {
  readonly state: ProgramCallState;
  readonly fromMs: number;
  readonly totalMs: number;
}): JSX.Element {
  const { tool, outcome = "running", message, startMs = fromMs, durationMs } = state;
  const [text, tone, icon] = OUTCOMES[outcome] ?? [outcome, "bad", "x"];
  return (
    <>
      <div class="step">
        <Id id={tool} />
        <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
          <rect
            x={(99 * (startMs - fromMs)) / totalMs}
            width={Math.max(1, (100 * (durationMs ?? 0)) / totalMs)}
            height="8"
          />
        </svg>
        <span class={`status ${tone}`}>
          <Icon name={icon} />
          {text}
        </span>
        <span class="number">{durationMs !== undefined && milliseconds(durationMs)}</span>
      </div>
      {message !== undefined && <p class="wrong">{message}</p>}
    </>
  );
}
