/**
 * Small parts that several views share.
 *
 * @module
 */

import type { ComponentChildren, JSX, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { isObject } from "../../tool/mod.ts";
import { type JsonLine, jsonLines, wordsOf } from "./json_text.ts";

type Element = JSX.Element;

/** The risk of a tool, as a word in its colour. */
export function Risk({ level }: { readonly level: string }): Element {
  return <span class={`badge risk-${level}`}>{level}</span>;
}

/** A button. */
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
  readonly kind?: "plain" | "main" | "quiet" | "danger";
  /** What it is called, where its text does not say it. */
  readonly label?: string;
  readonly disabled?: boolean;
  /** Disabled for a while, and keeps the focus meanwhile. */
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

/** A group of buttons, of which one is chosen. */
export function Segments<Value extends string>({
  label,
  values,
  value,
  onChange,
}: {
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

/** Colouring longer texts would be felt while typing. */
const MAX_COLOURED = 50_000;

/** JSON in colours. */
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

/** A remark on a place of some JSON. */
export interface Mark {
  readonly pointer: string;
  readonly grade: string;
  readonly message: string;
}

/** JSON with remarks below the lines that they are about. */
export function MarkedJson({
  value,
  marks,
  label,
}: {
  readonly value: unknown;
  readonly marks: readonly Mark[];
  readonly label: string;
}): Element {
  const lines = jsonLines(value);
  const known = new Set(lines.map(({ pointer }) => pointer));
  const at = new Map<string, Mark[]>();
  for (const mark of marks) {
    // A place that is not in the value is marked where its nearest parent is.
    let { pointer } = mark;
    while (pointer !== "" && !known.has(pointer)) {
      pointer = pointer.slice(0, pointer.lastIndexOf("/"));
    }
    at.set(pointer, [...(at.get(pointer) ?? []), mark]);
  }
  const marksOf = ({ pointer }: JsonLine): readonly Mark[] =>
    pointer === undefined ? [] : (at.get(pointer) ?? []);
  return (
    <pre class="json" tabIndex={0} role="region" aria-label={label}>
      {lines.map((line, index) => {
        const own = marksOf(line);
        return (
          <span key={index}>
            <span class={own.length > 0 ? "line marked" : "line"}>
              <Coloured text={line.text} />
              {"\n"}
            </span>
            {own.map((mark, place) => (
              <span key={place} class={`mark grade-${mark.grade}`}>
                {`${" ".repeat(line.text.search(/\S/))}▲ ${mark.grade}: ${mark.message}\n`}
              </span>
            ))}
          </span>
        );
      })}
    </pre>
  );
}

/** How many members of a value are shown before they are asked for. */
const MEMBERS = 100;

/** A value as a tree whose branches open. Branches are built when they open. */
export function Tree({
  value,
  name,
  depth = 0,
}: {
  readonly value: unknown;
  readonly name?: string;
  readonly depth?: number;
}): Element {
  const [isOpen, setOpen] = useState(depth < 2);
  const [count, setCount] = useState(MEMBERS);
  const key = name === undefined ? null : <span class="json-key">{name}:</span>;
  const entries = Array.isArray(value)
    ? value.map((item, index): [string, unknown] => [String(index), item])
    : isObject(value)
    ? Object.entries(value)
    : undefined;
  if (entries === undefined || entries.length === 0) {
    return (
      <div class="leaf">
        {key} <Coloured text={JSON.stringify(value) ?? ""} />
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

/** A button that copies a text; where the browser does not let it, the text is selected by hand. */
export function Copy({
  text,
  children,
}: {
  readonly text: string;
  readonly children: ComponentChildren;
}): Element {
  const [said, say] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied");
    } catch {
      say("The browser does not let this page copy: select the text instead");
    }
  };
  return (
    <>
      <Button kind="quiet" onClick={() => void copy()}>
        {children}
      </Button>
      <span class="faint" role="status">
        {said}
      </span>
    </>
  );
}

/** A time as a person reads it. */
export function milliseconds(value: number): string {
  if (value >= 10_000) return `${(value / 1_000).toFixed(1)} s`;
  return value >= 100 ? `${Math.round(value)} ms` : `${Number(value.toPrecision(2))} ms`;
}

/** How many rows are drawn at first, and more whenever their end is seen. */
const ROWS = 100;

/**
 * Draws a long list in steps.
 *
 * @param total How many rows there are.
 * @returns How many to draw, and where to put the element at the end of the others.
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
