/**
 * The bridge: three tools that give access to all tools of a toolset. A model finds tools with
 * `search_tools`, reads their schemas with `describe_tools`, and calls them with `call_tool`.
 */

import { CallContext } from "../execute/mod.ts";
import { hintsOf } from "../formats/mod.ts";
import { searchToolsetAsync } from "../registry/mod.ts";
import {
  buildToolset,
  type Explainer,
  inOrder,
  isToolset,
  type Selection,
  type ToolExplanation,
  Toolset,
  type ToolsetBridge,
} from "../select/mod.ts";
import {
  type Check,
  checkFlag,
  clip,
  createCheck,
  defined,
  describeTool,
  fail,
  isObject,
  makeTool,
  nearText,
  once,
  oneOf,
  readFields,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  ToolResult,
  wholeFrom,
} from "../tool/mod.ts";
import { checkIds, DETAILS, type ToolDetail, variantOf } from "./fit_budget.ts";
import { signatureOf } from "./signature.ts";

/** Options for {@linkcode createToolBridge}. */
export interface ToolBridgeOptions {
  /** Ids of target tools that are also listed. Ids outside the toolset of a caller are ignored. */
  readonly pinned?: readonly string[] | undefined;
  /** The default number of found tools, 1 to 50. The model can set another. @default {5} */
  readonly limit?: number | undefined;
  /** The detail of found tools: a signature, or the schema, too. @default {"signature"} */
  readonly detail?: ToolDetail | undefined;
  /**
   * If true, providers with a tool search of their own (Anthropic, OpenAI Responses) receive
   * `search_tools` in that form, and load found tools. Older models need `false`.
   *
   * @default {true}
   */
  readonly native?: boolean | undefined;
  /**
   * Skills to find and read together with tools: `skillCatalog` of `@plue/tools/mcp`. The search of
   * a provider (`native`) finds no skills.
   */
  readonly skills?: BridgeSkills | undefined;
}

/** Skills for a bridge. */
export interface BridgeSkills {
  /** Returns the own tools of a bridge, of which two also find and read skills. */
  extend(tools: Toolset): Toolset;
}

const ACTION = "make a tool bridge";
const SEARCH = "search_tools";
const DESCRIBE = "describe_tools";
const CALL = "call_tool";

const MAX_TOOLS = 50;

/** The maximum length of a query in characters: an index may send it to a provider. */
const MAX_QUERY = 8_192;

const CHECKS = {
  pinned: checkIds,
  limit: wholeFrom(1, MAX_TOOLS),
  detail: oneOf(DETAILS),
  native: checkFlag,
  skills: createCheck(
    "a skill catalog",
    (value): value is BridgeSkills => "extend" in Object(value),
  ),
} satisfies { readonly [Field in keyof ToolBridgeOptions]-?: Check };

/**
 * Makes a bridge: a toolset that lists `search_tools`, `describe_tools` and `call_tool`, and whose
 * calls reach every tool of the target toolset. No other tool can be found, described or called. A
 * call is resolved to its target tool first, so checks, approval, limits, idempotency keys, metrics
 * and failures belong to the target tool. Target tools can also be called by their own ids.
 *
 * The listing does not depend on the target tools, so prompts stay cached while tools change. If a
 * provider has its own tool search, `exportTools` writes `search_tools` in that form; see
 * {@linkcode ToolBridgeOptions}. Narrowing the bridge narrows its target toolset.
 *
 * A target tool with the id of a bridge tool is called through `call_tool`. While there is such a
 * target tool, no provider receives the search as its own tool search.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { createToolBridge } from "@plue/tools/finding";
 *
 * const properties = { path: { type: "string" } };
 * const parameters = { type: "object", properties, required: ["path"] };
 * const read = { name: "read", description: "Reads a file.", parameters, execute: () => "text" };
 * const bridge = createToolBridge(new ToolRegistry({ tools: [read] }).select());
 * assert.deepEqual(bridge.ids, ["call_tool", "describe_tools", "search_tools"]);
 *
 * const search = { name: "search_tools", arguments: { query: "read a file" } };
 * const found = await new ToolDispatcher(bridge).dispatch(search);
 * const tools = ["read({ path: string }): Reads a file."];
 * assert.deepEqual(found.ok && found.content, { tools });
 * ```
 *
 * @param toolset The target toolset. If it is a bridge, the target of that bridge.
 * @throws {TypeError} If an option is unknown or invalid.
 */
export function createToolBridge(toolset: Toolset, options: ToolBridgeOptions = {}): Toolset {
  if (!isToolset(toolset)) {
    fail(ACTION, "the first argument must be a toolset; create one with registry.select()");
  }
  const { limit = 5, detail = "signature", skills, ...rest } = readFields(ACTION, options, CHECKS);
  const own = ownTools(limit, detail);
  return new ToolBridge(toolset.bridge?.target ?? toolset, skills?.extend(own) ?? own, rest);
}

