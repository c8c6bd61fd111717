/**
 * The Model Context Protocol: the `tools` of a `tools/list` result, in three revisions.
 *
 * @module
 */

import type { NameRule } from "../names.ts";
import type { ExtraRule, Feature, KeywordTable, Profile, ToolView } from "../profile.ts";
import { isNode } from "../transform/schema_walk.ts";
import {
  ADVISORY,
  asObject,
  descriptionOf,
  ENFORCED,
  every,
  features,
  into,
  table,
} from "./tables.ts";

/** A tool in a `tools/list` result. Revisions leave out what they do not know. */
export interface McpTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: { type: "object"; [keyword: string]: unknown };
  outputSchema?: { [keyword: string]: unknown };
  annotations?: {
    title?: string;
    readOnlyHint?: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint?: boolean;
  };
  icons?: { src: string; mimeType?: string; sizes?: string[]; theme?: "light" | "dark" }[];
  execution?: { taskSupport?: "forbidden" | "optional" | "required"; [field: string]: unknown };
  _meta?: { [key: string]: unknown };
}

/** A tool in a `tools/list` result before 2026-07-28: the result is an object. */
export interface Mcp2025Tool extends McpTool {
  outputSchema?: { type: "object"; [keyword: string]: unknown };
}

const NAMES: NameRule = { also: ".-", max: 128, separator: "." };

/** All of 2020-12 goes to the client, which makes of it what its model takes. */
const KEYWORDS: KeywordTable = table(every(ENFORCED), [ADVISORY, [
  "$ref external",
  "title",
  "description",
  "default",
  "examples",
  "example",
  "usage notes",
  "content",
  "propertyOrdering",
  "unknown",
]]);

/** Clients of the older revisions check each property to be an object. */
const OLDER_KEYWORDS: KeywordTable = table(KEYWORDS, [into("{} or { not: {} }"), [
  "boolean schema",
]], [ADVISORY, ["root composition"]]);

const FEATURES: readonly Feature[] = ["title", "returns", "annotations", "meta"];

/** `execution` came with revision 2025-11-25, and went with the next. */
const EXTRA_WITHOUT_EXECUTION: ExtraRule = { source: "mcp", without: ["execution"] };

function wire(view: ToolView, icons: boolean, execution: boolean): McpTool {
  const { tool, hints } = view;
  // What an MCP server said that plue has no words for goes back to MCP clients.
  const { execution: more, ...extra } = view.extra;
  const support = hints.taskSupport === undefined ? {} : { taskSupport: hints.taskSupport };
  const annotations = hints.annotations === undefined ? tool.annotations : hints.annotations;
  const { provider: _hints, ...meta } = tool.meta ?? {};
  return {
    ...extra,
    name: view.name,
    ...(tool.title === undefined || hints.title === null ? {} : { title: tool.title }),
    ...descriptionOf(view),
    inputSchema: view.parameters as McpTool["inputSchema"],
    ...(view.returns === undefined ? {} : { outputSchema: asObject(view.returns) }),
    ...(annotations === null ? {} : { annotations: { ...annotations } }),
    ...(icons && tool.icons.length > 0
      ? { icons: tool.icons as unknown as NonNullable<McpTool["icons"]> }
      : {}),
    ...(execution && (hints.taskSupport !== undefined || more !== undefined)
      ? { execution: isNode(more) ? { ...more, ...support } : support }
      : {}),
    ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
  };
}

/** Where the root has to be an object, the export has wrapped what is none. */
function wire2025(
  view: ToolView,
  icons: boolean,
  execution: boolean,
): Mcp2025Tool {
  return wire(view, icons, execution) as Mcp2025Tool;
}

/** Revision 2025-06-18: no icons, no `execution`. */
export const MCP_2025_06_18: Profile<Mcp2025Tool, Mcp2025Tool[]> = {
  id: "mcp@2025-06-18",
  title: "MCP 2025-06-18",
  source: "modelcontextprotocol schema b0f60ba5, @modelcontextprotocol/sdk 1.32.2; 2026-11-20",
  names: NAMES,
  features: features(FEATURES),
  extra: EXTRA_WITHOUT_EXECUTION,
  input: OLDER_KEYWORDS,
  output: { keywords: OLDER_KEYWORDS, root: "object" },
  draft07: true,
  limits: [],
  wire: (view) => wire2025(view, false, false),
  assemble: (tools) => tools.map((tool) => tool.wire),
};

/** Revision 2025-11-25: icons, and calls as tasks. */
export const MCP_2025_11_25: Profile<Mcp2025Tool, Mcp2025Tool[]> = {
  id: "mcp@2025-11-25",
  title: "MCP 2025-11-25",
  source: "modelcontextprotocol schema b0f60ba5, @modelcontextprotocol/sdk 1.32.2; 2026-11-20",
  names: NAMES,
  features: features([...FEATURES, "icons", "taskSupport"]),
  extra: { source: "mcp" },
  input: OLDER_KEYWORDS,
  output: { keywords: OLDER_KEYWORDS, root: "object" },
  draft07: true,
  limits: [],
  wire: (view) => wire2025(view, true, true),
  assemble: (tools) => tools.map((tool) => tool.wire),
};

/** Revision 2026-07-28: any schema for the result; tasks have become an extension. */
export const MCP_2026_07_28: Profile<McpTool, McpTool[]> = {
  id: "mcp@2026-07-28",
  title: "MCP 2026-07-28",
  source: "modelcontextprotocol schema b0f60ba5, @modelcontextprotocol/server 2.4.0; 2026-11-20",
  names: NAMES,
  features: features([...FEATURES, "icons"]),
  extra: EXTRA_WITHOUT_EXECUTION,
  input: KEYWORDS,
  output: { keywords: KEYWORDS, root: "any" },
  draft07: true,
  limits: [],
  wire: (view) => wire(view, true, false),
  assemble: (tools) => tools.map((tool) => tool.wire),
};
