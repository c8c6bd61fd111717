/** The inputs of a form: a switch, some choices, or typed text that is read as a value. */

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
  if (shape.kind === "null") {
    return <ChoiceInput {...props} hint={hint} choices={[{ label: "null", value: null }]} />;
  }
  const isSwitch = shape.kind === "boolean" && typeof (props.value ?? false) === "boolean";
  return isSwitch ? <Switch {...props} hint={hint} /> : <TypedInput {...props} hint={hint} />;
}

function Switch({ attributes, value, onChange }: InputProps): JSX.Element {
  return (
    <input
      {...attributes}
      type="checkbox"
      role="switch"
      checked={value === true}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}

/** The maximum number and length of choices that are all shown. A longer list opens. */
const MAX_SEGMENTS = 4;
const MAX_SEGMENT = 16;

/** A list of allowed values. The current value may be a different one. */
function ChoiceInput({ attributes, value, hint, onChange, choices }: InputProps & {
  readonly choices: readonly Choice[];
}): JSX.Element {
  const text = JSON.stringify(value);
  const index = choices.findIndex((choice) => JSON.stringify(choice.value) === text);
  const isShort = choices.length <= MAX_SEGMENTS &&
    choices.every(({ label }) => label.length <= MAX_SEGMENT);
  if (isShort && (index !== -1 || value === undefined)) {
    const { id, "aria-required": isRequired, ...others } = attributes;
    return (
      <div {...others} class="segments" role="radiogroup" aria-labelledby={`${id}-name`}>
        {choices.map(({ label, value }, own) => (
          <label key={own}>
            <input
              type="radio"
              name={id}
              required={isRequired}
              checked={own === index}
              onChange={() => onChange(value)}
            />
            {label}
          </label>
        ))}
      </div>
    );
  }
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

type Typed = HTMLInputElement | HTMLTextAreaElement;

/** Moves the focus to an input that has replaced the focused one, after the last character. */
function focusOnce(input: HTMLTextAreaElement | null): void {
  input?.focus();
  input?.setSelectionRange(input.value.length, input.value.length);
}

/**
 * An input for text, a number, or any value as JSON. It replaces the value whenever the text is
 * valid. The typed text stays unchanged: "1.0" may become "1.05".
 */
function TypedInput({ attributes, value, hint, onChange, shape }: InputProps): JSX.Element {
  const { kind } = shape;
  const [typed, setTyped] = useState("");
  const [isLong, setLong] = useState(false);
  const read = valueIn(kind, typed);
  const isCurrent = read.ok && JSON.stringify(read.value) === JSON.stringify(value);
  const text = isCurrent || !read.ok ? typed : textIn(kind, value);
  const type = (next: string): void => {
    setTyped(next);
    const parsed = valueIn(kind, next);
    if (parsed.ok) onChange(parsed.value);
  };
  const format = kind === "text" ? shape.format : kind === "number" ? undefined : "any JSON";
  const common = {
    ...attributes,
    "aria-invalid": attributes["aria-invalid"] || !read.ok,
    value: text,
    placeholder: format === undefined ? hint : `${format}, ${hint}`,
    spellcheck: false,
    autocomplete: "off",
    onInput({ currentTarget }: JSX.TargetedInputEvent<Typed>) {
      type(currentTarget.value);
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
  if (kind === "text" && !isLong && !text.includes("\n")) {
    /** Replaces the selection. An input would remove the line breaks, so the input gets long. */
    const insert = (event: Event & { readonly currentTarget: Typed }, added: string): void => {
      const { selectionStart, selectionEnd } = event.currentTarget;
      if (!added.includes("\n")) return;
      event.preventDefault();
      setLong(true);
      type(text.slice(0, selectionStart ?? 0) + added + text.slice(selectionEnd ?? text.length));
    };
    return (
      <input
        {...common}
        type="text"
        onPaste={(event) => insert(event, event.clipboardData?.getData("text") ?? "")}
        onKeyDown={(event) => event.key === "Enter" && event.shiftKey && insert(event, "\n")}
      />
    );
  }
  return (
    <>
      <textarea
        {...common}
        ref={isLong ? focusOnce : null}
        class={kind === "text" ? "" : "code"}
        rows={Math.min(12, text.split("\n").length)}
      />
      {!read.ok && <p class="wrong">This is not JSON yet; the value has not changed.</p>}
    </>
  );
}
