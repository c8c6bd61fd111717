/** `plue serve`: the tools over HTTP and MCP, until Ctrl-C. */

import { once } from "node:events";
import { bearerAuth } from "../../adapters/hono/mod.ts";
import type { ToolRegistry } from "../../adapters/typebox/mod.ts";
import { buildToolset, type Selection, type ToolPolicy, type Toolset } from "../../select/mod.ts";
import { cleanText, type Tool } from "../../tool/mod.ts";
import { flagsOf } from "../arguments.ts";
import { selectionOf, toolsFrom } from "../show.ts";
import type { LoadedTools } from "../sources/mod.ts";
import { counted, EXIT, openPage, type Terminal, usageError } from "../terminal.ts";
import { createService, logText, openJournal, openSkills, tokenCaller } from "./service.ts";
import { listen, listenForCallbacks, readSettings, type ServeFlags } from "./settings.ts";
import { type ServeSettings, urlOf } from "./settings.ts";
import { openShared } from "../store.ts";
import { openState, refreshing, withRules } from "./state.ts";
import { serveStdio } from "./stdio.ts";
import { supervise, Supervised } from "./watch.ts";

/** The flags without an effect with another flag. */
const UNUSED = [
  ...[["port", "stdio"], ["host", "stdio"], ["open", "stdio"], ["bridge", "code"]] as const,
];

function rejectUnused(flags: ServeFlags): void {
  for (const [unused, other] of UNUSED) {
    if (flags[unused] === undefined || flags[other] !== true) continue;
    const why = `--${unused} has no effect with --${other}; leave out one of them`;
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
  if (flags.config !== undefined) {
    const { serveFile } = await import("../gateway/serve.ts");
    return await serveFile(flags.config, sources, flags, terminal);
  }
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
  const isRemote = settings.token !== undefined;
  await using records = await openJournal(
    flags.journal,
    { key: io.env["PLUE_JOURNAL_KEY"] },
    supervised?.isReload,
  );
  const { dispatch: ruled, files } = await withRules(loaded, flags.rules, state, io);
  // A program with the token, or a caller over NATS, must not approve its own calls by default.
  const isLocal = !isRemote && nats === undefined;
  const dispatch = isLocal ? { approve: "ask" as const, ...ruled } : ruled;
  const token = isRemote ? tokenCaller(settings, selection.scopes) : undefined;
  const { app, mcp, dispatcher, shown } = await createService(loaded.registry, {
    ...{ selection, dispatch, settings, state, log, records },
    skills: await openSkills(flags.skills, log),
    authorize: token && bearerAuth({ tokens: new Map([token]) }),
    ...{ bridge: flags.bridge, code: flags.code },
  });
  // The worker starts before an earlier process stops, so that a reload leaves no gap.
  await using worker = nats === undefined || isEdge
    ? undefined
    : await service?.openWorker(loaded, offered, nats, dispatcher, log);
  // A registry of the core, which a module may export, has no `refresh`.
  const registry: Partial<ToolRegistry> = loaded.registry;
  using _refreshing = refreshing(() => registry.refresh?.());
  const served = (): Toolset => shown(loaded.registry.select(selection));
  const { callbacks } = loaded;
  if (flags.stdio === true) {
    await using _callbacks = await listenForCallbacks(() => callbacks, settings, terminal);
    return await serveStdio(mcp, served, io);
  }
  for (const callback of callbacks) app.get(callback.path, ({ req }) => callback(req.raw));

  const port = await supervised?.loaded(files) ?? settings.port;
  const server = await listen((request, env) => app.fetch(request, env as object), { host, port });
  supervised?.listening(server.port);
  // A task of a tool that is no longer served must not run again.
  state.recover(() => dispatcher.withToolset(served()), io.signal);
  const url = urlOf(host, server.port);
  const tools = served().available();
  const total = loaded.registry.count + shown(buildToolset([])).size;
  if (supervised?.isReload === true) {
    terminal.note(`Loaded again: ${tools.length} of ${counted(total, "tool")}`);
  } else {
    terminal.printResult(
      {
        ...{ url, mcp: `${url}/mcp`, tools: tools.map(({ id }) => id) },
        ...(nats && { nats: nats.shown, isEdge }),
      },
      () => banner(loaded, total, url, settings, tools, terminal, (edge ?? worker)?.about),
    );
    if (flags.open === true) openPage(url, terminal);
  }

  if (!io.signal.aborted) await once(io.signal, "abort");
  // Closing the connections aborts their calls. The calls then stop their commands and roll back.
  await server.close();
  return EXIT.ok;
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
 * @param total The number of the tools without the limits of risk and role.
 * @param nats The role of the server in NATS.
 */
function banner(
  { sources }: LoadedTools,
  total: number,
  url: string,
  { maxRisk, role, token }: ServeSettings,
  tools: readonly Tool[],
  terminal: Terminal,
  nats?: string,
): string {
  const from = sources.length > 0 ? sources.join(", ") : "the tools of workers";
  const forRole = role === undefined ? "" : `, for role "${role}"`;
  const more = tools.length < total
    ? "; the others have a higher risk or need a role (--max-risk, --role)"
    : "";
  // Clients and shells fill in the token, so that it is not printed.
  const headers = token !== undefined && { headers: { Authorization: "Bearer ${PLUE_TOKEN}" } };
  const client = { type: "http", url: `${url}/mcp`, ...headers };
  const curl = `curl -s${token === undefined ? "" : ' -H "authorization: Bearer $PLUE_TOKEN"'}`;
  return [
    `plue serves ${from} on ${terminal.paint("bold", url)}`,
    "",
    `${tools.length} of ${counted(total, "tool")}, up to risk "${maxRisk}"${forRole}${more}:`,
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
    "MCP clients connect with this in their configuration:",
    `  "mcpServers": { "plue": ${JSON.stringify(client)} }`,
  ].join("\n");
}

/** The maximum number of listed tools, so that the address stays on the screen. */
const MAX_SHOWN = 20;

const MAX_EXAMPLE = 2_000;

function example(url: string, tools: readonly Tool[]): string {
  for (const tool of tools) {
    if (tool.annotations.readOnlyHint !== true || tool.requiresApproval) continue;
    if (tool.execute === undefined) continue;
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
