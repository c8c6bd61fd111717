/** The view that calls a tool: form, JSON arguments, progress, result and code samples. */

import type { JSX } from "preact";
import { useId, useMemo, useRef, useState } from "preact/hooks";
import { FormSchema } from "../../schema/form.ts";
import { explainWithoutEngine } from "../../schema/mod.ts";
import { calls, lastCallOf, run } from "./calls.ts";
import { CallView } from "./call_view.tsx";
import { Form } from "./form.tsx";
import { parse } from "./json_views.ts";
import { Icon } from "./icons.tsx";
import { Button, counted, Segments, SHORTCUT, useRun } from "./parts.tsx";
import { hrefOfCall } from "./route.ts";
import { Samples } from "./samples.tsx";
import type { ListedTool } from "./tools.tsx";

/** The arguments, and their text, which may be invalid JSON. */
interface Draft {
  readonly value: unknown;
  readonly text: string;
  readonly error?: string;
}

function draftOf(value: unknown): Draft {
  return { value, text: JSON.stringify(value, null, 2) };
}

/** The entered arguments by tool, stored while other views are open. */
const drafts = new Map<string, Draft>();

/** Returns the initial arguments: from a link, from an earlier entry, or from the schema. */
function firstDraft(id: string | undefined, schema: FormSchema, linked: string | undefined): Draft {
  if (linked === undefined) {
    return drafts.get(id ?? "") ?? draftOf(schema.initial(schema.root) ?? {});
  }
  const read = parse(linked);
  return read.ok ? draftOf(read.value) : { value: {}, text: linked, error: read.message };
}

const NEAREST = { block: "nearest" } as const;

/** Some programs truncate longer links. */
const MAX_LINK = 8_000;

/** A tool with its form, which is remounted for each tool and link. */
export function Try({ tool, linked }: {
  readonly tool: ListedTool;
  readonly linked: string | undefined;
}): JSX.Element {
  const schema = useMemo(() => new FormSchema(tool.parameters), [tool.parameters]);
  // The service reports the same issues. Only the service also validates formats.
  const check = useMemo(() => explainWithoutEngine(tool.parameters), [tool.parameters]);
  const [draft, setDraft] = useState(() => firstDraft(tool.id, schema, linked));
  // An input shows issues only after it was edited.
  const [isTouched, setTouched] = useState(linked !== undefined || drafts.has(tool.id));
  // Subscribes to the calls.
  const call = calls.value.length === 0 ? undefined : lastCallOf(tool.id);
  const [mode, setMode] = useState<"form" | "json">("form");
  const [isShown, setShown] = useState(call !== undefined);
  const edit = (next: Draft): void => {
    setTouched(true);
    setDraft(next);
    drafts.set(tool.id, next);
  };
  const own = useMemo(() => check(draft.value), [check, draft.value]);
  const answered = call?.failure?.code === "invalid_arguments" && call.arguments === draft.value
    ? call.failure.issues
    : [];
  const issues = answered.length > 0 ? answered : isTouched ? own : [];
  const canRun = draft.error === undefined && tool.executable;
  const isRunning = call?.status === "running";
  const start = (): void => {
    if (!canRun || isRunning) return;
    setTouched(true);
    setShown(true);
    void run(tool.id, draft.value);
    // On a phone the result is below the visible part.
    requestAnimationFrame(() => aside.current?.firstElementChild?.scrollIntoView(NEAREST));
  };
  const aside = useRef<HTMLElement>(null);
  const link = hrefOfCall(tool.id, draft.value);
  useRun(start);
  return (
    <div class="try">
      <section class="arguments stack" aria-label="Arguments">
        <div class="row">
          <h2 class="grow">Arguments</h2>
          <Segments
            label="Edit the arguments as"
            values={[["form", "Form"], ["json", "JSON"]]}
            value={mode}
            onChange={setMode}
          />
        </div>
        <Examples tool={tool} onPick={(input) => edit(draftOf(input))} />
        {mode === "form"
          ? (
            <Form
              schema={schema}
              value={draft.value}
              issues={issues}
              onChange={(value) => edit(draftOf(value ?? {}))}
              name="arguments"
            />
          )
          : (
            <>
              <Editor
                label="The arguments as JSON"
                text={draft.text}
                error={draft.error}
                onChange={(text) => {
                  const read = parse(text);
                  const { value } = read.ok ? read : draft;
                  edit(read.ok ? { value, text } : { value, text, error: read.message });
                }}
              />
              {issues.map(({ path, message }) => <p key={path + message} class="wrong">{message}
              </p>)}
            </>
          )}
      </section>
      <div class="runbar row">
        <Button kind="main" disabled={!canRun} busy={isRunning} onClick={start}>
          <Icon name="play" />
          Run <kbd aria-hidden="true">{SHORTCUT} ↵</kbd>
        </Button>
        <span class="small dim grow">
          {issues.length > 0
            ? (
              <Button kind="quiet" onClick={goToMistake}>
                <span class="bad">{counted(issues.length, "mistake")}</span>
              </Button>
            )
            : !tool.executable
            ? "This tool is a definition only: it cannot be called."
            : draft.error !== undefined
            ? "The JSON is invalid."
            : tool.requiresApproval === true && "Waits for an approval before it runs."}
        </span>
        <Button
          kind="quiet small"
          label="Reset the arguments"
          onClick={() => edit(firstDraft(undefined, schema, undefined))}
        >
          <Icon name="reset" />
        </Button>
        {link.length <= MAX_LINK && (
          <a class="button quiet small" href={link} aria-label="Link to this call">
            <Icon name="link" />
          </a>
        )}
      </div>
      <aside class="stack" ref={aside} aria-label="Result and samples">
        {isShown && call !== undefined
          ? <CallView call={call} hasIssues={(call.failure?.issues.length ?? 0) > 0} />
          : <p class="panel pad faint empty">The result of a call appears here.</p>}
        <Samples tool={tool} input={draft.value} />
      </aside>
    </div>
  );
}

function goToMistake(): void {
  document.querySelector<HTMLElement>(".arguments [aria-invalid=true]")?.focus();
}

/** An editor for JSON: a text area supports undo, selection and screen readers. */
export function Editor({ label, text, error, onChange }: {
  readonly label: string;
  readonly text: string;
  readonly error?: string | undefined;
  readonly onChange: (text: string) => void;
}): JSX.Element {
  const id = useId();
  return (
    <div class="editor">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        class="code"
        value={text}
        wrap="off"
        spellcheck={false}
        autocomplete="off"
        aria-invalid={error !== undefined}
        aria-describedby={`${id}-wrong`}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <p id={`${id}-wrong`} class="wrong" role="status">
        {error}
      </p>
    </div>
  );
}

function Examples({ tool, onPick }: {
  readonly tool: ListedTool;
  readonly onPick: (input: unknown) => void;
}): JSX.Element | null {
  const { examples = [] } = tool;
  if (examples.length === 0) return null;
  return (
    <div class="row">
      <span class="faint">Examples:</span>
      {examples.map(({ description, input }, index) => (
        <Button
          key={index}
          kind="quiet"
          onClick={() => onPick(input)}
        >
          {description ?? `Example ${index + 1}`}
        </Button>
      ))}
    </div>
  );
}
