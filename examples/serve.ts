/**
 * Serves the workspace toolset over HTTP, on Bun. `npm start` runs it.
 *
 * | variable | meaning | default |
 * |---|---|---|
 * | `PORT` | where to listen; 0 is any free port | 8787 |
 * | `HOST` | the address to listen on; others than loopback need `PLUE_TOKEN` | 127.0.0.1 |
 * | `PLUE_MAX_RISK` | the highest risk that is served | low |
 * | `PLUE_ROLE` | the role that callers have | none |
 * | `PLUE_WORKSPACE` | the folder that the tools work in | the current one |
 * | `PLUE_GIT_FOLDER` | where its repository may keep data outside of it (worktrees, submodules) | none |
 * | `PLUE_STATE` | where journals of transactions lie, never in a workspace | the user's state folder |
 * | `PLUE_TOKEN` | what callers must present as a bearer token: 16 or more characters | none |
 *
 * @module
 */

import { statSync } from "node:fs";
import process from "node:process";
import { type Selection, ToolDispatcher } from "../mod.ts";
import {
  bearerAuth,
  createToolHandler,
  limitFailedLogins,
  serveFormats,
} from "../src/adapters/hono/mod.ts";
import { createMcpEndpoint } from "../src/adapters/mcp/mod.ts";
import { explorer } from "../src/explorer/mod.ts";
import * as formats from "../src/formats/mod.ts";
import { banner } from "./serve/banner.ts";
import { hostOf, readSettings, SettingsError, urlOf } from "./serve/settings.ts";
import { createWorkspaceRegistry } from "./workspace/mod.ts";

type Server = ReturnType<typeof Bun.serve>;

/** A value that cannot be used ends the program with this code. */
const BAD_VALUE = 2;

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(BAD_VALUE);
}

/** Ends the program with one line if a setting cannot be used. */
function orExit<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof SettingsError || error instanceof TypeError) return fail(error.message);
    throw error;
  }
}

const settings = orExit(() => readSettings(process.env, process.cwd(), isFolder));
const { registry, transactions } = orExit(() =>
  createWorkspaceRegistry({ root: settings.workspace, gitFolders: settings.gitFolders })
);
const selection: Selection = {
  maxRisk: settings.maxRisk,
  scopes: [],
  role: settings.role ?? null,
};
const toolset = registry.select(selection);

// A server that may change files first rolls back the open transactions of an earlier run.
if (toolset.tools.some((tool) => tool.requiresTransaction)) {
  const count = await transactions.recover().catch((error: unknown) => {
    // The message names the folder with the remaining files, for a person to look at.
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  });
  if (count > 0) process.stderr.write(`Rolled back ${count} transactions of an earlier run\n`);
}

/** How often an address may show a wrong token. */
const FAILED_LOGINS = { limit: 10, windowMs: 60_000 };

/** Access is the same over HTTP and over MCP. */
const access = {
  selection,
  allowedHosts: settings.isLoopback
    ? ["localhost", "127.0.0.1", "[::1]", hostOf(settings.host)]
    : "any" as const,
  dispatcher: new ToolDispatcher(registry, {
    transactions,
    // Each call may hold a file in memory, or run a command. Further ones wait.
    limits: { maxConcurrentPerTool: 8 },
    onError: ({ error }) => console.error(error),
  }),
  onError: (error: unknown) => console.error(error),
  // Without a token only loopback is served (the settings see to it), and the handler checks Host
  // and Origin, so that no web page can call. With one, the token is the check, under any name.
  ...(settings.token === undefined ? { openExecution: true } : {
    authorize: limitFailedLogins(
      bearerAuth({
        tokens: new Map([[
          settings.token,
          { ...(settings.role === undefined ? {} : { role: settings.role }), explain: true },
        ]]),
      }),
      {
        ...FAILED_LOGINS,
        clientAddress: (request, server) => (server as Server).requestIP(request)?.address,
      },
    ),
  }),
};
const mcp = createMcpEndpoint(registry, { ...access, name: "plue" });
const app = createToolHandler(registry, {
  ...access,
  formats: serveFormats(formats, { openapi: { title: "plue" } }),
  explorer,
  ...(settings.token === undefined ? { openExplain: true } : {}),
});
app.all("/mcp", mcp.handle);

function serve(): Server {
  try {
    return Bun.serve({
      port: settings.port,
      hostname: settings.host,
      // Far above the handler's own limit, so that the handler answers with its message.
      maxRequestBodySize: 64 * 1024 * 1024,
      // A silent connection is closed. The handler lifts this for a call that runs, and streams
      // have a heartbeat.
      idleTimeout: 10,
      fetch: app.fetch,
    });
  } catch (error) {
    const code = (error as { readonly code?: unknown }).code;
    const why = code === "EADDRINUSE"
      ? "the port is in use; set PORT to another one"
      : code === "EACCES"
      ? "the operating system forbids the port; set PORT to one above 1023"
      : `the operating system answered ${String(code)}; is HOST an address of this machine?`;
    return fail(`Cannot serve on ${settings.host}, port ${settings.port}: ${why}`);
  }
}

const server = serve();
console.log(
  banner(urlOf(settings.host, server.port ?? settings.port), settings, toolset, registry.count),
);

let isStopping = false;
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.on(name, async () => {
    // A second signal ends the process at once.
    if (isStopping) process.exit(1);
    isStopping = true;
    // Closing the connections aborts their calls, which stop their commands and roll back.
    await server.stop(true);
    await registry.dispose();
    process.exit(0);
  });
}
