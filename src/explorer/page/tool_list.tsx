/**
 * The list of tools, with search, filters and unavailable tools.
 *
 * @module
 */

import type { JSX } from "preact";
import { RISK_LEVELS } from "../../tool/mod.ts";
import { Risk, useGrowing } from "./parts.tsx";
import { hrefOf, route } from "./route.ts";
import {
  filters,
  filterValues,
  isLive,
  loading,
  query,
  shown,
  tools,
  unavailable,
} from "./tools.ts";

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
        <p class="faint" role="status">
          {countOf(list.length, isFiltered)}
          {isLive.value && <span class="live">live</span>}
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
  readonly risk: string;
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
        <span class="name">
          <code>{id}</code>
          {isAbsent && <span class="badge">unavailable</span>}
          <Risk level={risk} />
        </span>
        <span class="about">{about}</span>
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
