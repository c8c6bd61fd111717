/** The route of the page: the fragment of its address, which is not sent to the service. */

import { effect, signal } from "@preact/signals";

export type Route =
  | { readonly page: "start" | "tools" | "why" | "calls" }
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
  if (page === "tools" || page === "why" || page === "calls") return { page };
  if (page !== "tool" || id === undefined || view === undefined) return { page: "start" };
  const given = new URLSearchParams(query).get("arguments");
  try {
    const own = { page, id: decodeURIComponent(id), view } as const;
    return given === null ? own : { ...own, arguments: given };
  } catch {
    return { page: "start" };
  }
}

export function hrefOf(route: Route): string {
  if (route.page === "start") return "#/";
  if (route.page !== "tool") return `#/${route.page}`;
  const path = `#/tool/${encodeURIComponent(route.id)}/${route.view}`;
  const given = route.arguments;
  return given === undefined ? path : `${path}?${new URLSearchParams({ arguments: given })}`;
}

/** Returns the fragment that opens a call with its arguments. */
export function hrefOfCall(id: string, input: unknown): string {
  const given = input === undefined ? {} : { arguments: JSON.stringify(input) };
  return hrefOf({ page: "tool", id, view: "try", ...given });
}

export const route = signal<Route>(readRoute(location.hash));

addEventListener("hashchange", () => (route.value = readRoute(location.hash)));
effect(() => {
  const shown = route.value;
  document.title = shown.page === "tool" ? `${shown.id} · plue` : `${shown.page} · plue`;
});
