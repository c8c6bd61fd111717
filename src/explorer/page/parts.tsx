/** Small components that several views share. */

import type { ComponentChildren, JSX, RefObject } from "preact";
import { type Inputs, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { escapeInvisible, RISK_LEVELS, type RiskLevel } from "../../tool/mod.ts";
import { messageOf } from "./api.ts";
import { Icon } from "./icons.tsx";
import { jsonLines, membersOf, nameOf, wordsOf } from "./json_views.ts";

export { counted } from "../../schema/issues.ts";

type Element = JSX.Element;

/** The risk of a tool: a bar for each level up to it, and its name, which may be hidden. */
export function Risk({ level, isBare = false }: {
  readonly level: RiskLevel;
  readonly isBare?: boolean;
}): Element {
  const count = RISK_LEVELS.indexOf(level);
  return (
    <span class={`risk ${level}`}>
      <svg viewBox="0 0 13 12" aria-hidden="true">
        {BARS.map((bar, index) => (
          <path key={bar} class={index < count ? undefined : "off"} d={bar} />
        ))}
      </svg>
      <span class={isBare ? "hidden" : undefined}>{level}</span>
    </span>
  );
}

const BARS = ["M0 8h2.5v4H0z", "M3.5 5.5H6V12H3.5z", "M7 3h2.5v9H7z", "M10.5 0H13v12h-2.5z"];

/** The logo, or its first letter alone for the navigation bar. */
export function Word({ isSign = false }: { readonly isSign?: boolean }): Element {
  return (
    <svg class="word" viewBox={isSign ? "0 3 24 30" : "0 0 77 33"} role="img" aria-label="plue">
      <path d="M2.8 16v16M2.8 16a9.2 9.2 0 1 0 18.4 0 9.2 9.2 0 1 0-18.4 0z" />
      <circle cx="12" cy="16" r="3.6" class="pin" />
      {!isSign && (
        <path d="M28.6 0v27M36.4 5v11a8 8 0 0 0 16 0V5M52.4 5v22M59 15.7h16A8.4 8.4 0 1 0 72.2 22.3" />
      )}
    </svg>
  );
}

/** The id of a tool, whose namespace is less visible than its name. */
export function Id({ id }: { readonly id: string }): Element {
  const at = id.indexOf(":") + 1;
  return (
    <code>
      <span class="faint">{id.slice(0, at)}</span>
      {id.slice(at)}
    </code>
  );
}

export function Button({
  children,
  onClick,
  kind = "plain",
  label,
  disabled = false,
  busy = false,
  pressed,
}: {
  readonly children: ComponentChildren;
  readonly onClick: () => void;
  /** A button of the kind `quiet small` has an icon only. */
  readonly kind?: "plain" | "main" | "quiet" | "quiet small" | "danger";
  /** The accessible name, if the text is not enough. */
  readonly label?: string;
  readonly disabled?: boolean;
  /** Temporarily disabled; keeps the focus. */
  readonly busy?: boolean;
  readonly pressed?: boolean;
}): Element {
  return (
    <button
      type="button"
      class={`button ${kind}`}
      onClick={busy ? undefined : onClick}
      disabled={disabled}
      aria-disabled={busy || undefined}
      aria-label={label}
      aria-pressed={pressed}
    >
      {children}
    </button>
  );
}

export function Segments<Value extends string>({ label, values, value, onChange }: {
  readonly label: string;
  readonly values: readonly (readonly [Value, string])[];
  readonly value: Value;
  readonly onChange: (value: Value) => void;
}): Element {
  return (
    <div class="segments" role="group" aria-label={label}>
      {values.map(([own, text]) => (
        <Button
          key={own}
          kind="quiet"
          pressed={own === value}
          onClick={() => onChange(own)}
        >
          {text}
        </Button>
      ))}
    </div>
  );
}

/** Highlighting longer texts would slow down typing. */
const MAX_COLOURED = 50_000;

export function Coloured({ text }: { readonly text: string }): Element {
  if (text.length > MAX_COLOURED) return <>{text}</>;
  return (
    <>
      {wordsOf(text).map(({ kind, text: word }, index) =>
        kind === "plain" ? word : <span key={index} class={`json-${kind}`}>{word}</span>
      )}
    </>
  );
}

export interface Mark {
  readonly pointer: string;
  readonly grade: string;
  readonly message: string;
}

export function MarkedJson({ value, marks, label }: {
  readonly value: unknown;
  readonly marks: readonly Mark[];
  readonly label: string;
}): Element {
  const lines = jsonLines(value);
  const known = new Set(lines.map(({ pointer }) => pointer));
  const at = new Map<string, Mark[]>();
  for (const mark of marks) {
    // A path that does not exist is marked at its nearest parent.
    let { pointer } = mark;
    while (pointer !== "" && !known.has(pointer)) {
      pointer = pointer.slice(0, pointer.lastIndexOf("/"));
    }
    at.set(pointer, [...(at.get(pointer) ?? []), mark]);
  }
  return (
    <Block label={label}>
      {lines.map(({ text, pointer = "none" }, index) => {
        const own = at.get(pointer) ?? [];
        return (
          <span key={index}>
            <span class={own.length > 0 ? "warn tint plain" : undefined}>
              <Coloured text={text} />
              {"\n"}
            </span>
            {own.map(({ grade, message }, position) => (
              <span key={position} class={grade === "lost" ? "mark bad" : "mark warn"}>
                {`${" ".repeat(text.search(/\S/))}▲ ${grade}: ${message}\n`}
              </span>
            ))}
          </span>
        );
      })}
    </Block>
  );
}

const MEMBERS = 100;

/** A value as a tree. Branches are rendered when they are opened. */
export function Tree({ value, name, depth = 0 }: {
  readonly value: unknown;
  readonly name?: string;
  readonly depth?: number;
}): Element {
  const [isOpen, setOpen] = useState(depth < 2);
  const [count, setCount] = useState(MEMBERS);
  const key = name === undefined ? null : <span class="json-key">{nameOf(name)}:</span>;
  const entries = membersOf(value);
  if (entries.length === 0) {
    return (
      <div class="leaf">
        {key} <Coloured text={escapeInvisible(JSON.stringify(value) ?? "")} />
      </div>
    );
  }
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <details
      class="branch"
      open={isOpen}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>
        {key} <span class="faint">{size}</span>
      </summary>
      {isOpen &&
        entries
          .slice(0, count)
          .map(([own, item]) => <Tree key={own} name={own} value={item} depth={depth + 1} />)}
      {isOpen && entries.length > count && (
        <Button
          kind="quiet"
          onClick={() => setCount(count + MEMBERS)}
        >
          {`${entries.length - count} more`}
        </Button>
      )}
    </details>
  );
}

