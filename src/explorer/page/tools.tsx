/** The caller's tools and their changes, and the list of them with its search and filters. */

import { computed, effect, signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { ToolExplanation } from "../../select/mod.ts";
import { RISK_LEVELS, type RiskLevel, type Tool } from "../../tool/mod.ts";
import { ApiError, ask, eventsOf, messageOf, send, sessions } from "./api.ts";
import { Icon } from "./icons.tsx";
import { counted, Risk, useGrowing } from "./parts.tsx";
import { hrefOf, route } from "./route.ts";

/** A tool in the service's listing: the fields that the page shows. */
export type ListedTool =
  & Pick<Tool, "id" | "description" | "parameters" | "risk" | "tags">
  & Partial<Pick<Tool, "namespace" | "title" | "returns" | "category">>
  & Partial<Pick<Tool, "examples" | "deprecated" | "requiresApproval">>
  & { readonly executable: boolean };

export type Explained = Omit<ToolExplanation, "steps"> & { readonly risk: RiskLevel };

/** The response of `GET /explain`. */
export interface Explanations {
  readonly roles: readonly string[];
  readonly scopes: readonly string[];
  readonly tools: readonly Explained[];
}

/** The tools that are available, by id, in order. */
export const tools = signal<ReadonlyMap<string, ListedTool>>(new Map());
/** The caller's tools that are not available now. */
export const unavailable = signal<readonly Explained[]>([]);
export const loading = signal<"loading" | "ready" | { readonly error: string }>("loading");
/** True if the page receives changes of the tools. */
export const isLive = signal(false);
/** The number of times that the tools were loaded, for dependent views. */
export const revision = signal(0);

const query = signal("");
/** The results of the service's search, best first. */
const hits = signal<readonly string[]>([]);

/** The filters, each with a tool's values. */
const FILTERS = {
  namespace: ({ namespace = "" }: ListedTool) => [namespace],
  category: ({ category = "" }: ListedTool) => [category],
  risk: ({ risk }: ListedTool) => [risk],
  tag: ({ tags }: ListedTool) => tags,
} as const satisfies Record<string, (tool: ListedTool) => readonly string[]>;
type FilterName = keyof typeof FILTERS;
const FILTER_NAMES = Object.keys(FILTERS) as FilterName[];

const filters = signal<{ readonly [Name in FilterName]?: string }>({});

/** Shows only the tools of a namespace; all tools for an empty name. */
export function showOnly(namespace: string): void {
  query.value = "";
  filters.value = namespace === "" ? {} : { namespace };
}

function passes(tool: ListedTool, name: FilterName): boolean {
  const wanted = filters.value[name];
  const values: readonly string[] = FILTERS[name](tool);
  return !wanted || values.includes(wanted);
}

const filterValues = computed(() =>
  FILTER_NAMES.map((name) => {
    const found = new Set([...tools.value.values()].flatMap<string>(FILTERS[name]));
    const values = name === "risk" ? RISK_LEVELS : [...found].filter(Boolean).sort();
    return { name, values };
  })
);

/** The listed tools: search results first, then tools that contain the query. */
export const shown = computed<readonly ListedTool[]>(() => {
  const words = query.value.trim().toLowerCase();
  const kept = [...tools.value.values()]
    .filter((tool) => FILTER_NAMES.every((name) => passes(tool, name)));
  if (words === "") return kept;
  const found = hits.value.flatMap((id) => kept.find((tool) => tool.id === id) ?? []);
  const holding = kept.filter((tool) =>
    `${tool.id}\n${tool.title ?? ""}\n${tool.description}`.toLowerCase().includes(words)
  );
  return [...new Set([...found, ...holding])];
});

/** The response of `GET /tools`. */
interface Page {
  readonly tools: readonly ListedTool[];
  readonly nextCursor?: string;
}

const SEARCH_AFTER_MS = 120;
const MAX_HITS = 50;

effect(() => {
  const words = query.value.trim();
  void revision.value;
  hits.value = [];
  if (words === "") return;
  const abort = new AbortController();
  const timer = setTimeout(async () => {
    try {
      const path = `tools?${new URLSearchParams({ q: words, limit: String(MAX_HITS) })}`;
      const found = await ask<Page>(path, { signal: abort.signal });
      hits.value = found.tools.map(({ id }) => id);
    } catch {
      // Another search has begun, or the service has no search.
    }
  }, SEARCH_AFTER_MS);
  return () => {
    clearTimeout(timer);
    abort.abort();
  };
});

async function load(signal: AbortSignal): Promise<void> {
  try {
    const explained = ask<Explanations>("explain", { signal });
    // Awaited below. If the listing fails first, this promise still needs a handler.
    explained.catch(() => {});
    const found = new Map<string, ListedTool>();
    for (let path: string | undefined = "tools"; path !== undefined;) {
      const page: Page = await ask(path, { signal });
      for (const tool of page.tools) found.set(tool.id, tool);
      const { nextCursor: cursor } = page;
      path = cursor && `tools?${new URLSearchParams({ cursor })}`;
    }
    const absent = (await explained).tools.filter((tool) => tool.selected && !tool.available);
    if (signal.aborted) return;
    tools.value = found;
    unavailable.value = absent;
    loading.value = "ready";
    revision.value++;
  } catch (error) {
    if (signal.aborted) return;
    loading.value = { error: messageOf(error) };
  }
}

const RETRY_MS = 3_000;

/** Loads the tools, and reloads them whenever they change. */
async function follow(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const response = await send("events", { accept: "text/event-stream", signal });
      // Load after the stream has begun, so that no change is missed.
      await load(signal);
      if (response.status === 204) return;
      isLive.value = true;
      let isLoading = false;
      let isStale = false;
      for await (const _ of eventsOf(response)) {
        isStale = true;
        if (isLoading) continue;
        isLoading = true;
        void (async () => {
          while (isStale) {
            isStale = false;
            await load(signal);
          }
          isLoading = false;
        })();
      }
    } catch (error) {
      if (signal.aborted) return;
      isLive.value = false;
      if (error instanceof ApiError && error.status === 401) {
        loading.value = { error: error.message };
        return;
      }
      if (loading.value !== "ready") await load(signal);
    }
    isLive.value = false;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** Starts following the tools; restarts with each token. */
export function start(): void {
  effect(() => {
    void sessions.value;
    loading.value = "loading";
    tools.value = new Map();
    unavailable.value = [];
    const abort = new AbortController();
    void follow(abort.signal);
    return () => abort.abort();
  });
}

/** The search field, which "/" focuses. */
export const SEARCH_ID = "search";

/** Moves the focus to the next or previous tool of the list. */
function moveIn(event: JSX.TargetedKeyboardEvent<HTMLElement>): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>("a.tool")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  const next = event.key === "ArrowDown" ? at + 1 : at - 1;
  if (next < 0) document.getElementById(SEARCH_ID)?.focus();
  else links[next]?.focus();
  event.preventDefault();
}

