/** The calls of this page, and the metrics of the service. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { sessions } from "./api.ts";
import {
  abort,
  calls,
  findTask,
  findTasks,
  isOpen,
  measure,
  readRecords,
  samples,
  type WantedRecords,
} from "./calls.ts";
import { CallView, Status } from "./call_view.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { Bar, Button, counted, Head, Id, milliseconds, useLoaded, useRounds } from "./parts.tsx";
import { hrefOfCall } from "./route.ts";

export function Calls(): JSX.Element {
  const ended = calls.value.filter((call) => !isOpen(call)).length;
  const measured = useLoaded(measure, [ended, useRounds()]);
  const found = useLoaded(findTasks, []);
  const error = measured.error ?? found.error;
  return (
    <main id="main" tabIndex={-1} class="stack">
      <h1>Calls</h1>
      <History />
      <Journal ended={ended} />
      <h2>Metrics of the service</h2>
      {error !== undefined && <p class="wrong">{error}</p>}
      <Metrics />
      <Queue />
    </main>
  );
}

/** The page of one call, which a link names. A person may answer its question on a phone. */
export function CallPage({ id }: { readonly id: string }): JSX.Element {
  const call = calls.value.find(({ callId, task }) => callId === id || task === id);
  const { error } = useLoaded(() => findTask(id), [id, sessions.value]);
  return (
    <main id="main" tabIndex={-1} class="call-page">
      <h1>
        <code>{call?.tool}</code> {call?.status === "waiting" && "waits for your answer"}
      </h1>
      {call === undefined ? <p>{error ?? "Asking…"}</p> : <CallView call={call} />}
    </main>
  );
}

function History(): JSX.Element {
  const [open, setOpen] = useState<string>();
  const list = calls.value;
  if (list.length === 0) {
    return <p>Nothing was called from this page yet, and there are no tasks.</p>;
  }
  const sorted = [...list.filter(isOpen), ...list.filter((call) => !isOpen(call))];
  return (
    <ul class="history panel" aria-label="Calls of this page">
      {sorted.map((call) => (
        <li key={call.callId}>
          <div class="row">
            <time class="small dim" dateTime={new Date(call.startedAt).toISOString()}>
              {new Date(call.startedAt).toLocaleTimeString()}
            </time>
            <a href={hrefOfCall(call.tool, call.arguments)}>
              <Id id={call.tool} />
            </a>
            <code class="about cut grow">{JSON.stringify(call.arguments)}</code>
            <Status call={call} />
            {call.status === "running" && call.progress?.total !== undefined && (
              <progress
                aria-label={`Progress of ${call.tool}`}
                value={call.progress.done}
                max={call.progress.total}
              />
            )}
            {isOpen(call) && (
              <Button
                kind="danger"
                label={`Cancel ${call.tool}`}
                onClick={() => void abort(call)}
              >
                Cancel
              </Button>
            )}
            <Button
              kind="quiet"
              label={`Show the call of ${call.tool}`}
              pressed={open === call.callId}
              onClick={() => setOpen(open === call.callId ? undefined : call.callId)}
            >
              Show
            </Button>
          </div>
          {open === call.callId && <CallView call={call} />}
        </li>
      ))}
    </ul>
  );
}

const FILTERS = [["tool", "Tool"], ["outcome", "Outcome"], ["principal", "Caller"]] as const;

