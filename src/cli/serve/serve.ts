/**
 * `plue serve`: the tools over HTTP and MCP, until Ctrl-C.
 *
 * @module
 */

import * as formats from "../../formats/mod.ts";
import {
  type Authorize,
  bearerAuth,
  createToolHandler,
  limitFailedLogins,
  serveFormats,
} from "../../adapters/hono/mod.ts";
import { createMcpEndpoint } from "../../adapters/mcp/mod.ts";
import { ToolDispatcher, type ToolRegistry } from "../../adapters/typebox/mod.ts";
import { createToolBridge, fitBudget } from "../../finding/mod.ts";
import type { Selection, ToolPolicy, Toolset } from "../../select/mod.ts";
import { cleanText, describeThrown } from "../../tool/mod.ts";
import { flagsOf } from "../arguments.ts";
import { readNats } from "../nats.ts";
import { type Flags, selectionOf, toolsFrom } from "../selection.ts";
import type { LoadedTools } from "../sources/mod.ts";
import { CommandError, counted, EXIT, type Terminal, VERSION } from "../terminal.ts";
import {
  clientAddress,
  hostOf,
  listen,
  readSettings,
  type ServeSettings,
  urlOf,
} from "./settings.ts";
import { openState, type ServeState } from "./state.ts";
import { serveStdio } from "./stdio.ts";
import { supervise, Supervised } from "./watch.ts";

/** The flags of `plue serve`. */
export interface ServeFlags extends Flags {
  readonly port?: string;
  readonly host?: string;
  readonly stdio?: boolean;
  readonly state?: string;
  readonly bridge?: boolean;
  readonly nats?: string;
  readonly watch: boolean;
}

/**
 * Serves tools until it is interrupted.
 *
 * @returns The exit code.
 */
export async function serve(
  sources: readonly string[],
  flags: ServeFlags,
  terminal: Terminal,
): Promise<number> {
  const { io } = terminal;
  const settings = readSettings(io.env, flags);
  const nats = await readNats("serve", io.env, flags.nats);
  const supervised = Supervised.here(io);
  // Another process serves, which is replaced when a file changes.
  if (supervised === undefined && flags.watch && flags.stdio !== true) {
    return await supervise(terminal);
  }
  await using loaded = await toolsFrom(sources, flags, io, nats !== undefined);
  const log = (error: unknown): void => terminal.note(logText(error));
  // A process without tools serves the tools of the workers.
  const isEdge = nats !== undefined && loaded.sources.length === 0;
  const service = nats && await import("./nats.ts");
  await using edge = isEdge ? await service?.openEdge(loaded.registry, nats, log) : undefined;
  using state = await openState(flags.state, edge?.state ?? loaded.state, terminal);
  const access = await accessOf(loaded, flags, settings, state, terminal, log);
  const { selection } = access;
  // This runs before an earlier process stops, so that a reload leaves no gap.
  const offered = workerSelection(loaded, flags, settings);
  await using worker = nats === undefined || isEdge
    ? undefined
    : await service?.openWorker(loaded, offered, nats, access.dispatcher, log);
  const mcp = createMcpEndpoint(loaded.registry, {
    ...access,
    tasks: state.tasks,
    ...(flags.bridge === true ? { tools: "bridge" as const } : {}),
    name: "plue",
    version: VERSION,
  });
  using _followed = followAvailability(loaded);
  if (flags.stdio === true) {
    return await serveStdio(mcp, (name) => {
      const toolset = loaded.registry.select(selection);
      return toolset.get(formats.exportTools(toolset, "mcp").names.idOf(name) ?? "")?.parameters;
    }, io);
  }

  const { explorer } = await import("../../explorer/mod.ts");
  const app = createToolHandler(loaded.registry, {
    ...access,
    tasks: state.tasks,
    explorer,
    bridge: createToolBridge,
    formats: serveFormats(formats, { fitBudget, openapi: { title: "plue" } }),
    ...(settings.token === undefined ? { openExplain: true } : {}),
  });
  app.all("/mcp", mcp.handle);

  const port = await supervised?.loaded(loaded.files) ?? settings.port;
  const server = await listen((request, env) => app.fetch(request, env as object), {
    ...{ host: settings.host, port },
  });
  supervised?.listening(server.port);
  const served = (): Toolset => loaded.registry.select(selection);
  // A task of a tool that is no longer served must not run again.
  state.recover(() => access.dispatcher.withToolset(served()), io.signal);
  const toolset = served();
  const url = urlOf(settings.host, server.port);
  const { count } = loaded.registry;
  if (supervised?.isReload === true) {
    terminal.note(`Loaded again: ${toolset.available().length} of ${counted(count, "tool")}`);
  } else if (terminal.isJson) {
    terminal.printJson({
      ...{ url, mcp: `${url}/mcp`, tools: toolset.available().map(({ id }) => id) },
      ...(nats && { nats: nats.shown, isEdge }),
    });
  } else {
    const origin = loaded.sources.length > 0 ? loaded.sources : ["the tools of workers"];
    terminal.print(
      banner(origin, url, settings, toolset, count, terminal, (edge ?? worker)?.about),
    );
  }

  await aborted(io.signal);
  // Closing the connections aborts their calls, which stop their commands and roll back.
  await server.close();
  return EXIT.ok;
}

/** The interval between calls of the availability functions, in milliseconds. */
const FOLLOW_MS = 2_000;

