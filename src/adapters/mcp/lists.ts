/**
 * The caller's tools as one revision of MCP lists them: pages for `tools/list`, and the way from a
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
import { once, type Tool } from "../../tool/mod.ts";
import { pageAfter } from "../http/mod.ts";

/** The revisions of MCP that describe tools differently. */
export type McpTarget = Extract<TargetId, `mcp@${string}`>;

/** One page of `tools/list`. */
export interface McpToolPage {
  readonly tools: readonly McpTool[];
  /** The cursor of the next page; absent on the last one. */
  readonly nextCursor?: string;
}

/** The tools of one listing. */
export class McpToolList {
  readonly target: McpTarget;
  readonly names: ExportNames;
  readonly #exported: ExportResult<readonly McpTool[]>;
  readonly #pageSize: number;
  readonly #withoutHeaders = new Map<string, boolean>();
  #byName: ReadonlyMap<string, McpTool> | undefined;

  constructor(listing: readonly Tool[], target: McpTarget, pageSize: number) {
    this.target = target;
    this.#exported = exportTools(listing, target);
    this.names = this.#exported.names;
    this.#pageSize = pageSize;
  }

  /** Messages about the tools that this revision cannot express. */
  get rejected(): readonly string[] {
    return this.#exported.rejected.map(({ message }) => message);
  }

  /** The schema of the arguments of the tool that has this name in MCP. */
  inputSchemaOf(name: string): McpTool["inputSchema"] | undefined {
    this.#byName ??= new Map(this.#exported.tools.map((tool) => [tool.name, tool]));
    return this.#byName.get(name)?.inputSchema;
  }

  /**
   * Returns true if the list has a tool of this name that takes no arguments from headers
   * (`x-mcp-header`).
   */
  takesNoHeaders(name: string): boolean {
    let answer = this.#withoutHeaders.get(name);
    if (answer !== undefined) return answer;
    const schema = this.inputSchemaOf(name);
    // Unknown names are not cached: clients can make up any number of them.
    if (schema === undefined) return false;
    answer = !JSON.stringify(schema).includes("x-mcp-header");
    this.#withoutHeaders.set(name, answer);
    return answer;
  }

  /** Returns a page, in order of id; `undefined` if the cursor is invalid. */
  page(cursor: string | undefined): McpToolPage | undefined {
    const page = pageAfter(this.names.encodings, cursor, this.#pageSize);
    if (page === undefined) return undefined;
    const { tools } = this.#exported;
    const { start, end, nextCursor } = page;
    return {
      tools: start === 0 && end === tools.length ? tools : tools.slice(start, end),
      ...(nextCursor === undefined ? {} : { nextCursor }),
    };
  }
}

/** Keeps the lists of each listing, which stays the same array until a tool changes. */
export class McpToolLists {
  readonly #lists = new WeakMap<readonly Tool[], Map<McpTarget, McpToolList>>();
  readonly #pageSize: number;
  readonly #onRejected: (message: string) => void;
  /** The last list: most requests come from callers who see the same, of one revision. */
  #last: { readonly listing: readonly Tool[]; readonly list: McpToolList } | undefined;

  /** @param onRejected Receives a message for each tool that a new list leaves out. */
  constructor(pageSize: number, onRejected: (message: string) => void) {
    this.#pageSize = pageSize;
    this.#onRejected = onRejected;
  }

  of(listing: readonly Tool[], target: McpTarget): McpToolList {
    const last = this.#last;
    if (last?.listing === listing && last.list.target === target) return last.list;
    const list = once(once(this.#lists, listing, () => new Map()), target, () => {
      const made = new McpToolList(listing, target, this.#pageSize);
      for (const message of made.rejected) this.#onRejected(message);
      return made;
    });
    this.#last = { listing, list };
    return list;
  }
}