/** The calls of all callers, for callers who may read the journal of the service. */
function Journal({ ended }: { readonly ended: number }): JSX.Element | null {
  const [wanted, setWanted] = useState<WantedRecords>({ tool: "", outcome: "", principal: "" });
  /** The values that can be chosen: the values of all records that were read. */
  const known = useRef(FILTERS.map(() => new Set<string>())).current;
  const hasJournal = samples.value.at(-1)?.journal === true;
  const { value, error } = useLoaded(
    () => readRecords(hasJournal, wanted),
    [ended, hasJournal, wanted],
  );
  const records = value ?? [];
  for (const record of records) {
    for (const [index, [field]] of FILTERS.entries()) {
      const value = record[field];
      if (value !== undefined) known[index]?.add(value);
    }
  }
  if (known.every(({ size }) => size === 0) && error === undefined) return null;
  return (
    <>
      <h2>Journal of the service</h2>
      <p class="row">
        {FILTERS.map(([field, label], index) => (
          <label key={field}>
            {label}{" "}
            <select
              value={wanted[field]}
              onChange={({ currentTarget }) =>
                setWanted({ ...wanted, [field]: currentTarget.value })}
            >
              <option value="">any</option>
              {[...known[index] ?? []].sort().map((one) => <option key={one}>{one}</option>)}
            </select>
          </label>
        ))}
        <span class="about" role="status">{counted(records.length, "record")}</span>
      </p>
      {error !== undefined && <p class="wrong">{error}</p>}
      <div class="scroll" role="region" aria-label="Journal of the service" tabIndex={0}>
        <table>
          <Head columns={["time", "tool", "outcome", "caller", "took", "call"]} />
          <tbody>
            {records.map((record) => (
              <tr key={record.sequence}>
                <td>{new Date(record.time).toLocaleString()}</td>
                <th scope="row">
                  {record.tool !== undefined && <Id id={record.tool} />}
                </th>
                <td title={record.message}>
                  <Outcome kind={record.kind ?? record.outcome ?? ""} />
                </td>
                <td>{record.principal}</td>
                <td>{record.durationMs !== undefined && milliseconds(record.durationMs)}</td>
                <td>
                  <code>{record.callId}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** The tones and icons of kinds other than failures. */
const CALM: Readonly<Record<string, readonly [tone: string, icon?: IconName]>> = {
  ok: ["good", "check"],
  input_required: ["warn", "hand"],
  begin: ["dim"],
  end: ["dim"],
};

function Outcome({ kind }: { readonly kind: string }): JSX.Element {
  const [tone, icon] = CALM[kind] ?? ["bad", "x"];
  return (
    <span class={`status ${tone}`}>
      {icon !== undefined && <Icon name={icon} />}
      {kind}
    </span>
  );
}

const FIGURES = [
  ["calls", "calls"],
  ["failed", "failed"],
  ["inFlight", "running"],
  ["queued", "waiting for a slot"],
] as const;

function Metrics(): JSX.Element {
  const figures = samples.value.at(-1);
  if (figures === undefined) return <p>Asking…</p>;
  const called = figures.tools
    .filter(({ calls, inFlight }) => calls + inFlight > 0)
    .sort((a, b) => b.calls - a.calls);
  const slowest = Math.max(1, ...called.map(({ duration }) => duration?.p95Ms ?? 0));
  return (
    <>
      <p class="row">
        {FIGURES.map(([field, name]) =>
          figures[field] !== undefined && <Figure key={field} field={field} name={name} />
        )}
      </p>
      {called.length > 0 && (
        <div class="scroll" role="region" aria-label="Metrics of each tool" tabIndex={0}>
          <table>
            <Head
              columns={["tool", "calls", "errors", "running", "p50", "p95"]}
              numbers={["calls", "running"]}
            />
            <tbody>
              {called.map(({ id, calls, failed, errors, inFlight, duration }) => (
                <tr key={id}>
                  <th scope="row">
                    <Id id={id} />
                  </th>
                  <td class="number">{calls}</td>
                  <td>
                    {failed}{" "}
                    <span class="about">
                      {Object.entries(errors).map((error) => error.join(" ")).join(", ")}
                    </span>
                  </td>
                  <td class="number">{inFlight}</td>
                  {[duration?.p50Ms, duration?.p95Ms].map((value, index) => (
                    <td key={index}>
                      {value === undefined
                        ? "–"
                        : <Bar value={value} most={slowest}>{milliseconds(value)}</Bar>}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

/** The tasks of all callers. Only callers with access to explanations get this list. */
function Queue(): JSX.Element | null {
  const queue = samples.value.at(-1)?.queue;
  if (queue === undefined) return null;
  const { waiting, oldestMs, running, dead } = queue;
  return (
    <>
      <h2>Queue of tasks</h2>
      <p>
        waiting: {waiting}, the oldest for {milliseconds(oldestMs)}; running:{" "}
        {running.length}; dead: {dead}
      </p>
      <ul>
        {running.map(({ tool, worker, attempts }, index) => (
          <li key={index}>
            <code>{tool}</code> {worker}, run {attempts}
          </li>
        ))}
      </ul>
    </>
  );
}

const WIDTH = 160;
const HEIGHT = 32;

function Figure({ field, name }: {
  readonly field: typeof FIGURES[number][0];
  readonly name: string;
}): JSX.Element {
  const values = samples.value.map((figures) => figures[field] ?? 0);
  const value = values.at(-1);
  const least = Math.min(...values);
  const span = Math.max(1, Math.max(...values) - least);
  const points = values.map((one, index) => {
    const x = (WIDTH * index) / Math.max(1, values.length - 1);
    return `${x},${HEIGHT - 2 - ((HEIGHT - 4) * (one - least)) / span}`;
  });
  return (
    <span class="box figure">
      <strong>{value}</strong> {name}
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${name}: from ${values[0]} to ${value} in ${values.length} measurements`}
      >
        <polyline points={points.join(" ")} />
      </svg>
    </span>
  );
}