export function ToolList(): JSX.Element {
  const list = shown.value;
  const { count, end } = useGrowing<HTMLParagraphElement>(list.length);
  const isFiltered = query.value.trim() !== "" || Object.values(filters.value).some(Boolean);
  return (
    <nav class="tools" aria-label="Tools" onKeyDown={moveIn}>
      <div class="search">
        <div class="row">
          <SearchField />
          <Filters />
        </div>
        <p class="about" role="status">{countOf(list.length, isFiltered)}</p>
      </div>
      <div class="list">
        {[...Map.groupBy(list.slice(0, count), groupOf)].map(([name, group]) => (
          <Group key={name} name={name} count={sizes.value.get(name)}>
            {group.map(({ id, title, risk, description }) => (
              <Entry key={id} id={id} risk={risk} about={title ?? description} />
            ))}
          </Group>
        ))}
        {list.length > count && (
          <p ref={end} class="faint pad">
            {list.length - count} more
          </p>
        )}
        {!isFiltered && list.length <= count && unavailable.value.length > 0 && (
          <Group name="not available now" count={unavailable.value.length}>
            {unavailable.value.map(({ id, risk, reason }) => (
              <Entry
                key={id}
                {...{ id, risk, about: reason.replace(/^.*?now: /, ""), isAbsent: true }}
              />
            ))}
          </Group>
        )}
      </div>
    </nav>
  );
}

