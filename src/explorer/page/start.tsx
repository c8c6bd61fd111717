/** The start page: calls that wait, the tools by namespace, samples to connect, and latest calls. */

import { computed } from "@preact/signals";
import type { JSX } from "preact";
import { RISK_LEVELS, type RiskLevel } from "../../tool/mod.ts";
import { ApiError, BASE, send, token } from "./api.ts";
import { calls, findTasks, type PageCall } from "./calls.ts";
import { Status } from "./call_view.tsx";
import { Icon } from "./icons.tsx";
import { Block, Coloured, counted, Id, Risk, useLoaded, Word } from "./parts.tsx";
import { hrefOfCall } from "./route.ts";
import { Samples } from "./samples.tsx";
import { type ListedTool, loading, revision, showOnly, tools } from "./tools.tsx";

export function Start(): JSX.Element {
  const list = [...tools.value.values()];
  const state = loading.value;
  const waiting = calls.value.filter(({ status }) => status === "waiting");
  // Not before the tools are loaded: until then, the service may reject the token.
  useLoaded(async () => revision.value > 0 && await findTasks(), [revision.value > 0]);
  return (
    <main id="main" tabIndex={-1} class="stack start">
      {waiting.map((call) => <Waiting key={call.callId} call={call} />)}
      <div class="row hello">
        <h1>
          <Word />
        </h1>
        <p class="dim">
          {token.value === "" ? "The tools of" : "The tools that your token allows at"}{" "}
          <code>{BASE}</code>
        </p>
      </div>
      {typeof state === "object" && <p class="wrong">{state.error}</p>}
      {state === "ready" && list.length === 0 && (
        <p>You may not see any tools. Another token may allow some.</p>
      )}
      {list.length > 0 && (
        <>
          <div class="two">
            <Overview list={list} />
            <Connect />
          </div>
          <h2>Tools to try</h2>
          <div class="three">
            {toTry.value.map((tool) => <Card key={tool.id} tool={tool} />)}
          </div>
        </>
      )}
      {calls.value.length > 0 && <Latest />}
    </main>
  );
}

function Waiting({ call }: { readonly call: PageCall }): JSX.Element {
  const { task, tool, questions = [] } = call;
  return (
    <section class="box warn tint plain row question" aria-label="Waiting call">
      <Status call={call} />
      <span class="grow">
        <Id id={tool} /> {questions[0]?.message}
      </span>
      <a
        class="button main"
        href={task === undefined ? hrefOfCall(tool, call.arguments) : "#/calls"}
      >
        Answer
      </a>
    </section>
  );
}

/** The maximum number of namespaces, and of bars of a namespace. */
const MAX_ROWS = 10;
const MAX_BARS = 40;
const HEIGHTS = { safe: 4, low: 8, medium: 13, high: 18, critical: 24 };

function Overview({ list }: { readonly list: readonly ListedTool[] }): JSX.Element {
  const byRisk = Map.groupBy(list, ({ risk }) => risk);
  const groups = [...Map.groupBy(list, ({ namespace = "" }) => namespace)];
  return (
    <section class="panel" aria-label="Tools by namespace">
      <header class="pad">
        <strong class="big">{list.length}</strong>
        <p class="small dim grow">
          tools in {counted(groups.length, "namespace")}
          <br />
          <a href="#/why">Who sees which tool, and why</a>
        </p>
        {RISK_LEVELS.filter((level) => byRisk.has(level)).map((level) => (
          <span key={level} class="legend">
            <b>{byRisk.get(level)?.length}</b>
            <Risk level={level} />
          </span>
        ))}
      </header>
      <ul>
        {groups.slice(0, MAX_ROWS).map(([name, group]) => (
          <li key={name}>
            <a class="namespace" href="#/tools" onClick={() => showOnly(name)}>
              <code class="cut">{name || "no namespace"}</code>
              <Bars levels={group.map(({ risk }) => risk)} />
              <span class="number">{group.length}</span>
            </a>
          </li>
        ))}
      </ul>
      <p class="small pad">
        <a href="#/tools" onClick={() => showOnly("")}>All {counted(list.length, "tool")}</a>
      </p>
    </section>
  );
}

