/**
 * The route of the page, stored in the fragment of its address. The fragment is not sent to the
 * service.
 *
 * @module
 */

import { effect, signal } from "@preact/signals";

/** A route. */
export type Route =
  | { readonly page: "tools" | "why" | "calls" }
  | {
    readonly page: "tool";
    readonly id: string;
    readonly view: typeof VIEWS[number][0];
    /** The initial arguments of the form, from a link, as JSON. */
    readonly arguments?: string;
  };

/** The views of one tool, with their titles. */
export const VIEWS = [["try", "Try"], ["targets", "Targets"], ["schema", "Schema"]] as const;

/** Parses a fragment. An unknown fragment is the list of tools. */
export function readRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [page, id, named = "try"] = path.split("/");
  const view = VIEWS.find(([name]) => name === named)?.[0];
  if (page === "why" || page === "calls") return { page };
  if (page !== "tool" || id === undefined || view === undefined) {
    return { page: "tools" };
  }
  const given = new URLSearchParams(query).get("arguments");
  try {
    return {
      page,
      id: decodeURIComponent(id),
      view,
      ...(given === null ? {} : { arguments: given }),
    };
  } catch {
    return { page: "tools" };
  }
}

/** Returns the fragment of a route. */
export function hrefOf(route: Route): string {
  if (route.page !== "tool") {
    return route.page === "tools" ? "#/" : `#/${route.page}`;
  }
  const query = route.arguments === undefined
    ? ""
    : `?${new URLSearchParams({ arguments: route.arguments })}`;
  return `#/tool/${encodeURIComponent(route.id)}/${route.view}${query}`;
}

/** The current route. */
export const route = signal<Route>(readRoute(location.hash));

addEventListener("hashchange", () => (route.value = readRoute(location.hash)));
effect(() => {
  const shown = route.value;
  document.title = shown.page === "tool" ? `${shown.id} · plue` : `${shown.page} · plue`;
});
