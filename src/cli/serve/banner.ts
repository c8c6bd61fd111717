/**
 * The text that the server prints when it has started.
 *
 * @module
 */

import type { Toolset } from "../../select/mod.ts";
import { flagsOf } from "../arguments.ts";
import { counted, type Terminal } from "../terminal.ts";
import type { ServeSettings } from "./settings.ts";

/**
 * The sources, the address, the tools that are served, and one command to try.
 *
 * @param sources What was named on the command line.
 * @param url Where the server answers.
 * @param toolset What it serves.
 * @param total How many tools the registry has.
 * @param nats What it has to do with NATS.
 */
export function banner(
  sources: readonly string[],
  url: string,
  settings: ServeSettings,
  toolset: Toolset,
  total: number,
  terminal: Terminal,
  nats?: string,
): string {
  const tools = toolset.available();
  const { maxRisk } = settings;
  const role = settings.role === undefined ? "" : `, for role "${settings.role}"`;
  const more = tools.length < total ? "; --max-risk and --role say which" : "";
  return [
    `plue serves ${sources.join(", ")} on ${terminal.paint("bold", url)}`,
    "",
    `${tools.length} of ${counted(total, "tool")}, up to risk "${maxRisk}"${role}${more}:`,
    ...tools.length === 0 ? [] : [
      terminal.table(
        ["TOOL", "RISK", "DESCRIPTION"],
        tools.slice(0, MAX_SHOWN)
          .map(({ id, risk, title, description }) => [id, risk, title ?? description]),
      ).replaceAll(/^/gm, "  "),
    ],
    ...tools.length > MAX_SHOWN ? [`  and ${tools.length - MAX_SHOWN} more: ${url}/`] : [],
    "",
    settings.token === undefined
      ? "Every program on this machine may call them."
      : "Callers must present the token in PLUE_TOKEN.",
    ...nats === undefined ? [] : [`${nats}.`],
    `Look at them, and call them, on ${url}/ in a browser. Or try:`,
    `  ${example(url, settings, toolset)}`,
    "",
    "MCP clients get the same tools, with this in their configuration:",
    `  ${mcpClient(url, settings)}`,
  ].join("\n");
}

/** How many tools are listed, so that the address stays on the screen. */
const MAX_SHOWN = 20;

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
  const found = toolset.available().map((tool) => [tool.id, exampleOf(tool)] as const)
    .find(([, input]) => input !== undefined);
  if (found === undefined) return `curl -s${token} ${url}/tools`;
  const [id, input] = found;
  const body = JSON.stringify({ arguments: input }).replaceAll("'", "'\\''");
  return `curl -s${token} -H "content-type: application/json" ` +
    `-d '${body}' ${url}/tools/${id}/execute`;
}

/** Arguments for a call that changes nothing: an example of the tool's, or none where none are needed. */
function exampleOf(tool: ReturnType<Toolset["available"]>[number]): unknown {
  if (tool.annotations.readOnlyHint !== true || tool.requiresApproval) return undefined;
  const [example] = tool.examples;
  if (example !== undefined) return example.input;
  return flagsOf(tool).some(({ isRequired }) => isRequired) ? undefined : {};
}
