/** One call: its progress, its questions, its streamed values and its result. */

import { type ComponentChildren, Fragment, type JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { countTokens } from "../../finding/count_tokens.ts";
import { FormSchema } from "../../schema/form.ts";
import { type Answer, escapeInvisible, isObject, type Question } from "../../tool/mod.ts";
import { abort, answer, type PageCall } from "./calls.ts";
import { Form } from "./form.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { Block, Button, Coloured, Copy, Head, Id, milliseconds, Segments, Tree } from "./parts.tsx";
import { imagesIn, membersOf, nameOf, type Table, tableOf, textOf } from "./json_views.ts";
import { hrefOf } from "./route.ts";
import type { ProgramCallState } from "../../adapters/code/code_run.ts";

const STATUS = {
  running: ["running", "dim", "play"],
  waiting: ["waits for an answer", "warn", "hand"],
  ok: ["succeeded", "good", "check"],
  failed: ["failed", "bad", "x"],
} as const satisfies Record<PageCall["status"], readonly [string, string, IconName]>;

export function Status({ call }: { readonly call: PageCall }): JSX.Element {
  const { status, durationMs, failure } = call;
  const [text, tone, icon] = STATUS[status];
  return (
    <span class={`status ${tone}`}>
      <Icon name={icon} />
      {failure === undefined ? text : `${text}: ${failure.code}`}
      {durationMs !== undefined && status !== "running" && `, ${milliseconds(durationMs)}`}
    </span>
  );
}

/** @param props With `hasIssues`, a form shows the issues of the call's failure. */
export function CallView({ call, hasIssues = false }: {
  readonly call: PageCall;
  readonly hasIssues?: boolean;
}): JSX.Element {
  const { status, failure, questions, streamed, dropped, task, content } = call;
  const { value = null, log } = call.tool === RUN_CODE && isObject(content)
    ? content
    : { value: content };
  return (
    <section class="call panel" aria-label="Call">
      <header>
        <h2>Result</h2>
        <span role="status">
          <Status call={call} />
        </span>
        {status === "running" && (
          <Button kind="danger" onClick={() => void abort(call)}>Abort</Button>
        )}
        {task !== undefined && <a href={hrefOf({ page: "call", id: task })}>Link to this call</a>}
      </header>
      {status === "running" && <Progress call={call} />}
      {streamed.length > 0 && (
        <div class="streamed" role="log" aria-label="Streamed" tabIndex={0}>
          {dropped > 0 && <div class="faint">{dropped} earlier values are not shown</div>}
          {streamed.map(({ type, value }, index) => (
            <div key={index + dropped}>
              {type === "metadata" && <span class="faint">{`${type} `}</span>}
              {typeof value === "string" ? value : <Coloured text={JSON.stringify(value)} />}
            </div>
          ))}
        </div>
      )}
      <ProgramCalls inner={call.inner}>
        {questions !== undefined && status === "waiting" && (
          <Questions
            key={call.ticket ?? JSON.stringify(questions)}
            {...{ call, questions }}
          />
        )}
      </ProgramCalls>
      {failure !== undefined && !hasIssues && <p class="wrong">{failure.message}</p>}
      {status === "ok" && <Result content={value} truncated={call.truncated} />}
      {log !== undefined && <Block label="Log of the program">{String(log)}</Block>}
    </section>
  );
}

function Progress({ call: { progress } }: { readonly call: PageCall }): JSX.Element {
  if (progress === undefined) return <progress aria-label="The call runs" />;
  const { done, total, message } = progress;
  return (
    <div class="row">
      <progress
        aria-label="Progress"
        {...(total === undefined ? {} : { value: Math.min(done, total), max: total })}
      />
      <span>
        {total === undefined ? done : `${done} of ${total}`} {message}
      </span>
    </div>
  );
}

type View = "tree" | "text" | "table" | "image";

function Result({ content, truncated = false }: {
  readonly content: unknown;
  readonly truncated: boolean | undefined;
}): JSX.Element {
  const [wanted, setWanted] = useState<View>();
  const text = useMemo(() => textOf(content), [content]);
  const images = useMemo(() => imagesIn(content), [content]);
  const table = useMemo(() => tableOf(content), [content]);
  const views: (readonly [View, string])[] = [
    ["tree", "Tree"],
    ["text", "Text"],
    ...(table === undefined ? [] : [["table", "Table"] as const]),
    ...(images.length === 0 ? [] : [["image", "Image"] as const]),
  ];
  const best = images.length > 0 ? "image" : typeof content === "string" ? "text" : "tree";
  const view = views.some(([name]) => name === wanted) ? (wanted ?? best) : best;
  return (
    <>
      <div class="row">
        <Segments label="Show the result as" values={views} value={view} onChange={setWanted} />
        <span class="small faint grow number">about {countTokens(text)} tokens</span>
        <Copy text={text} label="Copy the result" />
      </div>
      {truncated && <p class="wrong">The content was cut to the limit of the service.</p>}
      <div class="result" tabIndex={0} role="region" aria-label="Result">
        {view === "tree" && <Tree value={content} />}
        {view === "text" && (
          <pre>{typeof content === "string" ? content : <Coloured text={text} />}</pre>
        )}
        {view === "table" && table !== undefined && <ResultTable table={table} />}
        {view === "image" &&
          images.map((source, index) => (
            <img key={index} src={source} alt={`Image ${index + 1} of the result`} />
          ))}
      </div>
    </>
  );
}

function ResultTable({ table: { columns, rows, total } }: { readonly table: Table }): JSX.Element {
  return (
    <>
      <table>
        <Head columns={columns} />
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, at) => (
                <td key={at}>{typeof cell === "string" ? cell : JSON.stringify(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length < total && <p class="faint">{total - rows.length} more rows are in the tree</p>}
    </>
  );
}

function Questions({ call, questions }: {
  readonly call: PageCall;
  readonly questions: readonly Question[];
}): JSX.Element {
  const [answers, setAnswers] = useState<Readonly<Record<string, Answer>>>({});
  // On a phone the questions are below the visible part. No button has the focus: a key that is
  // still pressed must not approve a call.
  const section = useRef<HTMLDivElement>(null);
  useEffect(() => {
    section.current?.scrollIntoView({ block: "nearest" });
    section.current?.focus({ preventScroll: true });
  }, []);
  const onAnswer = (key: string, own: Answer): void => {
    const next = { ...answers, [key]: own };
    setAnswers(next);
    if (questions.every(({ key }) => Object.hasOwn(next, key))) void answer(call, next);
  };
  return (
    <div class="questions stack" ref={section} tabIndex={-1} role="group" aria-label="Questions">
      {questions.map((question) =>
        Object.hasOwn(answers, question.key)
          ? <p key={question.key} class="faint">{question.message}: answered</p>
          : (
            <QuestionForm
              key={question.key}
              question={question}
              call={call}
              onAnswer={(own) => onAnswer(question.key, own)}
            />
          )
      )}
      <p>
        <Button
          kind="quiet"
          onClick={() =>
            void abort(call)}
        >
          Do not continue this call
        </Button>
      </p>
    </div>
  );
}

function QuestionForm({ question, call, onAnswer }: {
  readonly question: Question;
  readonly call: PageCall;
  readonly onAnswer: (answer: Answer) => void;
}): JSX.Element {
  const { kind, message, url, resumes = false, issues = [], arguments: input } = question;
  // A link with another scheme could run code.
  const visit = kind === "authorization" && /^https?:\/\//i.test(url ?? "") ? url : undefined;
  const isOpened = visit !== undefined && resumes;
  const schema = useMemo(() => new FormSchema(question.schema ?? {}), [question.schema]);
  const [content, setContent] = useState<unknown>(() => schema.initial(schema.root));
  const takesContent = kind === "input" && question.schema !== undefined;
  const accept = (): void => {
    // The call resumes when the person has finished on the other page.
    if (isOpened) open(visit, "_blank", "noopener,noreferrer");
    onAnswer({ action: "accept", ...(takesContent && { content }) });
  };
  const label = isOpened
    ? `Open ${new URL(visit).host}`
    : { approval: "Approve", authorization: "Done", input: "Answer", client: "Answer" }[kind];
  return (
    <fieldset class="question box stack warn tint plain">
      <legend>{message}</legend>
      {input !== undefined && (
        <dl class="box facts">
          {membersOf(input).map(([name, value]) => (
            <Fragment key={name}>
              <dt class="dim">{nameOf(name)}</dt>
              <dd>
                <Tree value={value} />
              </dd>
            </Fragment>
          ))}
        </dl>
      )}
      {call.tool === RUN_CODE && isObject(call.arguments) && (
        <details class="branch">
          <summary>Program</summary>
          <Block label="Program">{escapeInvisible(String(call.arguments["code"]))}</Block>
        </details>
      )}
      {visit !== undefined && !isOpened && (
        <p>
          <a href={visit} target="_blank" rel="noopener noreferrer">{visit}</a>
        </p>
      )}
      {takesContent && (
        <Form schema={schema} value={content} issues={issues} onChange={setContent} name="answer" />
      )}
      {!takesContent &&
        issues.map((issue) => <p key={issue.message} class="wrong">{issue.message}</p>)}
      <div class="row">
        <Button kind="main" onClick={accept}>{label}</Button>
        <Button kind="danger" onClick={() => onAnswer({ action: "decline" })}>Decline</Button>
        {kind !== "approval" && (
          <Button kind="quiet" onClick={() => onAnswer({ action: "cancel" })}>Cancel</Button>
        )}
      </div>
    </fieldset>
  );
}

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
