/**
 * The caller's tools and their changes, and the list of them with its search and filters.
 *
 * @module
 */

import { computed, effect, signal } from "@preact/signals";
import type { JSX } from "preact";
import { RISK_LEVELS, type RiskLevel, type ToolExample } from "../../tool/mod.ts";
import { ApiError, ask, eventsOf, messageOf, send, sessions } from "./api.ts";
import { Risk, useGrowing } from "./parts.tsx";
import { hrefOf, route } from "./route.ts";

/** A tool in the service's listing: the fields that the page shows. */
export interface ListedTool {
  readonly id: string;
  readonly namespace?: string;
  readonly title?: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>> | boolean;
  readonly returns?: Readonly<Record<string, unknown>> | boolean;
  readonly category?: string;
  readonly risk: RiskLevel;
  readonly tags: readonly string[];
  readonly examples?: readonly ToolExample[];
  readonly deprecated?: boolean | string;
  readonly requiresApproval?: boolean;
  readonly executable: boolean;
}

/** The explanation of a tool's visibility. */
export interface Explained {
  readonly id: string;
  readonly risk: RiskLevel;
  readonly selected: boolean;
  readonly available: boolean;
  readonly removedBy?: string;
  readonly reason: string;
}

/** The response of `GET /explain`. */
export interface Explanations {
  readonly roles: readonly string[];
  readonly scopes: readonly string[];
  readonly tools: readonly Explained[];
}

/** The state of the listing. */
export type Loading = "loading" | "ready" | { readonly error: string };

/** The tools that are available, by id, in order. */
export const tools = signal<ReadonlyMap<string, ListedTool>>(new Map());
/** The caller's tools that are not available now. */
export const unavailable = signal<readonly Explained[]>([]);
export const loading = signal<Loading>("loading");
/** True if the page receives changes of the tools. */
const isLive = signal(false);
/** The number of times that the tools were loaded, for dependent views. */
export const revision = signal(0);

/** The search query. */
const query = signal("");
/** The active filters; empty for all tools. */
const filters = signal({ namespace: "", category: "", risk: "", tag: "" });
/** The results of the service's search, best first. */
const hits = signal<readonly string[]>([]);

/** The choices of the filters. */
const filterValues = computed(() => {
  const all = [...tools.value.values()];
  const sorted = (values: readonly (string | undefined)[]): readonly string[] =>
    [...new Set(values.filter((value) => value !== undefined))].sort();
  return {
    namespace: sorted(all.map((tool) => tool.namespace)),
    category: sorted(all.map((tool) => tool.category)),
    tag: sorted(all.flatMap((tool) => tool.tags)),
  };
});

/** The listed tools: search results first, then tools that contain the query. */
const shown = computed<readonly ListedTool[]>(() => {
  const { namespace, category, risk, tag } = filters.value;
  const words = query.value.trim().toLowerCase();
  const kept = [...tools.value.values()].filter(
    (tool) =>
      (namespace === "" || tool.namespace === namespace) &&
      (category === "" || tool.category === category) &&
      (risk === "" || tool.risk === risk) &&
      (tag === "" || tool.tags.includes(tag)),
  );
  if (words === "") return kept;
  const holding = kept.filter((tool) =>
    `${tool.id}\n${tool.title ?? ""}\n${tool.description}`.toLowerCase().includes(words)
  );
  const isKept = new Set(kept);
  const found = hits.value
    .map((id) => tools.value.get(id))
    .filter((tool) => tool !== undefined && isKept.has(tool));
  return [...new Set([...found, ...holding])] as readonly ListedTool[];
});

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
      const found = await ask<{ readonly tools: readonly ListedTool[] }>(
        `tools?${new URLSearchParams({ q: words, limit: String(MAX_HITS) })}`,
        { signal: abort.signal },
      );
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

/** Loads the caller's tools, page by page. */
async function load(signal: AbortSignal): Promise<void> {
  try {
    const explained = ask<Explanations>("explain", { signal });
    // Awaited below. If the listing fails first, this promise still needs a handler.
    explained.catch(() => {});
    const found = new Map<string, ListedTool>();
    let cursor: string | undefined;
    do {
      const page = await ask<{
        readonly tools: readonly ListedTool[];
        readonly nextCursor?: string;
      }>(cursor === undefined ? "tools" : `tools?${new URLSearchParams({ cursor })}`, { signal });
      for (const tool of page.tools) found.set(tool.id, tool);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
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

/** The list, with its search and filters. */
export function ToolList(): JSX.Element {
  const list = shown.value;
  const { count, end } = useGrowing<HTMLLIElement>(list.length);
  const isFiltered = query.value.trim() !== "" || Object.values(filters.value).some(Boolean);
  return (
    <nav class="tools" aria-label="Tools" onKeyDown={moveIn}>
      <div class="search">
        <label for={SEARCH_ID} class="hidden">
          Search tools
        </label>
        <input
          id={SEARCH_ID}
          type="search"
          placeholder="Search tools  ( / )"
          value={query.value}
          onInput={(event) => (query.value = event.currentTarget.value)}
          autocomplete="off"
          spellcheck={false}
        />
        <Filters />
        <p class="about" role="status">
          {countOf(list.length, isFiltered)} {isLive.value && <span class="good live">live</span>}
        </p>
      </div>
      <ul>
        {list.slice(0, count).map(({ id, title, risk, description }) => (
          <Entry key={id} id={id} risk={risk} about={title ?? description} />
        ))}
        {list.length > count && (
          <li key="" ref={end} class="faint">
            {list.length - count} more
          </li>
        )}
        {!isFiltered &&
          list.length <= count &&
          unavailable.value.map(({ id, risk, reason }) => (
            <Entry key={id} id={id} risk={risk} about={reason.replace(/^.*?now: /, "")} isAbsent />
          ))}
      </ul>
    </nav>
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
        class={isAbsent ? "link tool absent" : "link tool"}
        href={hrefOf({ page: "tool", id, view: "try" })}
        aria-current={isChosen ? "page" : undefined}
      >
        <span class="row">
          <code class="grow">{id}</code>
          {isAbsent && <span class="badge faint">unavailable</span>}
          <Risk level={risk} />
        </span>
        <span class="about cut">{about}</span>
      </a>
    </li>
  );
}

function countOf(count: number, isFiltered: boolean): string {
  if (loading.value === "loading") return "Loading the tools…";
  if (loading.value !== "ready") return loading.value.error;
  const all = tools.value.size;
  return isFiltered ? `${count} of ${all} tools` : `${all} ${all === 1 ? "tool" : "tools"}`;
}

function Filters(): JSX.Element {
  const values = { ...filterValues.value, risk: RISK_LEVELS };
  const names = ["namespace", "category", "risk", "tag"] as const;
  return (
    <div class="filters">
      {names
        .filter((name) => values[name].length > 1 || filters.value[name] !== "")
        .map((name) => (
          <select
            key={name}
            aria-label={`Filter by ${name}`}
            value={filters.value[name]}
            onChange={(
              event,
            ) => (filters.value = { ...filters.value, [name]: event.currentTarget.value })}
          >
            <option value="">any {name}</option>
            {values[name].map((value) => <option key={value} value={value}>{value}</option>)}
          </select>
        ))}
    </div>
  );
}
