/** The HTTP handler, the MCP endpoint and the dispatcher of `plue serve`. */

import { decodeCalls, dispatchCalls, exportTools, resumeTurn } from "../../formats/mod.ts";
import {
  type Authorize,
  type Caller,
  createToolHandler,
  limitFailedLogins,
  serveFormats,
  type ToolHandlerOptions,
} from "../../adapters/hono/mod.ts";
import {
  type Journal,
  journal,
  type JournalOptions,
  jsonLines,
} from "../../adapters/journal/mod.ts";
import {
  createMcpEndpoint,
  type McpEndpoint,
  type SkillCatalog,
  skillCatalog,
} from "../../adapters/mcp/mod.ts";
import { ToolDispatcher } from "../../adapters/typebox/mod.ts";
import type { ToolDispatcherOptions } from "../../execute/mod.ts";
import { createToolBridge, fitBudget } from "../../finding/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import type { Selection, Toolset } from "../../select/mod.ts";
import { cleanText, describeThrown } from "../../tool/mod.ts";
import { usageError, VERSION } from "../terminal.ts";
import { clientAddress, hostOf, type ServeSettings } from "./settings.ts";
import type { ServiceState } from "./state.ts";

export interface ServiceOptions {
  readonly selection: Selection;
  readonly dispatch: ToolDispatcherOptions;
  readonly settings: Pick<ServeSettings, "host">;
  readonly state: ServiceState;
  readonly log: (error: unknown) => void;
  readonly records?: Journal | undefined;
  readonly skills?: SkillCatalog | undefined;
  /** Identifies the callers. Without it, every program on this machine may call. */
  readonly authorize?: Authorize | undefined;
  readonly bridge?: boolean | undefined;
  readonly code?: boolean | undefined;
  readonly explorer?: boolean | undefined;
  readonly more?: Pick<ToolHandlerOptions, "rateLimit" | "parts"> | undefined;
}

export interface Service {
  readonly app: ReturnType<typeof createToolHandler>;
  readonly mcp: McpEndpoint;
  readonly dispatcher: ToolDispatcher;
  /** Returns the tools of a toolset, and the tools that run programs. */
  shown(toolset: Toolset): Toolset;
}

/** Creates the handlers of a registry. `app` has the MCP endpoint at `/mcp`. */
export async function createService(registry: Registry, options: ServiceOptions): Promise<Service> {
  const { selection, dispatch, settings: { host }, state, log, records, authorize, more = {} } =
    options;
  const dispatcher = new ToolDispatcher(registry, {
    onError: ({ error }) => log(error),
    ...state.dispatch,
    ...dispatch,
    ...(records && { layers: [records, ...dispatch.layers ?? []] }),
  });
  const access = {
    ...{ selection, dispatcher, onError: log, tasks: state.tasks },
    // Without a token, the settings allow loopback only, and the handler checks Host and Origin, so
    // that no web page can call. With a token, any host name is allowed, because callers need the token.
    ...(authorize === undefined
      ? { openExecution: true, allowedHosts: ["localhost", "127.0.0.1", "[::1]", hostOf(host)] }
      : { authorize: withFailuresLimited(authorize, state), allowedHosts: "any" as const }),
    ...(more.rateLimit && { rateLimit: more.rateLimit }),
  };
  const code = options.code && await (await import("../code.ts")).codeMode();
  const mcp = createMcpEndpoint(registry, {
    ...{ ...access, name: "plue", version: VERSION },
    ...(options.skills && { skills: options.skills }),
    tools: code ? code.alone : options.bridge === true ? "bridge" : "all",
  });
  const { explorer } = await import("../../explorer/mod.ts");
  const app = createToolHandler(registry, {
    ...{ ...access, ...(code && { tools: code.beside }), bridge: createToolBridge },
    formats: serveFormats({ exportTools, decodeCalls, dispatchCalls, resumeTurn }, {
      fitBudget,
      openapi: { title: "plue" },
    }),
    ...(options.explorer === false ? {} : { explorer }),
    ...(authorize === undefined ? { openExplain: true } : {}),
    ...(records && { journal: records }),
    ...(more.parts && { parts: more.parts }),
  });
  app.all("/mcp", mcp.handle);
  return { app, mcp, dispatcher, shown: (toolset) => code ? code.beside(toolset) : toolset };
}

/** Returns the token of `PLUE_TOKEN` and its caller; `undefined` without a token. */
export function tokenCaller(
  { token, role }: Pick<ServeSettings, "token" | "role">,
  scopes: Selection["scopes"] = [],
): readonly [token: string, caller: Caller] | undefined {
  const rights = { ...(role === undefined ? {} : { role }), scopes: [...scopes], explain: true };
  return token === undefined ? undefined : [token, rights];
}

/**
 * Limits the failed logins of one address. The right token is always admitted: behind a proxy, all
 * clients have the same address. That helps no attacker, because a token is too long to be guessed.
 */
function withFailuresLimited(authorize: Authorize, { logins }: ServiceState): Authorize {
  const limited = limitFailedLogins(authorize, {
    ...{ limit: 10, windowMs: 60_000, clientAddress, store: logins },
  });
  return async (request, env) => {
    const answer = await authorize(request, env);
    // Clients replace an expired JSON Web Token only after 401.
    const token = request.headers.get("authorization") ?? "";
    const isGuess = !/^bearer eyJ[\w-]+(\.[\w-]+){2}$/i.test(token);
    return answer instanceof Response && isGuess ? await limited(request, env) : answer;
  };
}

/**
 * Opens a journal in a file. Calls are rejected while the file cannot be written.
 *
 * @param isReload True if an earlier process may still write the file.
 */
export async function openJournal(
  file: string | undefined,
  options: Pick<JournalOptions, "arguments" | "key" | "secrets">,
  isReload = false,
): Promise<Journal | undefined> {
  if (file === undefined) return undefined;
  const records = journal({ sink: jsonLines(file), onFailure: "refuse-calls", ...options });
  if (!isReload) await records.flush();
  return records;
}

/** The tools of coding agents that the skills of others name. */
const HOST_TOOLS = ["Bash", "Edit", "Glob", "Grep", "Read", "WebFetch", "WebSearch", "Write"];

export async function openSkills(
  folder: string | undefined,
  log: (error: unknown) => void,
): Promise<SkillCatalog | undefined> {
  if (folder === undefined) return undefined;
  const { nodeSkillFiles } = await import("@modelcontextprotocol/server/ext/skills/node");
  try {
    return await skillCatalog(nodeSkillFiles(folder), {
      hostTools: HOST_TOOLS,
      onWarning: ({ path, message }) => log(`Skill ${path} ${message}`),
    });
  } catch (cause) {
    throw usageError(`Cannot read the skills in "${folder}": ${describeThrown(cause)}`, { cause });
  }
}

/**
 * Writes an error with its stack, for the operator, without control characters of a client. Further
 * lines are indented, so that no text of a client looks like another message.
 */
export function logText(error: unknown): string {
  const text = error instanceof Error ? error.stack : undefined;
  return cleanText(text ?? describeThrown(error), 20_000).replaceAll("\n", "\n    ");
}
