/** The inputs of a form: a list of choices, or typed text that is read as a value. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Choice, Notes, Shape } from "../../schema/form.ts";
import { isRounded, parse, type Parsed } from "./json_views.ts";

interface InputProps {
  /** The id of the element, and its state for screen readers. */
  readonly attributes: {
    readonly id: string;
    readonly "aria-invalid": boolean;
    readonly "aria-required": boolean;
    readonly "aria-describedby": string | undefined;
  };
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly shape: Shape;
  readonly hint: string;
}

const CHOICES = { boolean: [true, false], null: [null] };

export function Input({ notes: { default: usual, examples }, ...props }:
  & Omit<InputProps, "hint">
  & { readonly notes: Notes }): JSX.Element {
  const hint = usual !== undefined
    ? `by default ${JSON.stringify(usual)}`
    : examples.length > 0
    ? `such as ${JSON.stringify(examples[0])}`
    : "not set";
  const { shape } = props;
  if (shape.kind === "choice") {
    return <ChoiceInput {...props} hint={hint} choices={shape.choices} />;
  }
  if (shape.kind !== "boolean" && shape.kind !== "null") {
    return <TypedInput {...props} hint={hint} />;
  }
  const choices = CHOICES[shape.kind].map((value) => ({ label: String(value), value }));
  return <ChoiceInput {...props} hint={hint} choices={choices} />;
}

/** A list of allowed values. The current value may be a different one. */
function ChoiceInput({ attributes, value, hint, onChange, choices }: InputProps & {
  readonly choices: readonly Choice[];
}): JSX.Element {
  const text = JSON.stringify(value);
  const index = choices.findIndex((choice) => JSON.stringify(choice.value) === text);
  return (
    <select
      {...attributes}
      value={String(index)}
      // The option for other values has the index -1.
      onChange={(event) => onChange(choices[Number(event.currentTarget.value)]?.value)}
    >
      {index === -1 && (
        <option value="-1">{value === undefined ? hint : `${text} (no choice)`}</option>
      )}
      {choices.map(({ label }, own) => <option key={own} value={String(own)}>{label}</option>)}
    </select>
  );
}

const NUMBER = /^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** Parses the text of an input. Other text than a number stays a text, and the check reports it. */
function valueIn(kind: Shape["kind"], typed: string): Parsed {
  if (kind === "text") return { ok: true, value: typed };
  const text = typed.trim();
  if (text === "") return { ok: true, value: undefined };
  if (kind !== "number") return parse(text);
  const isNumber = NUMBER.test(text) && Number.isFinite(Number(text)) && !isRounded(text);
  return { ok: true, value: isNumber ? Number(text) : text };
}

function textIn(kind: Shape["kind"], value: unknown): string {
  if (value === undefined || value === null && kind === "number") return "";
  const isPlain = typeof value === "string" && (kind === "text" || kind === "number");
  return isPlain ? value : JSON.stringify(value);
}

const TYPES: Readonly<Record<string, string>> = {
  date: "date",
  email: "email",
  uri: "url",
  password: "password",
};

/**
 * An input for text, a number, or any value as JSON. It replaces the value whenever the text is
 * valid. The typed text stays unchanged: "1.0" may become "1.05".
 */
function TypedInput({ attributes, value, hint, onChange, shape }: InputProps): JSX.Element {
  const { kind } = shape;
  const [typed, setTyped] = useState("");
  const read = valueIn(kind, typed);
  const isCurrent = read.ok && JSON.stringify(read.value) === JSON.stringify(value);
  const text = isCurrent || !read.ok ? typed : textIn(kind, value);
  const format = kind === "text" ? shape.format : kind === "number" ? undefined : "any JSON";
  const common = {
    ...attributes,
    "aria-invalid": attributes["aria-invalid"] || !read.ok,
    value: text,
    placeholder: format === undefined ? hint : `${format}, ${hint}`,
    spellcheck: false,
    autocomplete: "off",
    onInput({ currentTarget }: JSX.TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) {
      setTyped(currentTarget.value);
      const next = valueIn(kind, currentTarget.value);
      if (next.ok) onChange(next.value);
    },
  };
  if (kind === "number") {
    return <input {...common} type="text" inputMode={shape.integer ? "numeric" : "decimal"} />;
  }
  if (kind === "text" && format !== undefined) {
    // The browser would show an invalid date as empty.
    const isShown = format !== "date" || text === "" || /^\d{4}-\d\d-\d\d$/.test(text);
    return <input {...common} type={isShown ? TYPES[format] ?? "text" : "text"} />;
  }
  return (
    <>
      <textarea
        {...common}
        class={kind === "text" ? undefined : "code"}
        rows={Math.min(12, text.split("\n").length)}
      />
      {!read.ok && <p class="wrong">This is not JSON yet; the value has not changed.</p>}
    </>
  );
}
