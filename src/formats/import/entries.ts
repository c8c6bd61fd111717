/**
 * The entries of a document that is a list of tools, a request that holds one, or one tool.
 *
 * @module
 */

import { isMembers, listIn, objectIn } from "./fields.ts";
import type { Intake } from "./intake.ts";

/** An entry, and where it stands. */
export interface Entry {
  readonly value: unknown;
  readonly path: string;
}

/**
 * Finds the entries: of a list its items, of an object the items of the first list that it has
 * under one of `lists`, directly or inside of one of `wrappers`; otherwise the object itself.
 */
export function entriesOf(
  document: unknown,
  lists: readonly string[],
  wrappers: readonly string[],
  intake?: Intake,
): readonly Entry[] {
  if (Array.isArray(document)) return itemsOf(document, "");
  if (!isMembers(document)) {
    intake?.reject(
      undefined,
      "",
      "document",
      "Cannot read the document: it must be a list of tools, or an object with one",
    );
    return [];
  }
  for (const wrapper of [undefined, ...wrappers]) {
    const holder = wrapper === undefined ? document : objectIn(document, wrapper);
    for (const list of lists) {
      const items = listIn(holder, list);
      if (items === undefined) continue;
      return itemsOf(items, `${wrapper === undefined ? "" : `/${wrapper}`}/${list}`);
    }
  }
  return [{ value: document, path: "" }];
}

function itemsOf(items: readonly unknown[], path: string): readonly Entry[] {
  return items.map((value, index) => ({ value, path: `${path}/${index}` }));
}
