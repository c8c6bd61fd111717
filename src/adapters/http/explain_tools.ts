/**
 * `GET /explain` and `GET /tools/:id/explain`: whether the caller sees a tool, and why not.
 *
 * @module
 */

import { explainTool, type ToolExplanation, type Toolset } from "../../select/mod.ts";
import type { Tool } from "../../tool/mod.ts";
import type { HttpPart } from "./part.ts";
import { readFilters } from "./query.ts";
import type { ToolRequest } from "./request.ts";
import { json, noSuchTool, problemResponse } from "./responses.ts";

/** The part that explains which tools a caller sees: `GET /explain` and `GET /tools/:id/explain`. */
export function serveExplanations(): HttpPart {
  return () => ({
    routes: [
      { method: "GET", path: "/tools/:id/explain", answer: explainOne },
      { method: "GET", path: "/explain", answer: explainTools },
    ],
  });
}

/** Explains whether the caller sees a tool. */
function explainOne(request: ToolRequest): Response {
  const { param: id } = request;
  const toolset = explainedToolset(request);
  // An explanation says that a hidden tool exists: only some callers may learn that.
  if (request.caller.explain !== true && !request.toolset.has(id)) {
    return problemResponse(noSuchTool(id));
  }
  return json(toolset.explain(id, explainTool));
}

/**
 * Explains each tool without the steps that `explainOne` shows: for a table of tools. Callers that
 * may not learn of hidden tools get explanations of their own tools only.
 */
function explainTools(request: ToolRequest): Response {
  const { caller, toolset, server } = request;
  const explained = explainedToolset(request);
  const tools = caller.explain === true
    ? server.source.tools
    : toolset.tools.filter(({ id }) => toolset.has(id));
  const words = (lists: (tool: Tool) => readonly string[] | undefined): readonly string[] =>
    caller.explain === true ? [...new Set(tools.flatMap((tool) => lists(tool) ?? []))].sort() : [];
  return json({
    roles: words(({ roles }) => roles),
    scopes: words(({ scopes }) => scopes),
    tools: tools.map(({ id, risk }) => ({ ...briefly(explained.explain(id, explainTool)), risk })),
  });
}

function briefly({ steps: _, ...explanation }: ToolExplanation): Omit<ToolExplanation, "steps"> {
  return explanation;
}

/**
 * Returns the caller's tools that the query selects. A role and scopes in the query of a caller that
 * may learn of hidden tools stand for those of another caller.
 */
function explainedToolset({ raw, server, caller, toolset }: ToolRequest): Toolset {
  const { selection } = readFilters("an explanation", raw.url);
  if (selection === undefined) return toolset;
  const { role, scopes, ...rest } = selection;
  if (caller.explain !== true || (role === undefined && scopes === undefined)) {
    return toolset.narrow(selection);
  }
  const other = {
    role: role ?? caller.role,
    scopes: scopes === undefined ? caller.scopes : [...scopes],
  };
  return server.toolsetAs(caller, other).narrow(rest);
}
