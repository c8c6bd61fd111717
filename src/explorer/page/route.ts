/** The route of the page: the fragment of its address, which is not sent to the service. */

import { effect, signal } from "@preact/signals";

/** The pages without a parameter. */
const PAGES = ["start", "tools", "code", "why", "calls", "sources"] as const;

export type Route =
  | { readonly page: typeof PAGES[number] }
  | { readonly page: "call"; readonly id: string }
  | {
    readonly page: "tool";
    readonly id: string;
    readonly view: typeof VIEWS[number][0];
    /** The initial arguments of the form, from a link, as JSON. */
    readonly arguments?: string;
  };

export const VIEWS = [["try", "Try"], ["targets", "Targets"], ["schema", "Schema"]] as const;

/** Parses a fragment. An unknown fragment is the start page. */
export function readRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [page, id, named = "try"] = path.split("/");
  const view = VIEWS.find(([name]) => name === named)?.[0];
  const plain = PAGES.find((name) => name === page);
  if (plain !== undefined) return { page: plain };
  if (id === undefined || view === undefined) return { page: "start" };
  const json = new URLSearchParams(query).get("arguments");
  try {
    if (page === "call") return { page, id: decodeURIComponent(id) };
    if (page !== "tool") return { page: "start" };
    const own = { page, id: decodeURIComponent(id), view } as const;
    return json === null ? own : { ...own, arguments: json };
  } catch {
    return { page: "start" };
  }
}

export function hrefOf(route: Route): string {
  if (route.page === "start") return "#/";
  if (route.page === "call") return `#/call/${encodeURIComponent(route.id)}`;
  if (route.page !== "tool") return `#/${route.page}`;
  const path = `#/tool/${encodeURIComponent(route.id)}/${route.view}`;
  const json = route.arguments;
  return json === undefined ? path : `${path}?${new URLSearchParams({ arguments: json })}`;
}

/** Returns the fragment that opens a call with its arguments. */
export function hrefOfCall(id: string, input: unknown): string {
  const args = input === undefined ? {} : { arguments: JSON.stringify(input) };
  return hrefOf({ page: "tool", id, view: "try", ...args });
}

export const route = signal<Route>(readRoute(location.hash));

addEventListener("hashchange", () => (route.value = readRoute(location.hash)));
effect(() => {
  const shown = route.value;
  document.title = shown.page === "tool" ? `${shown.id} · plue` : `${shown.page} · plue`;
});
