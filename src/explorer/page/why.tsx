/** The matrix of tools by role, risk or context. A cell is a decision with its explanation. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type ToolExplanation, VOCABULARY } from "../../select/mod.ts";
import { RISK_LEVELS } from "../../tool/mod.ts";
import { ask, messageOf } from "./api.ts";
import { Icon } from "./icons.tsx";
import { Button, Head, Id, Risk, Segments, useGrowing, useLoaded } from "./parts.tsx";
import { Editor } from "./try.tsx";
import { type Explained, type Explanations, revision } from "./tools.tsx";

type Dimension = "role" | "risk" | "context";

interface Column {
  readonly name: string;
  /** Begins with "?", unless it is empty. */
  readonly query: string;
}

function columnOf(name: string, query: Readonly<Record<string, string>>): Column {
  const text = new URLSearchParams(query).toString();
  return { name, query: text && `?${text}` };
}

const OWN = columnOf("you", {});
const CONTEXTS: readonly Column[] = [
  OWN,
  ...Object.entries(VOCABULARY)
    .filter(([, { flag }]) => flag.startsWith("--no-"))
    .map(([name, { flag }]) => columnOf(flag.slice(2).replace("-", " "), { [name]: "false" })),
  columnOf("read-only", { tagsAll: "read-only" }),
];

/** The maximum number of columns, each of which is a request. */
const MAX_COLUMNS = 24;

function columnsOf(dimension: Dimension, { roles, scopes }: Explanations): readonly Column[] {
  switch (dimension) {
    case "role":
      return [
        OWN,
        ...roles.map((role) => columnOf(role, { role })),
        ...scopes.map((scopes) => columnOf(`scope ${scopes}`, { scopes })),
      ].slice(0, MAX_COLUMNS);
    case "risk":
      return RISK_LEVELS.map((risk) => columnOf(`up to ${risk}`, { maxRisk: risk }));
    case "context":
      return CONTEXTS;
  }
}

/** The settings of the matrix, stored while other pages are open. */
const dimension = signal<Dimension>("role");
const rowFilter = signal("");
const isShort = signal(false);

interface Cell {
  readonly id: string;
  readonly column: Column;
}

export function Why(): JSX.Element {
  const [cell, setCell] = useState<Cell>();
  const { value, error } = useLoaded(async (signal) => {
    const own = await ask<Explanations>("explain", { signal });
    const answers = await Promise.all(
      columnsOf(dimension.value, own).map(async ({ query }) => {
        const { tools } = query === ""
          ? own
          : await ask<Explanations>(`explain${query}`, { signal });
        return [query, new Map(tools.map((tool) => [tool.id, tool]))] as const;
      }),
    );
    return { all: own, answers: new Map(answers) };
  }, [dimension.value, revision.value]);
  const { all, answers = new Map() } = value ?? {};
  const columns = all === undefined ? [] : columnsOf(dimension.value, all);

  const needle = rowFilter.value.trim().toLowerCase();
  /** True if a tool is seen by some callers only, or for different reasons. */
  const differs = ({ id }: Explained): boolean =>
    new Set(columns.map(({ query }) => wordOf(answers.get(query)?.get(id)))).size > 1;
  const rows = (all?.tools ?? [])
    .filter((tool) => tool.id.toLowerCase().includes(needle) && (!isShort.value || differs(tool)));
  return (
    <main class="why" id="main" tabIndex={-1}>
      <h1>Who sees which tool, and why</h1>
      <div class="row">
        <Segments
          label="Columns"
          values={[["role", "By role"], ["risk", "By risk"], ["context", "By context"]]}
          value={dimension.value}
          onChange={(next) => {
            setCell(undefined);
            dimension.value = next;
          }}
        />
        <input
          type="search"
          aria-label="Filter the rows"
          placeholder="Filter the rows"
          value={rowFilter.value}
          onInput={(event) => (rowFilter.value = event.currentTarget.value)}
        />
        <button
          type="button"
          class="chip"
          aria-pressed={isShort.value}
          onClick={() => (isShort.value = !isShort.value)}
        >
          Only differences
        </button>
        <span class="small faint" role="status">
          {error ?? (all === undefined ? "Asking…" : `${rows.length} tools`)}
        </span>
      </div>
      {all !== undefined && all.roles.length === 0 && dimension.value === "role" && (
        <p class="faint">No tool lists roles, or you may only see your own tools.</p>
      )}
      <div class="split">
        <div class="scroll" role="region" aria-label="Matrix" tabIndex={0}>
          <Matrix rows={rows} columns={columns} answers={answers} cell={cell} onOpen={setCell} />
        </div>
        {cell !== undefined && (
          <Explanation
            key={`${cell.id} ${cell.column.query}`}
            cell={cell}
            hasRules={all?.tools.some(({ id }) => id === EXPLAINER) ?? false}
            onClose={() => setCell(undefined)}
          />
        )}
      </div>
    </main>
  );
}

