/**
 * The text that the server prints when it has started.
 *
 * @module
 */

import type { Toolset } from "../../mod.ts";
import type { ServeSettings } from "./settings.ts";

/**
 * The address, the tools that are served, and one command to try.
 *
 * @param url Where the server answers.
 * @param toolset What it serves.
 * @param total How many tools the registry has.
 */
export function banner(
  url: string,
  settings: ServeSettings,
  toolset: Toolset,
  total: number,
): string {
  const tools = toolset.available();
  const width = Math.max(0, ...tools.map(({ id }) => id.length));
  const lines = tools.map(({ id, risk, title }) =>
    `  ${id.padEnd(width)}  ${risk.padEnd(8)}  ${title ?? ""}`.trimEnd()
  );
  const role = settings.role === undefined ? "" : `, for role "${settings.role}"`;
  return [
    `plue serves the folder ${settings.workspace} on ${url}`,
    "",
    `${tools.length} of ${total} tools, up to risk "${settings.maxRisk}"${role}:`,
    ...lines,
    "",
    settings.token === undefined
      ? "Every program on this machine may call them."
      : "Callers must present the token in PLUE_TOKEN.",
    `Look at them, and call them, on ${url}/ in a browser. Or try:`,
    `  ${example(url, settings, toolset)}`,
    "",
    "MCP clients get the same tools, with this in their configuration:",
    `  ${mcpClient(url, settings)}`,
  ].join("\n");
}

/** The entry for the configuration of an MCP client. */
function mcpClient(url: string, settings: ServeSettings): string {
  const entry = {
    type: "http",
    url: `${url}/mcp`,
    // Clients fill in the variable; the token itself is not printed.
    ...(settings.token === undefined ? {} : {
      headers: { Authorization: "Bearer ${PLUE_TOKEN}" },
    }),
  };
  return `"mcpServers": { "plue": ${JSON.stringify(entry)} }`;
}

/** A command that works when it is pasted, with a tool that is served. */
function example(url: string, settings: ServeSettings, toolset: Toolset): string {
  // Double quotes: the shell that it is pasted into fills in the token, which is not printed.
  const token = settings.token === undefined ? "" : ' -H "authorization: Bearer $PLUE_TOKEN"';
  const [id, input] = toolset.has("file-list")
    ? ["file-list", { pattern: "*.md" }]
    : ["echo", { message: "hello" }];
  if (!toolset.has(id)) return `curl -s${token} ${url}/tools`;
  return `curl -s${token} -H "content-type: application/json" ` +
    `-d '${JSON.stringify({ arguments: input })}' ${url}/tools/${id}/execute`;
}