/** Notifies clients of tools that become available or unavailable. */
function followAvailability({ registry }: LoadedTools): Disposable {
  // A module may export a registry of the core, which does not follow availability.
  const timer = setInterval(() => (registry as Partial<ToolRegistry>).refresh?.(), FOLLOW_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** The tools that a worker offers. The edges check the roles and scopes of callers. */
function workerSelection(
  loaded: LoadedTools,
  flags: ServeFlags,
  { maxRisk, role }: ServeSettings,
): Selection {
  return { ...selectionOf(flags), maxRisk, role, ...withinSelection(loaded) };
}

/** The maximum number of failed logins of an address. */
const FAILED_LOGINS = { limit: 10, windowMs: 60_000, clientAddress } as const;

/**
 * Limits the failed logins of one address. The right token is always admitted: behind a proxy all
 * clients have its address, and a token is too long to be guessed.
 */
function withFailuresLimited(authorize: Authorize, { logins }: ServeState): Authorize {
  const limited = limitFailedLogins(authorize, { ...FAILED_LOGINS, store: logins });
  return async (request, env) => {
    const answer = await authorize(request, env);
    return answer instanceof Response ? await limited(request, env) : answer;
  };
}

/** The rights of callers, both over HTTP and over MCP. */
async function accessOf(
  loaded: LoadedTools,
  flags: ServeFlags,
  settings: ServeSettings,
  state: ServeState,
  terminal: Terminal,
  log: (error: unknown) => void,
) {
  const { registry } = loaded;
  const selection: Selection = {
    ...selectionOf(flags),
    maxRisk: settings.maxRisk,
    scopes: selectionOf(flags).scopes ?? [],
    role: settings.role ?? null,
    ...withinSelection(loaded),
  };
  await recover(loaded, selection, terminal);
  const isRemote = flags.stdio !== true && settings.token !== undefined;
  return {
    selection,
    allowedHosts: settings.isLoopback
      ? ["localhost", "127.0.0.1", "[::1]", hostOf(settings.host)]
      : "any" as const,
    dispatcher: new ToolDispatcher(registry, {
      onError: ({ error }) => log(error),
      ...state.dispatch,
      ...loaded.dispatch,
    }),
    onError: log,
    // Without a token only loopback is served (the settings see to it), and the handler checks Host
    // and Origin, so that no web page can call. With one, the token is the check, under any name.
    ...(isRemote
      ? {
        authorize: withFailuresLimited(
          bearerAuth({
            tokens: new Map([[
              settings.token ?? "",
              { ...(settings.role === undefined ? {} : { role: settings.role }), explain: true },
            ]]),
          }),
          state,
        ),
      }
      : { openExecution: true }),
  };
}

/**
 * Writes an error with its stack, for the operator, without control characters: parts of it may
 * come from a client.
 */
function logText(error: unknown): string {
  const text = error instanceof Error ? error.stack : undefined;
  return cleanText(text ?? describeThrown(error), 20_000);
}

/** Returns the module's policy for all callers, if it has one. */
function withinSelection(loaded: LoadedTools): Pick<Selection, "policies"> {
  return Object.keys(loaded.selection).length === 0 ? {} : { policies: [withinModule(loaded)] };
}

/** Keeps the tools that the module lets anyone have. */
function withinModule({ registry, selection }: LoadedTools): ToolPolicy {
  const revision = (): Toolset => registry.select(selection);
  return {
    name: "module",
    allow: (tool) => !!tool && revision().has(tool.id),
    requiresApproval: (tool) => revision().requiresApproval(tool),
    reason: (tool) => revision().explain(tool.id).reason,
    // The same toolset for as long as it has the same tools.
    revision,
  };
}

/** A transaction manager that can roll back transactions of a process that died. */
interface Recoverable {
  recover?(): unknown;
}

/** A server that may change something first rolls back the open transactions of an earlier run. */
async function recover(
  { registry, dispatch }: LoadedTools,
  selection: Selection,
  terminal: Terminal,
): Promise<void> {
  const { recover } = (dispatch.transactions ?? {}) as Recoverable;
  const isNeeded = registry.select(selection).tools.some((tool) => tool.requiresTransaction);
  if (!isNeeded || typeof recover !== "function") return;
  try {
    const count = await recover.call(dispatch.transactions);
    if (typeof count === "number" && count > 0) {
      terminal.note(`Rolled back ${count} transactions of an earlier run`);
    }
  } catch (cause) {
    // The message names what remains, for a person to look at.
    throw new CommandError(describeThrown(cause, 4_000), EXIT.failed, { cause });
  }
}

/** Resolves at Ctrl-C. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/**
 * The sources, the address, the tools that are served, and one command to try.
 *
 * @param sources The sources on the command line.
 * @param url The address of the server.
 * @param toolset The toolset of callers.
 * @param total The number of tools in the registry.
 * @param nats The role of the server in NATS.
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

/** The maximum number of listed tools, so that the address stays on the screen. */
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

/**
 * Returns arguments for a call that changes nothing: an example of the tool's, or `{}` if it needs
 * none.
 */
function exampleOf(tool: ReturnType<Toolset["available"]>[number]): unknown {
  if (tool.annotations.readOnlyHint !== true || tool.requiresApproval) return undefined;
  const [example] = tool.examples;
  if (example !== undefined) return example.input;
  return flagsOf(tool).some(({ isRequired }) => isRequired) ? undefined : {};
}