/** The heading of a tool in the list. Search results have no headings. */
function groupOf({ namespace = "" }: ListedTool): string {
  return query.value.trim() === "" ? namespace : "";
}

/** The number of listed tools by heading. */
const sizes = computed<ReadonlyMap<string, number>>(() =>
  new Map(
    [...Map.groupBy(shown.value, groupOf)].map(([name, group]) => [name, group.length] as const),
  )
);

function Group({ name, count, children }: {
  readonly name: string;
  readonly count: number | undefined;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <section>
      {name !== "" && (
        <h2>
          {name} <span class="faint">{count}</span>
        </h2>
      )}
      <ul>{children}</ul>
    </section>
  );
}

export function SearchField(): JSX.Element {
  return (
    <div class="grow">
      <label for={SEARCH_ID} class="hidden">Search tools</label>
      <input
        id={SEARCH_ID}
        type="search"
        placeholder="Search tools"
        value={query.value}
        onInput={(event) => (query.value = event.currentTarget.value)}
        autocomplete="off"
        spellcheck={false}
      />
    </div>
  );
}

function Entry({ id, risk, about, isAbsent = false }: {
  readonly id: string;
  readonly risk: RiskLevel;
  readonly about: string;
  readonly isAbsent?: boolean;
}): JSX.Element {
  const isChosen = route.value.page === "tool" && route.value.id === id;
  return (
    <li>
      <a
        class={isAbsent ? "tool absent" : "tool"}
        href={hrefOf({ page: "tool", id, view: "try" })}
        aria-current={isChosen ? "page" : undefined}
      >
        <Risk level={risk} isBare />
        <code class="cut">
          <span class={isAbsent || query.value.trim() !== "" ? "faint" : "hidden"}>
            {id.slice(0, id.indexOf(":") + 1)}
          </span>
          {id.slice(id.indexOf(":") + 1)}
        </code>
        <span class="about cut">{isAbsent ? `unavailable: ${about}` : about}</span>
      </a>
    </li>
  );
}

function countOf(count: number, isFiltered: boolean): string {
  if (loading.value === "loading") return "Loading the tools…";
  if (loading.value !== "ready") return loading.value.error;
  const all = tools.value.size;
  return isFiltered ? `${count} of ${all} tools` : counted(all, "tool");
}

/** A button that opens the filters, and the filters that are set. */
function Filters(): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const set = (name: FilterName, value: string | undefined): void => {
    filters.value = { ...filters.value, [name]: value };
  };
  const count = FILTER_NAMES.filter((name) => filters.value[name] !== undefined).length;
  return (
    <>
      <button type="button" class="button quiet small" popovertarget="filters" aria-label="Filters">
        <Icon name="filter" />
        {count > 0 && <span class="count">{count}</span>}
      </button>
      <div
        id="filters"
        class="filters stack"
        popover="auto"
        onToggle={(event) => setOpen(event.newState === "open")}
      >
        {isOpen &&
          filterValues.value.filter(({ values }) => values.length > 1).map(({ name, values }) => (
            <fieldset key={name}>
              <legend>{name}</legend>
              <div class="row">
                {values.map((value) => {
                  const isChosen = filters.value[name] === value;
                  return (
                    <button
                      key={value}
                      type="button"
                      class="chip"
                      aria-pressed={isChosen}
                      onClick={() => set(name, isChosen ? undefined : value)}
                    >
                      {value}
                    </button>
                  );
                })}
              </div>
            </fieldset>
          ))}
      </div>
    </>
  );
}
