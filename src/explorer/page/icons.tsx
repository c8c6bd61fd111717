/** The icons of the page: outlines on a grid of 16 by 16. */

import type { JSX } from "preact";

const PATHS = {
  start: "M2.5 2.5H7v6H2.5zM9 2.5h4.5V6H9zM9 8h4.5v5.5H9zM2.5 10.5H7v3H2.5z",
  tools: "M6 1.5V5M10 1.5V5M4 5h8v2.5a4 4 0 0 1-8 0zM8 11.5v3",
  code: "M5 4.5 1.5 8 5 11.5M11 4.5 14.5 8 11 11.5M9 3 7 13",
  why:
    "M6.5 3a1.5 1.5 0 1 0 3 0 1.5 1.5 0 1 0-3 0zM8 4.5v3M3.5 11V9.5a2 2 0 0 1 2-2h5a2 2 0 0 1 2 2v1M11 12l3 3m0-3-3 3M2 13a1.5 1.5 0 1 0 3 0 1.5 1.5 0 1 0-3 0z",
  calls: "M1.5 8H4l2-5 3.5 10 2-5h3",
  sources: "M2 5l6-3 6 3-6 3zM2 8l6 3 6-3M2 11l6 3 6-3",
  help: "M5.5 6A2.5 2.5 0 1 1 8 8.5v1.2M8 12.5v.1",
  right: "m6 3.5 4.5 4.5L6 12.5",
  search: "M2.5 7a4.5 4.5 0 1 0 9 0 4.5 4.5 0 1 0-9 0zM10.5 10.5 14 14",
  user: "M5.5 5a2.5 2.5 0 1 0 5 0 2.5 2.5 0 1 0-5 0zM2.5 14c.5-3 2.7-4.5 5.5-4.5s5 1.5 5.5 4.5",
  theme:
    "M2.5 8a5.5 5.5 0 1 0 11 0 5.5 5.5 0 1 0-11 0zM8 2.5a5.5 5.5 0 0 1 0 11zM9 4v8M10.5 5v6M12 6v4",
  hand: "M8 1.5 13.5 4v4c0 3.5-2.3 5.5-5.5 6.5C4.8 13.5 2.5 11.5 2.5 8V4zM8 5v3.5M8 11v.1",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  play: "M5 3v10l8-5zM6 5v6M7.5 6v4M9 7v2",
  check: "m3 8.5 3.2 3L13 4.5",
  x: "m4 4 8 8m0-8-8 8",
  filter: "M2 4h12M4.5 8h7M7 12h2",
  plus: "M8 3v10M3 8h10",
  up: "M8 13V3M3.5 7.5 8 3l4.5 4.5",
  reset: "M3 8a5 5 0 1 0 1.5-3.6M3 2.5V5h2.5",
  link:
    "m6.5 9.5 3-3M7.2 4.6 8.5 3.3a2.9 2.9 0 0 1 4.2 4.2L11.4 8.8M8.8 11.4 7.5 12.7a2.9 2.9 0 0 1-4.2-4.2L4.6 7.2",
  stop: "M4 4h8v8H4z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
