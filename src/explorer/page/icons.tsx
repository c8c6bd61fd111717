/** The icons of the page: outlines on a grid of 16 by 16. */

import type { JSX } from "preact";
import PATHS from "./icons.json" with { type: "json" };

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