function moveInGrid(event: JSX.TargetedKeyboardEvent<HTMLElement>): void {
  const step = STEPS[event.key];
  const cell = (event.target as Element).closest("td");
  if (step === undefined || cell === null) return;
  event.preventDefault();
  const row = cell.parentElement as HTMLTableRowElement;
  const rows = [...(row.parentElement?.children ?? [])] as HTMLTableRowElement[];
  const next = rows[rows.indexOf(row) + step[0]]?.cells[cell.cellIndex + step[1]];
  next?.querySelector("button")?.focus();
}

const STEPS: Readonly<Record<string, readonly [row: number, column: number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

function Matrix({ rows, columns, answers, cell, onOpen }: {
  readonly rows: readonly Explained[];
  readonly columns: readonly Column[];
  /** The decisions by column and tool. */
  readonly answers: ReadonlyMap<string, ReadonlyMap<string, Explained>>;
  readonly cell: Cell | undefined;
  readonly onOpen: (cell: Cell) => void;
}): JSX.Element {
  const { count, end } = useGrowing<HTMLTableRowElement>(rows.length);
  return (
    <table class="matrix" onKeyDown={moveInGrid}>
      <Head columns={["tool", ...columns.map(({ name }) => name)]} />
      <tbody>
        {rows.slice(0, count).map(({ id, risk }, at) => (
          <tr key={id}>
            <th scope="row">
              <span class="row">
                <Risk level={risk} isBare /> <Id id={id} />
              </span>
            </th>
            {columns.map((column, index) => {
              const answer = answers.get(column.query)?.get(id);
              const isOpen = cell?.id === id && cell.column.name === column.name;
              return (
                <td key={column.name}>
                  {answer !== undefined && (
                    <button
                      type="button"
                      class={answer.available ? "cell" : "cell tint"}
                      // The tab key reaches one cell; the arrow keys move from there.
                      tabIndex={at === 0 && index === 0 ? 0 : -1}
                      aria-pressed={isOpen}
                      aria-label={`${id}, ${column.name}: ${wordOf(answer)}`}
                      onClick={() => onOpen({ id, column })}
                    >
                      <span class={toneOf(answer)}>
                        <Icon name={answer.available ? "check" : "x"} />
                      </span>
                      {wordOf(answer)}
                    </button>
                  )}
                </td>
              );
            })}
          </tr>
        ))}
        {rows.length > count && (
          <tr key="" ref={end}>
            <th scope="row" class="faint">{rows.length - count} more</th>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function toneOf({ selected, available }: Explained): string {
  return available ? "good" : selected ? "warn" : "bad";
}

function wordOf(answer: Explained | undefined): string {
  if (answer === undefined) return "";
  const { selected, available, removedBy } = answer;
  return available ? "seen" : selected ? "unavailable" : (removedBy ?? "hidden");
}

/** The tool of `explainTool`, by which rules explain a call. */
const EXPLAINER = "explain_call";

function Explanation({ cell: { id, column }, hasRules, onClose }: {
  readonly cell: Cell;
  readonly hasRules: boolean;
  readonly onClose: () => void;
}): JSX.Element {
  const { value: explanation, error } = useLoaded(
    () => ask<ToolExplanation>(`tools/${encodeURIComponent(id)}/explain${column.query}`),
    [],
  );
  const failed = explanation?.steps.findIndex(({ passed }) => !passed) ?? -1;
  const decided = failed === -1 ? Infinity : failed;
  return (
    <section class="explanation box stack" aria-label="Explanation" aria-live="polite">
      <div class="row">
        <h2 class="grow">
          <Id id={id} />, {column.name}
        </h2>
        <Button kind="quiet small" label="Close" onClick={onClose}>
          <Icon name="x" />
        </Button>
      </div>
      <p class="verdict">{explanation?.reason ?? error ?? "Asking…"}</p>
      <ol class="trace">
        {explanation?.steps.map(({ step, name, passed, reason }, index) => (
          <li key={index} class={passed ? "good" : "bad"}>
            <Icon name={passed ? "check" : "x"} />
            <span class={index > decided ? "faint" : "plain"}>
              <b>{step}</b>
              {name !== undefined && `: ${name}`}
              {reason !== undefined && <p class="about">{reason}</p>}
            </span>
          </li>
        ))}
      </ol>
      {hasRules && <Call id={id} />}
    </section>
  );
}

/** The decision of the rules on a call with entered arguments. */
function Call({ id: tool }: { readonly id: string }): JSX.Element {
  const [text, setText] = useState("{}");
  const [decision, setDecision] = useState("");
  const explain = async (): Promise<string> => {
    const body = { arguments: { tool, arguments: JSON.parse(text) } };
    const path = `tools/${EXPLAINER}/execute`;
    const result = await ask<{ content: unknown }>(path, { method: "POST", body });
    return JSON.stringify(result.content, null, 2);
  };
  return (
    <>
      <Editor label="Arguments of a call" text={text} onChange={setText} />
      <Button onClick={() => void explain().catch(messageOf).then(setDecision)}>
        Explain the call
      </Button>
      <pre role="status">{decision}</pre>
    </>
  );
}
