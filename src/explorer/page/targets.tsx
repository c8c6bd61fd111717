/** One tool in the format of every provider, with its tokens, and the losses in its schema. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { countTokens } from "../../finding/count_tokens.ts";
import type { ExportWarning, Loss, RejectedTool } from "../../formats/mod.ts";
import { ask, messageOf } from "./api.ts";
import { Bar, Block, Coloured, counted, Head, type Mark, MarkedJson } from "./parts.tsx";
import type { ListedTool } from "./tools.tsx";

/** The targets, inserted by the build. */
declare const TARGETS: readonly { readonly id: string; readonly title: string }[];

/** The response of `GET /tools?format=…&losses=1`. */
interface Export {
  readonly tools: unknown;
  readonly rejected: readonly RejectedTool[];
  readonly warnings: readonly ExportWarning[];
  readonly losses: readonly Loss[];
}

/** An export with its tokens, or the reason why there is none. */
type Exported = (Export & { readonly tokens: number }) | { readonly error: string };

const chosen = signal<readonly string[]>(["openai.chat.strict", "anthropic", "gemini"]);

export function Targets({ tool }: { readonly tool: ListedTool }): JSX.Element {
  const [exports, setExports] = useState<ReadonlyMap<string, Exported>>(new Map());
  useEffect(() => {
    const abort = new AbortController();
    setExports(new Map());
    for (const { id } of TARGETS) {
      void exportTo(id, tool.id, abort.signal).then((found) => {
        if (!abort.signal.aborted) setExports((known) => new Map([...known, [id, found]]));
      });
    }
    return () => abort.abort();
  }, [tool]);
  const most = Math.max(...[...exports.values()].map((one) => "error" in one ? 0 : one.tokens));
  const shown = TARGETS.filter(({ id }) => chosen.value.includes(id));
  return (
    <div class="stack wide targets">
      <div class="scroll" role="region" aria-label="Targets" tabIndex={0}>
        <table>
          <Head
            columns={["show", "target", "tokens", "losses"]}
            numbers={["tokens"]}
          />
          <tbody>
            {TARGETS.map(({ id, title }) => (
              <tr key={id}>
                <td>
                  <input
                    type="checkbox"
                    aria-label={`Show ${title}`}
                    checked={chosen.value.includes(id)}
                    onChange={() => (chosen.value = chosen.value.includes(id)
                      ? chosen.value.filter((one) => one !== id)
                      : [...chosen.value, id])}
                  />
                </td>
                <th scope="row">
                  {title} <code class="faint">{id}</code>
                </th>
                <Summary exported={exports.get(id)} most={most} />
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="stack wide shapes">
        {shown.map(({ id, title }) => (
          <Shape key={id} tool={tool} title={title} exported={exports.get(id)} />
        ))}
      </div>
    </div>
  );
}

async function exportTo(target: string, tool: string, signal: AbortSignal): Promise<Exported> {
  try {
    const query = new URLSearchParams({ format: target, losses: "1", allowIds: tool });
    const found = await ask<Export>(`tools?${query}`, { signal });
    return { ...found, tokens: countTokens(JSON.stringify(found.tools)) };
  } catch (error) {
    return { error: messageOf(error) };
  }
}

function Summary({ exported, most }: {
  readonly exported: Exported | undefined;
  readonly most: number;
}): JSX.Element {
  if (exported === undefined || "error" in exported) {
    return <td colSpan={2} class="faint">{exported?.error ?? "…"}</td>;
  }
  const { tokens, losses, rejected, warnings } = exported;
  const widened = losses.filter(({ widens }) => widens).length;
  const marks = [
    ...rejected.map(() => ["refused", "bad"] as const),
    ...[...Map.groupBy(losses, ({ grade }) => grade)].map(([grade, own]) =>
      [
        `${own.length} ${grade}`,
        grade === "lost" ? "bad" : grade === "moved" ? "dim" : "warn",
      ] as const
    ),
    ...(widened > 0 ? [[`${widened} accept more`, "warn"] as const] : []),
    ...(warnings.length > 0 ? [[counted(warnings.length, "warning"), "dim"] as const] : []),
  ];
  return (
    <>
      <td class="number">
        {rejected.length > 0 ? "–" : <Bar value={tokens} most={most}>{tokens}</Bar>}
      </td>
      <td>
        <span class="row">
          {marks.map(([text, tone]) => <span key={text} class={`badge ${tone}`}>{text}</span>)}
        </span>
      </td>
    </>
  );
}

/** Returns the JSON Pointer of a loss in the listed tool. */
function markOf({ side, path, grade, message }: Loss): Mark {
  const start = side === "input" ? "/parameters" : side === "output" ? "/returns" : "";
  return { pointer: start + path, grade, message };
}

function Shape({ tool, title, exported }: {
  readonly tool: ListedTool;
  readonly title: string;
  readonly exported: Exported | undefined;
}): JSX.Element {
  if (exported === undefined || "error" in exported) {
    return (
      <section class="box" aria-label={title}>
        <h2>{title}</h2>
        <p>{exported?.error ?? "Asking…"}</p>
      </section>
    );
  }
  const { rejected, losses, warnings, tools, tokens } = exported;
  const { parameters, returns } = tool;
  return (
    <section class="box stack" aria-label={title}>
      <h2>
        {title} <span class="small faint">about {tokens} tokens</span>
      </h2>
      {rejected.map(({ message }) => <p key={message} class="wrong">{message}</p>)}
      {warnings.map(({ message }) => <p key={message} class="warn">{message}</p>)}
      <h3>{losses.length === 0 ? "Nothing is lost" : "Losses in the tool's own schema"}</h3>
      {losses.length > 0 && (
        <MarkedJson
          label={`${title}: losses`}
          value={{ parameters, ...(returns === undefined ? {} : { returns }) }}
          marks={losses.map(markOf)}
        />
      )}
      <h3>What is sent</h3>
      <Block label={`${title}: sent to the provider`}>
        <Coloured text={JSON.stringify(tools, null, 2)} />
      </Block>
    </section>
  );
}