type ListingOptions = Pick<ToolBridgeOptions, "pinned" | "native">;

/** A toolset that represents another one. It lists its own tools and the pinned target tools. */
export class ToolBridge extends Toolset implements ToolsetBridge {
  override readonly bridge: ToolsetBridge = this;
  readonly target: Toolset;
  readonly #own: Toolset;
  readonly #options: ListingOptions;
  /** The target tools at the last listing, and the lists made from these tools. */
  #seen: readonly Tool[] | undefined;
  #listing: readonly Tool[] = [];
  #loadable: readonly Tool[] | undefined;

  constructor(target: Toolset, own: Toolset, options: ListingOptions) {
    const { pinned = [] } = options;
    const added = [...new Set(pinned)].flatMap((id) => own.has(id) ? [] : target.get(id) ?? []);
    // Bridges without pinned tools share one array of tools, because exports are cached by array.
    const members = added.length === 0 ? own.tools : inOrder([...own, ...added]);
    super(own.source, members, {}, target.name);
    this.target = target;
    this.#own = own;
    this.#options = options;
  }

  override get mayChange(): boolean {
    return this.size > this.#own.size && this.target.mayChange;
  }

  override isCurrent(): boolean {
    return this.target.isCurrent();
  }

  override get(id: string): Tool | undefined {
    return this.#own.get(id) ?? this.target.get(id);
  }

  override resolve(name: string): Tool | undefined {
    return this.#own.get(name) ?? this.target.resolve(name);
  }

  override isAvailable(tool: Tool): boolean {
    return this.#own.get(tool.id) === tool || this.target.isAvailable(tool);
  }