/** A bar for each tool, or for a part of many tools. A higher risk has a higher bar. */
function Bars({ levels }: { readonly levels: readonly RiskLevel[] }): JSX.Element {
  const each = Math.ceil(levels.length / MAX_BARS);
  const sorted = RISK_LEVELS.flatMap((level) => levels.filter((one) => one === level));
  const shown = sorted.filter((_, index) => index % each === 0);
  return (
    <svg
      class="bars"
      viewBox={`0 0 ${MAX_BARS * 10} 24`}
      preserveAspectRatio="xMinYMax meet"
      aria-hidden="true"
    >
      {shown.map((level, index) => (
        <path
          key={index}
          class={level}
          d={`M${index * 10} 24h7v-${HEIGHTS[level]}h-7z`}
        />
      ))}
    </svg>
  );
}

/** The three tools with the least risk that need no approval; tools with examples come first. */
const toTry = computed(() =>
  [...tools.value.values()]
    .filter((tool) => tool.executable && tool.requiresApproval !== true)
    .map((tool) =>
      [tool, RISK_LEVELS.indexOf(tool.risk) * 2 + (tool.examples?.length ? 0 : 1)] as const
    )
    .sort(([, a], [, b]) => a - b)
    .slice(0, 3)
    .map(([tool]) => tool)
);

function Card({ tool }: { readonly tool: ListedTool }): JSX.Element {
  const { id, title, description, risk, examples = [] } = tool;
  const input = examples[0]?.input;
  return (
    <article class="panel pad stack">
      <div class="row">
        <h3 class="grow">{title ?? <Id id={id} />}</h3>
        <Risk level={risk} />
      </div>
      {input === undefined
        ? <p class="small dim">{description}</p>
        : (
          <Block label={`Example for ${id}`}>
            <Coloured text={JSON.stringify(input, null, 2)} />
          </Block>
        )}
      <div>
        <a class="button" href={hrefOfCall(id, input)}>
          <Icon name="play" />
          Try it
        </a>
      </div>
    </article>
  );
}

/** A call for other programs, and the configuration of MCP clients if the service has MCP. */
function Connect(): JSX.Element | null {
  const { value: hasMcp } = useLoaded(findMcp, [revision.value > 0]);
  const tool = toTry.value[0];
  if (tool === undefined) return null;
  const headers = { authorization: "Bearer $PLUE_TOKEN" };
  const server = { type: "http", url: `${BASE}mcp`, ...(token.value !== "" && { headers }) };
  const config = JSON.stringify({ mcpServers: { plue: server } }, null, 2);
  return (
    <Samples
      key={String(hasMcp)}
      title="Connect a program"
      tool={tool}
      input={tool.examples?.[0]?.input ?? {}}
      more={hasMcp === true ? { MCP: config } : {}}
    />
  );
}

/** Returns true if the service answers at the address of MCP, with any answer but 404. */
async function findMcp(signal: AbortSignal): Promise<boolean> {
  if (revision.value === 0) return false;
  try {
    await send("mcp", { method: "HEAD", signal });
    return true;
  } catch (error) {
    return error instanceof ApiError && error.status !== 404;
  }
}

const MAX_CALLS = 6;

function Latest(): JSX.Element {
  return (
    <section class="panel" aria-label="Latest calls">
      <header>
        <h2 class="grow">Latest calls</h2>
        <a class="small" href="#/calls">All calls</a>
      </header>
      <table>
        <tbody>
          {calls.value.slice(0, MAX_CALLS).map((call) => (
            <tr key={call.callId}>
              <td class="dim">{new Date(call.startedAt).toLocaleTimeString()}</td>
              <td>
                <a href={hrefOfCall(call.tool, call.arguments)}>
                  <Id id={call.tool} />
                </a>
              </td>
              <td>
                <Status call={call} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
