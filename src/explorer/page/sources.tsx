/** The sources of the service: their states, and the tools that wait for an approval. */

import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { pointerSteps } from "../../schema/references.ts";
import { isObject } from "../../tool/mod.ts";
import { ApiError, ask, type ListedSource as Source, messageOf, sessions } from "./api.ts";
import { Icon } from "./icons.tsx";
import { Block, Button, counted, Id, useGrowing, useLoaded, useRounds } from "./parts.tsx";
import { revision } from "./tools.tsx";

type Held = Source["held"][number];

interface Sources {
  readonly sources: readonly Source[];
}

/** The sources; `undefined` if the service has none, or the caller may not see them. */
const found = signal<readonly Source[] | undefined>(undefined);

export const hasSources = computed(() => found.value !== undefined);

export const heldCount = computed(() =>
  (found.value ?? []).reduce((sum, { held }) => sum + held.length, 0)
);

/** The session whose token may not see sources. */
let rejected: number | undefined;

/** Loads the sources, unless the service has rejected this token before. */
export async function loadSources(): Promise<void> {
  const session = sessions.value;
  if (revision.value === 0 || rejected === session) return;
  try {
    found.value = (await ask<Sources>("sources")).sources;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    rejected = session;
    found.value = undefined;
  }
}

export function SourcesPage(): JSX.Element {
  const { error } = useLoaded(loadSources, [useRounds()]);
  const sources = found.value ?? [];
  const held = heldCount.value;
  return (
    <main class="stack" id="main" tabIndex={-1}>
      <h1>Sources</h1>
      <p class="dim" role="status">
        {error ?? (found.value === undefined
          ? "You may not see the sources. Another token may show them."
          : counted(sources.length, "source") +
            (held === 0 ? "" : `, ${counted(held, "tool")} held back`))}
      </p>
      {sources.map((source) => <SourcePanel key={keyOf(source)} source={source} />)}
    </main>
  );
}

function keyOf({ tenant, name }: Source): string {
  return tenant === undefined ? name : `${tenant}/${name}`;
}

function SourcePanel({ source }: { readonly source: Source }): JSX.Element {
  const { name, tenant, from, state, since, tools, reason, problems, held, mayApprove } = source;
  const heading = useRef<HTMLHeadingElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [message, setMessage] = useState("");
  const { count, end } = useGrowing<HTMLParagraphElement>(held.length);
  const approve = async (approved: readonly Held[]): Promise<void> => {
    setBusy(true);
    const ids = approved.map(({ id, digest }) => ({ id, digest }));
    const body = { source: name, ...(tenant !== undefined && { tenant }), tools: ids };
    try {
      found.value = (await ask<Sources>("sources/approve", { method: "POST", body })).sources;
      setMessage(`Approved ${ids.map(({ id }) => id).join(", ")}`);
      // The button is removed, and the focus would be lost.
      heading.current?.focus();
    } catch (error) {
      setMessage(messageOf(error));
      await loadSources();
    }
    setBusy(false);
  };
  const button = (approved: readonly Held[], verb: string, what: string | undefined) =>
    mayApprove && approved.length > 0 && (
      <Button
        kind={what === undefined ? "plain" : "main"}
        busy={isBusy}
        {...(what !== undefined && { label: `${verb} ${what} of ${keyOf(source)}` })}
        onClick={() => void approve(approved)}
      >
        {verb}
      </Button>
    );
  return (
    <section class="panel" aria-label={keyOf(source)}>
      <header>
        <h2 ref={heading} tabIndex={-1}>{keyOf(source)}</h2>
        <State source={source} />
        <span class="small dim grow">{counted(tools, "tool")}, {from}</span>
        <span class="small faint">
          {state} since {new Date(since).toLocaleString()}
        </span>
        {held.length > 1 && button(held, `Approve all ${held.length}`, undefined)}
      </header>
      <p class={message.startsWith("Cannot") ? "wrong" : "small good"} role="status">{message}</p>
      {[...(reason === undefined ? [] : [reason]), ...problems].map((text) => (
        <p key={text} class="small dim">{text}</p>
      ))}
      {held.length > 0 && !mayApprove && (
        <p class="small">
          To approve tools, enter the token of a caller with <code>"operator": true</code>.
        </p>
      )}
      {held.slice(0, count).map((tool) => (
        <article key={tool.id} class="stack">
          <div class="row">
            <Id id={tool.id} />
            <span class={`badge ${tool.grade === "risk_raised" ? "bad" : ""}`}>{tool.kind}</span>
            <span class="grow" />
            {button([tool], tool.kind === "vanished" ? "Forget" : "Approve", tool.id)}
          </div>
          <p class="about">{tool.reason}</p>
          <Differences tool={tool} source={keyOf(source)} />
        </article>
      ))}
      {held.length > count && <p ref={end} class="small">{held.length - count} more</p>}
    </section>
  );
}

function State({ source: { state, held } }: { readonly source: Source }): JSX.Element {
  const [tone, icon, text] = state === "unavailable"
    ? ["bad", "x", "unavailable"] as const
    : held.length > 0
    ? ["warn", "hand", `${held.length} held back`] as const
    : ["good", "check", "connected"] as const;
  return (
    <span class={`status ${tone}`}>
      <Icon name={icon} />
      {text}
    </span>
  );
}

/** The definition of a new tool, or the changed parts of a known one. */
function Differences({ tool, source }: {
  readonly tool: Held;
  readonly source: string;
}): JSX.Element | null {
  const { id, kind, changes, before, after } = tool;
  if (kind === "vanished") return null;
  const parts = before === undefined ? [{ path: "" }] : changes;
  return (
    <Block label={`Changes of ${id} of ${source}`}>
      {parts.map(({ path }) => {
        const [old, now] = [before, after].map((definition) => textAt(definition, path));
        return (
          <span key={path}>
            {path !== "" && <span class="faint">{path}</span>}
            {old !== undefined && <Text sign="−" text={old} other={now} />}
            {now !== undefined && <Text sign="+" text={now} other={old} />}
          </span>
        );
      })}
    </Block>
  );
}

/** A text, with a mark from the first to the last character that differs from another text. */
function Text({ sign, text, other = text }: {
  readonly sign: "−" | "+";
  readonly text: string;
  readonly other?: string | undefined;
}): JSX.Element {
  const most = Math.min(text.length, other.length);
  let start = 0;
  while (start < most && text[start] === other[start]) start++;
  let end = 0;
  while (end < most - start && text.at(-1 - end) === other.at(-1 - end)) end++;
  return (
    <span class={sign === "+" ? "good tint plain" : "bad tint plain"}>
      {`${sign} ${text.slice(0, start)}`}
      <mark>{text.slice(start, text.length - end)}</mark>
      {text.slice(text.length - end)}
    </span>
  );
}

/** Returns the value at a JSON Pointer as text. Characters that cannot be seen are escaped. */
function textAt(definition: unknown, path: string): string | undefined {
  let value = definition;
  for (const step of pointerSteps(path)) {
    value = isObject(value) || Array.isArray(value) ? value[step as never] : undefined;
  }
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return text?.replace(
    /(?!\n)[\p{C}\p{Zl}\p{Zp}]/gu,
    (hidden) => `\\u{${hidden.codePointAt(0)?.toString(16)}}`,
  );
}
