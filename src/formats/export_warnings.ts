/**
 * The warnings of one export: each rule once, with the first tool and the number of tools.
 *
 * @module
 */

import type { Tool } from "../tool/mod.ts";
import type { ExportWarning } from "./types.ts";

/** Collects warnings. */
export class ExportWarnings {
  readonly #title: string;
  readonly #found = new Map<
    string,
    { readonly tool: string | undefined; readonly text: string; count: number }
  >();

  /** @param title The target's, with which each sentence begins. */
  constructor(title: string) {
    this.#title = title;
  }

  /** Warns of a rule. `text` is heard the first time. */
  add(rule: string, tool: Tool | undefined, text: string): void {
    const there = this.#found.get(rule);
    if (there === undefined) {
      this.#found.set(rule, { tool: tool?.id, text, count: 1 });
    } else there.count++;
  }

  /** The warnings, in the order in which their rules came up. */
  list(): readonly ExportWarning[] {
    return Object.freeze(
      [...this.#found].map(([rule, { tool, text, count }]): ExportWarning => {
        const who = tool === undefined
          ? ""
          : ` ("${tool}"${count === 1 ? "" : ` and ${count - 1} more`})`;
        return Object.freeze({
          ...(tool === undefined ? {} : { tool }),
          rule,
          message: `${this.#title}: ${text}${who}`,
        });
      }),
    );
  }
}
