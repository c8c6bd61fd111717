/** The page of one tool: its title, id and risk, and the views that call, export and list it. */

import type { JSX } from "preact";
import { ask } from "./api.ts";
import { Block, Coloured, Copy, Id, Risk, useLoaded } from "./parts.tsx";
import { hrefOf, type Route, VIEWS } from "./route.ts";
import { Targets } from "./targets.tsx";
import { type ListedTool, loading, revision, tools, unavailable } from "./tools.tsx";
import { Try } from "./try.tsx";

export function ToolPage({ shown }: {
  readonly shown: Route & { readonly page: "tool" };
}): JSX.Element {
  const { id, view } = shown;
  const listed = tools.value.get(id);
  const state = loading.value;
  // An unavailable tool is not listed, but can be shown.
  const { value: found, error } = useLoaded(
    async () =>
      listed === undefined && state === "ready"
        ? await ask<ListedTool>(`tools/${encodeURIComponent(id)}`)
        : undefined,
    [id, listed, revision.value, state],
  );
  const tool = listed ?? (found?.id === id ? found : undefined);
  const absent = unavailable.value.find((one) => one.id === id);
  if (tool === undefined) {
    return (
      <main id="main" tabIndex={-1}>
        <h1>
          <code>{id}</code>
        </h1>
        <p>{error ?? (typeof state === "object" ? state.error : "Asking…")}</p>
      </main>
    );
  }
  return (
    <main id="main" tabIndex={-1} class="tool-page">
      <header>
        <About tool={tool} />
        {absent !== undefined && <p class="wrong">{absent.reason}</p>}
        <nav class="tabs" aria-label="Views">
          {VIEWS.map(([name, text]) => (
            <a
              key={name}
              href={hrefOf({ page: "tool", id, view: name })}
              aria-current={name === view ? "page" : undefined}
            >
              {text}
            </a>
          ))}
        </nav>
      </header>
      {view === "try" && (
        <Try key={`${id} ${shown.arguments}`} tool={tool} linked={shown.arguments} />
      )}
      {view === "targets" && <Targets tool={tool} />}
      {view === "schema" && (
        <div class="pad">
          <Block label="The tool as the service lists it">
            <Coloured text={JSON.stringify(tool, null, 2)} />
          </Block>
        </div>
      )}
    </main>
  );
}

function About({ tool }: { readonly tool: ListedTool }): JSX.Element {
  const { id, title, description, risk, category, tags, deprecated } = tool;
  const marks = [
    ...(category === undefined ? [] : [category]),
    ...(tool.requiresApproval === true ? ["needs approval"] : []),
    ...(deprecated === undefined
      ? []
      : [typeof deprecated === "string" ? `deprecated: ${deprecated}` : "deprecated"]),
    ...tags,
  ];
  return (
    <>
      <h1>{title ?? id.slice(id.indexOf(":") + 1)}</h1>
      <p class="row">
        <Id id={id} />
        <Copy text={id} label="Copy the id" />
        <Risk level={risk} />
        {marks.map((mark) => <span key={mark} class="badge">{mark}</span>)}
      </p>
      <p class="description dim">{description}</p>
    </>
  );
}
