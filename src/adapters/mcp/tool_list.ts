/**
 * The caller's tools as one revision of MCP has them: pages for `tools/list`, and the way from a
 * name to its schema. Made once per listing and revision.
 *
 * @module
 */

import {
  type ExportNames,
  type ExportResult,
  exportTools,
  type McpTool,
  type TargetId,
} from "../../formats/mod.ts";
import { isToolId, type Tool } from "../../tool/mod.ts";

/** The revisions of MCP in which tools are told differently. */
export type McpTarget = Extract<TargetId, `mcp@${string}`>;

/** One page of `tools/list`. */
export interface McpToolPage {
  readonly tools: readonly McpTool[];
  /** Where the next page begins; absent on the last one. */
  readonly nextCursor?: string;
}

/** The tools of one listing. */
export class McpToolList {
  readonly target: McpTarget;
  readonly names: ExportNames;
  readonly #exported: ExportResult<readonly McpTool[]>;
  #byName: ReadonlyMap<string, McpTool> | undefined;
  readonly #headerless = new Map<string, boolean>();

  constructor(listing: readonly Tool[], target: McpTarget) {
    this.target = target;
    this.#exported = exportTools(listing, target);
    this.names = this.#exported.names;
  }

  /** What could not be told to clients, in words. */
  get rejected(): readonly string[] {
    return this.#exported.rejected.map(({ message }) => message);
  }

  /** The schema of the arguments of the tool that has this name on the wire. */
  inputSchemaOf(name: string): McpTool["inputSchema"] | undefined {
    this.#byName ??= new Map(this.#exported.tools.map((tool) => [tool.name, tool]));
    return this.#byName.get(name)?.inputSchema;
  }

  /** Whether the list has a tool of this name that asks for no headers (`x-mcp-header`). */
  hasHeaderless(name: string): boolean {
    let is = this.#headerless.get(name);
    if (is !== undefined) return is;
    const schema = this.inputSchemaOf(name);
    // Names that no tool has are not kept: anybody can make them up.
    if (schema === undefined) return false;
    is = !JSON.stringify(schema).includes("x-mcp-header");
    this.#headerless.set(name, is);
    return is;
  }

  /**
   * A page, in order of id. A cursor says after which tool it begins, so that one that came or went
   * meanwhile neither repeats nor hides others.
   *
   * @returns The page; `undefined` if the cursor is none.
   */
  page(cursor: string | undefined, size: number): McpToolPage | undefined {
    const after = cursor === undefined ? "" : readCursor(cursor);
    if (after === undefined) return undefined;
    const { encodings } = this.names;
    const start = firstAbove(encodings, after);
    const end = Math.min(start + size, encodings.length);
    const last = encodings[end - 1];
    return {
      tools: start === 0 && end === encodings.length
        ? this.#exported.tools
        : this.#exported.tools.slice(start, end),
      ...(end < encodings.length && last !== undefined ? { nextCursor: btoa(last.id) } : {}),
    };
  }
}

/** Remembers lists by listing, which stays the same array until it changes. */
export class McpToolLists {
  readonly #lists = new WeakMap<readonly Tool[], Map<McpTarget, McpToolList>>();
  readonly #onRejected: (message: string) => void;

  /** @param onRejected Is told, once per list, of each tool that cannot be told to clients. */
  constructor(onRejected: (message: string) => void) {
    this.#onRejected = onRejected;
  }

  of(listing: readonly Tool[], target: McpTarget): McpToolList {
    let lists = this.#lists.get(listing);
    if (lists === undefined) this.#lists.set(listing, lists = new Map());
    let list = lists.get(target);
    if (list === undefined) {
      lists.set(target, list = new McpToolList(listing, target));
      for (const message of list.rejected) this.#onRejected(message);
    }
    return list;
  }
}

/** Ids are ASCII, and so is Base64 of them. */
function readCursor(cursor: string): string | undefined {
  try {
    const id = atob(cursor);
    return isToolId(id) ? id : undefined;
  } catch {
    return undefined;
  }
}

/** The place of the first id above `after`, in a list in order of id. */
function firstAbove(encodings: readonly { readonly id: string }[], after: string): number {
  let low = 0;
  let high = encodings.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const id = encodings[middle]?.id ?? "";
    if (id > after) high = middle;
    else low = middle + 1;
  }
  return low;
}
