/** `plue serve`: the tools over HTTP and MCP, until Ctrl-C. */

import { once } from "node:events";
import * as formats from "../../formats/mod.ts";
import {
  type Authorize,
  bearerAuth,
  createToolHandler,
  limitFailedLogins,
  serveFormats,
} from "../../adapters/hono/mod.ts";
import { type Journal, journal, jsonLines } from "../../adapters/journal/mod.ts";
import { createMcpEndpoint } from "../../adapters/mcp/mod.ts";
import { ToolDispatcher, type ToolRegistry } from "../../adapters/typebox/mod.ts";
import { createToolBridge, fitBudget } from "../../finding/mod.ts";
import type { Selection, ToolPolicy, Toolset } from "../../select/mod.ts";
import { cleanText, describeThrown, type Tool } from "../../tool/mod.ts";
import { flagsOf } from "../arguments.ts";
import { type Flags, selectionOf, toolsFrom } from "../show.ts";
import type { LoadedTools } from "../sources/mod.ts";
import { type CommandIo, counted, EXIT, type Terminal, usageError, VERSION } from "../terminal.ts";
import {
  clientAddress,
  hostOf,
  listen,
  readSettings,
  type ServeSettings,
  urlOf,
} from "./settings.ts";
import { openShared } from "../store.ts";
import { openState, type ServeState, withRules } from "./state.ts";
import { serveStdio } from "./stdio.ts";
import { supervise, Supervised } from "./watch.ts";

interface ServeFlags extends Flags {
  readonly port?: string;
  readonly host?: string;
  readonly stdio?: boolean;
  readonly state?: string;
  readonly store?: string;
  readonly bridge?: boolean;
  readonly code?: boolean;
  readonly rules?: string;
  readonly journal?: string;
  readonly nats?: string;
  readonly watch: boolean;
}

/** The flags without an effect beside another flag. */
const UNUSED = [["port", "stdio"], ["host", "stdio"], ["bridge", "code"]] as const;

function rejectUnused(flags: ServeFlags): void {
  for (const [unused, other] of UNUSED) {
    if (flags[unused] === undefined || flags[other] !== true) continue;
    const why = `--${unused} has no effect beside --${other}; leave out one of them`;
    throw usageError(`Cannot serve: ${why}`);
  }
}

export async function serve(
  sources: readonly string[],
  flags: ServeFlags,
  terminal: Terminal,
): Promise<number> {
  const { io } = terminal;
  rejectUnused(flags);
  const settings = readSettings(io.env, flags);
  const service = flags.nats ?? io.env["PLUE_NATS"] ? await import("../nats.ts") : undefined;
  const nats = await service?.readNats("serve", io.env, flags.nats);
  const supervised = Supervised.here(io);
  // With `--watch`, a child process serves. A change of a file replaces the child process.
  if (supervised === undefined && flags.watch && flags.stdio !== true) {
    return await supervise(terminal);
  }
  await using loaded = await toolsFrom(sources, flags, io, nats !== undefined);
  const log = (error: unknown): void => terminal.note(logText(error));
  // A process without tools is an edge, which serves the tools of the workers.
  const isEdge = nats !== undefined && loaded.sources.length === 0;
  await using edge = isEdge ? await service?.openEdge(loaded.registry, nats, log) : undefined;
  await using shared = await openShared(io, flags);
  using state = await openState(flags.state, shared ?? edge?.state, terminal);
  const { maxRisk, role, host } = settings;
  // By default a worker offers the tools of all roles and scopes, because edges check the caller.
  const offered = { ...selectionOf(flags), maxRisk, role, ...withinSelection(loaded) };
  const selection = { ...offered, role: role ?? null, scopes: offered.scopes ?? [] };
  const isRemote = flags.stdio !== true && settings.token !== undefined;
  await using records = await openJournal(flags.journal, io, supervised?.isReload);
  const { dispatch, files } = await withRules(loaded, flags.rules, state, io);
  const { registry } = loaded;
  const given = { registry, dispatch, selection, settings, isRemote };
  const access = accessOf({ ...given, state, log, records });
  const code = flags.code && await (await import("../code.ts")).codeMode(registry);
  const source = code ? code.registry : registry;
  // The worker starts before an earlier process stops, so that a reload leaves no gap.
  await using worker = nats === undefined || isEdge
    ? undefined
    : await service?.openWorker(loaded, offered, nats, access.dispatcher, log);
  const mcp = createMcpEndpoint(registry, {
    ...access,
    ...{ tasks: state.tasks, name: "plue", version: VERSION },
    tools: code ? code.codeOver : flags.bridge ? "bridge" : "all",
  });
  using _followed = followAvailability(loaded);
  if (flags.stdio === true) {
    return await serveStdio(mcp, (name) => {
      const toolset = source.select(selection);
      return toolset.get(formats.exportTools(toolset, "mcp").names.idOf(name) ?? "")?.parameters;
    }, io);
  }

  const app = await createApp(source, access, state.tasks, settings, records);
  app.all("/mcp", mcp.handle);

  const port = await supervised?.loaded(files) ?? settings.port;
  const server = await listen((request, env) => app.fetch(request, env as object), { host, port });
  supervised?.listening(server.port);
  const served = (): Toolset => source.select(selection);
  // A task of a tool that is no longer served must not run again.
  state.recover(() => access.dispatcher.withToolset(served()), io.signal);
  const url = urlOf(host, server.port);
  const tools = served().available();
  if (supervised?.isReload === true) {
    terminal.note(`Loaded again: ${tools.length} of ${counted(source.count, "tool")}`);
  } else {
    terminal.printResult(
      {
        ...{ url, mcp: `${url}/mcp`, tools: tools.map(({ id }) => id) },
        ...(nats && { nats: nats.shown, isEdge }),
      },
      () => banner(loaded, source, url, settings, tools, terminal, (edge ?? worker)?.about),
    );
  }

  if (!io.signal.aborted) await once(io.signal, "abort");
  // Closing the connections aborts their calls. The calls then stop their commands and roll back.
  await server.close();
  return EXIT.ok;
}