  override available(): readonly Tool[] {
    const seen = this.target.available();
    if (seen !== this.#seen) {
      const listing = this.tools.filter((tool) => this.#own.has(tool.id) || seen.includes(tool));
      this.#listing = listing.length === this.size ? this.tools : Object.freeze(listing);
      this.#seen = seen;
      this.#loadable = undefined;
    }
    return this.#listing;
  }

  override narrow(selection: Selection, name: string = this.name): Toolset {
    return new ToolBridge(this.target.narrow(selection, name), this.#own, this.#options);
  }

  override explain(id: string, explainer?: Explainer): ToolExplanation {
    return (this.#own.has(id) ? this.#own : this.target).explain(id, explainer);
  }

  resolveTarget<Call extends { readonly name: string; readonly arguments?: unknown }>(
    call: Call,
    maxLength: number = Infinity,
  ): Call | undefined {
    // A ticket belongs to a tool of either toolset, if tools other than `call_tool` may wait.
    if ("ticket" in call && !this.#own.has(CALL)) return undefined;
    if (!this.#own.has(call.name)) return call;
    if (call.name !== CALL) return undefined;
    const target = targetIn(call.arguments, maxLength);
    // If the arguments are invalid, `call_tool` itself runs, and reports them.
    return target && { ...call, ...target };
  }

  loadable(): readonly Tool[] | undefined {
    const { target } = this;
    const isAmbiguous = (id: string): boolean => {
      const tool = target.get(id);
      return tool !== undefined && target.isAvailable(tool);
    };
    // Two tools have one id, which only `call_tool` can distinguish.
    if (this.#options.native === false || this.#own.ids.some(isAmbiguous)) return undefined;
    const listed = this.available();
    return this.#loadable ??= inOrder([
      ...this.#own.tools.flatMap((tool) => tool.id === SEARCH ? [loadingSearch(tool)] : []),
      ...target.available().map((tool) => listed.includes(tool) ? tool : deferred(tool)),
    ]);
  }
}

/** Returns the target of a call of `call_tool`; `undefined` if its arguments are invalid. */
function targetIn(
  input: unknown,
  maxLength: number,
): { readonly name: string; readonly arguments: unknown } | undefined {
  try {
    const isText = typeof input === "string";
    if (isText && input.length > maxLength) return undefined;
    const read: unknown = isText ? JSON.parse(input) : input;
    if (!isObject(read)) return undefined;
    const { name, arguments: args, ...others } = read;
    // A call with other fields next to "arguments" is invalid, because they would be lost.
    return typeof name === "string" && Object.keys(others).length === 0
      ? { name, arguments: args }
      : undefined;
  } catch {
    return undefined;
  }
}

/** The bridge's own tools by their options. Bridges share them: they refer to no toolset. */
const made = new Map<string, Toolset>();

function ownTools(limit: number, detail: ToolDetail): Toolset {
  const show = detail === "signature" ? signatureOf : (tool: Tool) => describeIn(tool, detail);
  const make = () => buildToolset([searchTool(FINDS, show, limit), DESCRIBE_TOOL, CALL_TOOL]);
  return once(made, `${limit} ${detail}`, make);
}

const READS = { risk: "safe", tags: ["read-only"], annotations: { openWorldHint: false } } as const;

const PARAMETERS = { type: "object", additionalProperties: false } as const;

const FINDS = "Finds tools by what they do. Returns each tool's name, arguments and " +
  "purpose; call it with call_tool. [lossy] marks omitted rules: " +
  "describe_tools returns them.";

/** Makes the search of a bridge, which shows found tools, and by default `most` of them. */
export function searchTool(description: string, show: (tool: Tool) => unknown, most = 5): Tool {
  return makeTool({
    ...READS,
    name: SEARCH,
    description,
    parameters: {
      ...PARAMETERS,
      properties: {
        query: { type: "string", description: "What you want to do, in a few words." },
        limit: {
          type: "integer",
          minimum: 1,
          maximum: MAX_TOOLS,
          description: `The maximum number of tools; ${most} by default.`,
        },
      },
      required: ["query"],
    },
    async execute(params: unknown, context: ToolContext) {
      const { query, limit = most } = params as { query: string; limit?: number };
      if (query.trim() === "") {
        return { tools: [], message: "The query is empty: say what you want to do" };
      }
      const found = await searchToolsetAsync(target(context), query.slice(0, MAX_QUERY), { limit });
      if (found.length === 0) {
        return { tools: [], message: "No tool fits the query: try other words" };
      }
      return { tools: found.map(show) };
    },
  } as ToolDefinition);
}

const DESCRIBE_TOOL: Tool = makeTool({
  ...READS,
  name: DESCRIBE,
  description: "Describes tools in full: description, JSON Schema of the arguments and of the " +
    "result, examples.",
  parameters: {
    ...PARAMETERS,
    properties: {
      names: {
        type: "array",
        items: { type: "string" },
        minItems: 1,
        maxItems: MAX_TOOLS,
        description: "The tools' names, as search_tools returns them.",
      },
    },
    required: ["names"],
  },
  execute(params: unknown, context: ToolContext) {
    const toolset = target(context);
    // A set, because a tool may be requested both by its id and by an alias.
    const tools = new Set<Tool>();
    const missing: string[] = [];
    for (const name of new Set((params as { names: readonly string[] }).names)) {
      const found = toolset.resolve(name);
      // toolset.get() returns the tool with its description for the reader.
      const tool = found && toolset.get(found.id);
      if (tool === undefined) missing.push(unknown(name, toolset));
      else if (toolset.isAvailable(tool)) tools.add(tool);
      else missing.push(`Tool "${tool.id}" is not available now`);
    }
    return {
      tools: Array.from(tools, (tool) => describeIn(tool, "full")),
      ...(missing.length > 0 && { missing }),
    };
  },
} as ToolDefinition);

const CALL_TOOL: Tool = makeTool({
  name: CALL,
  description: "Calls a tool that search_tools has found.",
  parameters: {
    ...PARAMETERS,
    properties: {
      name: { type: "string", description: "The tool's name, as search_tools returns it." },
      arguments: { type: "object", description: "The tool's arguments." },
    },
    required: ["name"],
  },
  // A dispatcher replaces every valid call of the bridge by a call of the target tool.
  execute: () => ToolResult.error("not_executable", `Cannot call "${CALL}": only a bridge runs it`),
} as ToolDefinition);

function target(context: ToolContext): Toolset {
  return CallContext.callOf(context)?.toolset.bridge?.target ??
    fail("run a tool of a bridge", "use a dispatcher over the toolset of the bridge");
}

function unknown(name: string, toolset: Toolset): string {
  const near = nearText(name, toolset.available().map(({ id }) => id));
  const hint = near && `. Did you mean ${near}?`;
  return `There is no tool ${JSON.stringify(clip(name))}${hint}`;
}

function describeIn(tool: Tool, detail: ToolDetail): Record<string, unknown> {
  const { title, description, parameters, returns, examples, deprecated, requiresApproval } =
    describeTool(tool);
  const fields = {
    ...{ title, description, parameters, returns, deprecated, requiresApproval },
    ...(detail === "full" && { examples }),
  };
  // `undefined` is not a JSON value.
  return { name: tool.id, ...defined(fields) };
}

const variants = new WeakMap<Tool, Tool>();

function deferred(tool: Tool): Tool {
  if (hintsOf(tool).deferLoading !== undefined) return tool;
  return once(variants, tool, () => variantOf(tool, hint(tool, { deferLoading: true })));
}

function loadingSearch(tool: Tool): Tool {
  return once(variants, tool, () =>
    variantOf(tool, {
      ...hint(tool, { toolSearch: true }),
      description:
        "Finds tools by what they do, and loads them, to be called then. Tools that are " +
        "listed already are not loaded again.",
    }));
}

function hint(tool: Tool, hints: object): Partial<ToolDefinition> {
  return { meta: { ...tool.meta, provider: { ...hintsOf(tool), ...hints } } };
}