/** A button that copies a text. If the browser does not allow it, the user selects the text. */
export function Copy({ text, label }: {
  readonly text: string;
  readonly label: string;
}): Element {
  const [status, setStatus] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setStatus("Copied");
    } catch {
      setStatus("Cannot copy: the browser forbids it; select the text instead");
    }
  };
  return (
    <>
      <Button kind="quiet small" label={label} onClick={() => void copy()}>
        <Icon name={status === "Copied" ? "check" : "copy"} />
      </Button>
      <span class={status.startsWith("Cannot") ? "faint" : "hidden"} role="status">{status}</span>
    </>
  );
}

export function milliseconds(value: number): string {
  if (value >= 10_000) return `${(value / 1_000).toFixed(1)} s`;
  return value >= 100 ? `${Math.round(value)} ms` : `${Number(value.toPrecision(2))} ms`;
}

/** A bar whose length is the value relative to the largest value, before the value's text. */
export function Bar({ value, most, children }: {
  readonly value: number;
  readonly most: number;
  readonly children: ComponentChildren;
}): Element {
  return (
    <span class="row bar">
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect width={Math.max(1, (100 * value) / Math.max(1, most))} height="8" />
      </svg>
      {children}
    </span>
  );
}

/** The head of a table, whose columns of numbers are aligned to the right. */
export function Head({ columns, numbers = [] }: {
  readonly columns: readonly string[];
  readonly numbers?: readonly string[];
}): Element {
  return (
    <thead>
      <tr>
        {columns.map((name) => (
          <th key={name} scope="col" class={numbers.includes(name) ? "number" : undefined}>
            {name}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** Preformatted text that can be scrolled with the keyboard. */
export function Block({ label, children }: {
  readonly label: string;
  readonly children: ComponentChildren;
}): Element {
  return <pre class="json" tabIndex={0} role="region" aria-label={label}>{children}</pre>;
}

export const SHORTCUT: string = /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘" : "Ctrl";

/** Calls a function for each key that is pressed anywhere on the page. */
export function useKeys(onKey: (event: KeyboardEvent) => void): void {
  // A layout effect: a key right after a change must not call the function of the previous rendering.
  useLayoutEffect(() => {
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
}

/** Calls a function at Ctrl+Enter. */
export function useRun(start: () => void): void {
  useKeys((event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    start();
  });
}

/** Loads a value whenever an input changes. The old value stays until the new one is loaded. */
export function useLoaded<Value>(
  load: (signal: AbortSignal) => Promise<Value>,
  inputs: Inputs,
): { readonly value?: Value; readonly error?: string } {
  const [state, setState] = useState<{ readonly value?: Value; readonly error?: string }>({});
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    load(signal).then(
      (value) => signal.aborted || setState({ value }),
      (thrown: unknown) =>
        signal.aborted || setState((before) => ({ ...before, error: messageOf(thrown) })),
    );
    return () => abort.abort();
  }, inputs);
  return state;
}

const ROUND_MS = 5_000;

/** Returns a number that rises every five seconds while the page is visible. */
export function useRounds(): number {
  const [round, setRound] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState !== "hidden") setRound((round) => round + 1);
    }, ROUND_MS);
    return () => clearInterval(timer);
  }, []);
  return round;
}

/** The number of rows that are rendered at first, and added whenever the end is visible. */
const ROWS = 100;

/**
 * Renders a long list in steps.
 *
 * @param total The number of rows.
 * @returns The number of rows to render, and a ref for the element after the last row.
 */
export function useGrowing<End extends HTMLElement>(
  total: number,
): { readonly count: number; readonly end: RefObject<End> } {
  const [count, setCount] = useState(ROWS);
  const end = useRef<End>(null);
  useEffect(() => {
    if (end.current === null) return;
    const observer = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting === true) setCount(count + ROWS);
    });
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [count, total > count]);
  return { count, end };
}