/** Opens the journal of `--journal`. Calls are rejected while the file cannot be written. */
async function openJournal(
  file: string | undefined,
  { env }: CommandIo,
  isReload = false,
): Promise<Journal | undefined> {
  if (file === undefined) return undefined;
  const key = env["PLUE_JOURNAL_KEY"];
  const records = journal({ sink: jsonLines(file), key, onFailure: "refuse-calls" });
  // During a reload, the earlier process may still write the file.
  if (!isReload) await records.flush();
  return records;
}

/** The interval between calls of the availability functions, in milliseconds. */
const FOLLOW_MS = 2_000;

function followAvailability({ registry }: LoadedTools): Disposable {
  // A registry of the core, which a module may export, has no `refresh`.
  const timer = setInterval(() => (registry as Partial<ToolRegistry>).refresh?.(), FOLLOW_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/**
 * Limits the failed logins of one address. The right token is always admitted: behind a proxy, all
 * clients have the same address. That helps no attacker, because a token is too long to be guessed.
 */
function withFailuresLimited(authorize: Authorize, { logins }: ServeState): Authorize {
  const limited = limitFailedLogins(authorize, {
    ...{ limit: 10, windowMs: 60_000, clientAddress, store: logins },
  });
  return async (request, env) => {
    const answer = await authorize(request, env);
    return answer instanceof Response ? await limited(request, env) : answer;
  };
}

async function createApp(
  registry: LoadedTools["registry"],
  access: ReturnType<typeof accessOf>,
  tasks: ServeState["tasks"],
  { token }: ServeSettings,
  records: Journal | undefined,
) {
  const { explorer } = await import("../../explorer/mod.ts");
  return createToolHandler(registry, {
    ...{ ...access, tasks, explorer, bridge: createToolBridge },
    formats: serveFormats(formats, { fitBudget, openapi: { title: "plue" } }),
    ...(token === undefined ? { openExplain: true } : {}),
    ...(records && { journal: records }),
  });
}

function accessOf({ registry, dispatch, selection, settings, isRemote, state, log, records }: {
  readonly registry: LoadedTools["registry"];
  readonly dispatch: LoadedTools["dispatch"];
  readonly selection: Selection;
  readonly settings: ServeSettings;
  readonly isRemote: boolean;
  readonly state: ServeState;
  readonly log: (error: unknown) => void;
  readonly records: Journal | undefined;
}) {
  const { token = "", role, isLoopback, host } = settings;
  const { scopes = [] } = selection;
  const principal = { ...(role === undefined ? {} : { role }), scopes: [...scopes], explain: true };
  return {
    selection,
    allowedHosts: isLoopback ? ["localhost", "127.0.0.1", "[::1]", hostOf(host)] : "any" as const,
    dispatcher: new ToolDispatcher(registry, {
      onError: ({ error }) => log(error),
      ...state.dispatch,
      ...dispatch,
      ...(records && { layers: [records, ...dispatch.layers ?? []] }),
    }),
    onError: log,
    // Without a token, the settings allow loopback only, and the handler checks Host and Origin, so
    // that no web page can call. With a token, any host name is allowed, because callers need the token.
    ...(isRemote
      ? {
        authorize: withFailuresLimited(
          bearerAuth({ tokens: new Map([[token, principal]]) }),
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

/** Returns a policy that keeps the tools that the module makes public. */
function withinSelection({ registry, selection }: LoadedTools): Pick<Selection, "policies"> {
  if (Object.keys(selection).length === 0) return {};
  let selected: Toolset | undefined;
  // Each request selects the tools again, because the results of policies may change.
  const toolset = (): Toolset => {
    if (selected !== undefined) return selected;
    queueMicrotask(() => selected = undefined);
    return selected = registry.select(selection);
  };
  const policy: ToolPolicy = {
    name: "module",
    allow: (tool) => !!tool && toolset().has(tool.id),
    requiresApproval: (tool) => toolset().requiresApproval(tool),
    reason: (tool) => toolset().explain(tool.id).reason,
    // `select` returns the same object until the tools change.
    revision: toolset,
  };
  return { policies: [policy] };
}

/**
 * Describes the sources, the address and the tools, with one command to try.
 *
 * @param nats The role of the server in NATS.
 */
function banner(
  { sources }: LoadedTools,
  registry: LoadedTools["registry"],
  url: string,
  { maxRisk, role, token }: ServeSettings,
  tools: readonly Tool[],
  terminal: Terminal,
  nats?: string,
): string {
  const from = sources.length > 0 ? sources.join(", ") : "the tools of workers";
  const forRole = role === undefined ? "" : `, for role "${role}"`;
  const more = tools.length < registry.count ? "; --max-risk and --role say which" : "";
  // Clients and shells fill in the token, so that it is not printed.
  const headers = token !== undefined && { headers: { Authorization: "Bearer ${PLUE_TOKEN}" } };
  const client = { type: "http", url: `${url}/mcp`, ...headers };
  const curl = `curl -s${token === undefined ? "" : ' -H "authorization: Bearer $PLUE_TOKEN"'}`;
  return [
    `plue serves ${from} on ${terminal.paint("bold", url)}`,
    "",
    `${tools.length} of ${
      counted(registry.count, "tool")
    }, up to risk "${maxRisk}"${forRole}${more}:`,
    ...tools.length === 0 ? [] : [
      terminal.table(
        ["TOOL", "RISK", "DESCRIPTION"],
        tools.slice(0, MAX_SHOWN)
          .map(({ id, risk, title, description }) => [id, risk, title ?? description]),
      ).replaceAll(/^/gm, "  "),
    ],
    ...tools.length > MAX_SHOWN ? [`  and ${tools.length - MAX_SHOWN} more: ${url}/`] : [],
    "",
    token === undefined
      ? "Every program on this machine may call them."
      : "Callers must present the token in PLUE_TOKEN.",
    ...nats === undefined ? [] : [`${nats}.`],
    `Show and call them at ${url}/ in a browser. Or try:`,
    `  ${curl} ${example(url, tools)}`,
    "",
    "MCP clients get the same tools, with this in their configuration:",
    `  "mcpServers": { "plue": ${JSON.stringify(client)} }`,
  ].join("\n");
}

/** The maximum number of listed tools, so that the address stays on the screen. */
const MAX_SHOWN = 20;

const MAX_EXAMPLE = 2_000;

function example(url: string, tools: readonly Tool[]): string {
  for (const tool of tools) {
    if (tool.annotations.readOnlyHint !== true || tool.requiresApproval) continue;
    const [example] = tool.examples;
    if (example === undefined && flagsOf(tool).some(({ isRequired }) => isRequired)) continue;
    const body = JSON.stringify({ arguments: example?.input ?? {} });
    // Other people's examples must not control the terminal.
    if (cleanText(body, MAX_EXAMPLE) !== body) continue;
    const quoted = body.replaceAll("'", "'\\''");
    return `-H "content-type: application/json" -d '${quoted}' ${url}/tools/${tool.id}/execute`;
  }
  return `${url}/tools`;
}
