/** `plue serve -c plue.json`, which follows the changes of the file, and `plue check plue.json`. */

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { basename, resolve } from "node:path";
import process from "node:process";
import { toolPins } from "../../adapters/pins/mod.ts";
import { attemptOr, cleanText, defined, describeThrown, noop } from "../../tool/mod.ts";
import { selectionOf } from "../show.ts";
import { logText, openJournal, openSkills, tokenCaller } from "../serve/service.ts";
import { listen, listenForCallbacks, readSettings, type ServeFlags } from "../serve/settings.ts";
import { urlOf } from "../serve/settings.ts";
import { openState, refreshing } from "../serve/state.ts";
import { serveStdio } from "../serve/stdio.ts";
import { Changes } from "../serve/watch.ts";
import { isPlueFile } from "../sources/mod.ts";
import { openShared } from "../store.ts";
import {
  type CommandIo,
  counted,
  EXIT,
  openPage,
  parsedJson,
  type Terminal,
  usageError,
} from "../terminal.ts";
import { authorizeCallers } from "./callers.ts";
import { fullName, type PlueFile, readPlueFile } from "./file.ts";
import { checkRules, Gateway } from "./gateway.ts";

/** Serves a file until Ctrl-C. `sources` are of the command line, and must be in the file instead. */
export async function serveFile(
  path: string,
  sources: readonly string[],
  flags: ServeFlags,
  terminal: Terminal,
): Promise<number> {
  const { io } = terminal;
  const others = ["from", "header", "baseUrl", "pins", "rules", "nats"] as const;
  const unused = sources[0] ?? others.find((flag) => flags[flag] !== undefined);
  if (unused !== undefined) {
    throw usageError(`Cannot serve: "${unused}" has no effect with -c; write it into ${path}`);
  }
  const file = await readPlueFile(path, io.env);
  const settings = settingsOf(file, flags, io.env);
  const log = (error: unknown): void => terminal.note(logText(error));
  await using shared = await openShared(io, {
    ...flags,
    ...((flags.store ?? flags.state) === undefined && storeOf(file)),
  });
  using state = await openState(flags.state, shared, terminal);
  const { file: place, ...recording } = file.settings.journal ?? {};
  const records = await openJournal(
    flags.journal ?? (place && resolve(file.folder, place)),
    { key: io.env["PLUE_JOURNAL_KEY"], ...recording },
  );
  await using _records = records;
  await using gateway = new Gateway({
    ...{ terminal, state, records, log, flags, selection: selectionOf(flags) },
    ...{ skills: await openSkills(flags.skills, log), firstAttemptMs: 10_000 },
    pins: toolPins,
  });
  const started = gateway.apply(file, settings);
  const reload = async (): Promise<void> => {
    try {
      const next = await readPlueFile(path, io.env);
      if (io.signal.aborted) return;
      await gateway.apply(next, settingsOf(next, flags, io.env));
      terminal.note(`Applied ${path}: ${summary(gateway)}`);
    } catch (error) {
      const why = cleanText(describeThrown(error, 4_000), 4_000);
      terminal.note(`${why.replace(/[^.?]$/, "$&.")} The previous settings are still served`);
    }
  };
  using _followed = follow(path, flags.watch, started, reload);
  await started;
  using _refreshing = refreshing(() => gateway.refresh());
  if (flags.stdio === true) {
    await using _callbacks = await listenForCallbacks(() => gateway.callbacks, settings, terminal);
    return await serveStdio(gateway, () => gateway.toolset(), io);
  }
  const server = await listen((request, env) => gateway.fetch(request, env), settings);
  const url = urlOf(settings.host, server.port);
  terminal.printResult(
    {
      ...{ url, mcp: `${url}/mcp`, tools: gateway.toolset().available().map(({ id }) => id) },
      sources: gateway.status(),
    },
    () => banner(path, url, gateway, terminal),
  );
  if (flags.open === true) openPage(url, terminal);
  if (!io.signal.aborted) await once(io.signal, "abort");
  await server.close();
  return EXIT.ok;
}

function settingsOf({ settings, json }: PlueFile, flags: ServeFlags, env: CommandIo["env"]) {
  const { host, port, selection: { maxRisk } = {}, callers } = settings;
  const hasCallers = callers !== undefined;
  if (flags.stdio === true && hasCallers) {
    json.reject("/callers", "callers have no effect with --stdio; leave out one of them");
  }
  return readSettings(env, flags, {
    values: defined({ host, port: port?.toString(), maxRisk }),
    hasCallers,
    error: (setting, why) => json.reject(`/${setting}`, why),
  });
}

function storeOf({ settings: { store }, folder }: PlueFile): { readonly store?: string } {
  if (store === undefined) return {};
  const [, path] = /^sqlite:(.+)$/s.exec(store) ?? [];
  return { store: path === undefined ? store : `sqlite:${resolve(folder, path)}` };
}

/**
 * Calls `reload` after each change of the file and each SIGHUP, one call after the other. Changes
 * before `started` are applied after it.
 */
function follow(
  path: string,
  isWatched: boolean,
  started: Promise<void>,
  reload: () => Promise<void>,
): Disposable {
  let last = started;
  const apply = (): void => void (last = last.then(reload).catch(noop));
  // The end of a terminal sends SIGHUP, too, and must end the program.
  const isDaemon = process.stdout.isTTY !== true;
  if (isDaemon) process.on("SIGHUP", apply);
  const watched = (): Changes => new Changes([resolve(path)]);
  let changes = isWatched ? watched() : undefined;
  let isOver = false;
  const look = async (): Promise<void> => {
    for (; !isOver; apply()) {
      await changes?.next();
      const before = changes;
      // A link may have another target now. Its folder may be missing.
      changes = attemptOr(before, watched);
      if (changes !== before) before?.close();
    }
  };
  if (changes !== undefined) void look();
  return {
    [Symbol.dispose]() {
      isOver = true;
      process.off("SIGHUP", apply);
      changes?.close();
    },
  };
}

function summary(gateway: Gateway): string {
  const sources = gateway.status();
  const down = sources.filter(({ state }) => state === "unavailable").map(fullName);
  const missing = down.length === 0 ? "" : `, without ${down.join(", ")}`;
  return `${counted(sources.length, "source")}${missing}, ${toolsOf(gateway)}`;
}

const toolsOf = (gateway: Gateway, tenant?: string): string =>
  counted(gateway.toolset(tenant).available().length, "tool");

function banner(path: string, url: string, gateway: Gateway, terminal: Terminal): string {
  return [
    `plue serves ${path} on ${terminal.paint("bold", url)}`,
    "",
    stateTable(gateway, terminal),
    "",
    `${summary(gateway)}. MCP clients connect to ${url}/mcp`,
    ...gateway.tenants.map((tenant) =>
      `Clients of ${tenant}, ${toolsOf(gateway, tenant)}: ${url}/t/${tenant}/mcp`
    ),
  ].join("\n");
}

function stateTable(gateway: Gateway, terminal: Terminal): string {
  return terminal.table(
    ["SOURCE", "TOOLS", "STATE"],
    gateway.status().map(({ tools, state, reason, held, ...named }) => [
      fullName(named),
      String(tools),
      `${reason ?? state}${held.length > 0 ? `; ${counted(held.length, "tool")} held back` : ""}`,
    ]),
  ).replaceAll(/^/gm, "  ");
}

/** Returns true if a source of `plue check` is a file of settings. */
export async function isSettings(path: string): Promise<boolean> {
  if (!path.endsWith(".json")) return false;
  if (basename(path) === "plue.json") return true;
  // A missing file is reported as a source.
  return isPlueFile(parsedJson(await readFile(path, "utf8").catch(() => "")));
}

/** @throws {CommandError} If a setting needs `node:sqlite`, and this runtime does not have it. */
async function checkSqlite({ json, settings: { journal, store } }: PlueFile): Promise<void> {
  const isStore = store?.startsWith("sqlite:") === true;
  if (journal === undefined && !isStore) return;
  await import("node:sqlite").catch((cause) => {
    const why = "it needs node:sqlite; Node has it from version 22.13 on";
    json.reject(isStore ? "/store" : "/journal", why, cause);
  });
}

/**
 * @returns The exit code: 1 if a source is unavailable or, with `strict`, if there are warnings.
 * @throws {CommandError} If the file is invalid. The message has the line and the column.
 */
export async function checkSettings(
  path: string,
  { connect, strict }: { readonly connect?: boolean; readonly strict?: boolean },
  terminal: Terminal,
): Promise<number> {
  const { env } = terminal.io;
  const file = await readPlueFile(path, env);
  // Of the variables, only the token belongs to the file's callers.
  const { PLUE_TOKEN } = env;
  const settings = settingsOf(file, { watch: false }, { PLUE_TOKEN });
  authorizeCallers(file, tokenCaller(settings));
  checkRules(file);
  await checkSqlite(file);
  const { tokens = {}, jwt = [] } = file.settings.callers ?? {};
  const parts = {
    sources: (file.scopes.get(undefined) ?? []).map(({ name }) => name),
    tenants: Object.keys(file.settings.tenants ?? {}),
    callers: [...Object.keys(tokens), ...jwt.map(({ issuer }) => issuer)],
  };
  using state = await openState(undefined, undefined, terminal);
  await using gateway = new Gateway({
    ...{ terminal, state, log: noop, flags: {}, selection: {} },
    ...{ records: undefined, skills: undefined, firstAttemptMs: 60_000 },
    // The first import would write the file of pins.
    pins: () => undefined,
  });
  if (connect === true) await gateway.apply(file, settings);
  const states = connect === true ? gateway.status() : undefined;
  terminal.printResult({ valid: true, ...parts, ...defined({ states }) }, () => {
    const counts = Object.entries(parts).map(([name, { length }]) =>
      counted(length, name.slice(0, -1))
    );
    const rest = states === undefined
      ? ". To compare its names of tools with the tools of its sources, add --connect"
      : `\n\n${stateTable(gateway, terminal)}`;
    return `${path} is valid: ${counts.join(", ")}${rest}`;
  });
  const isUp = states?.every(({ state }) => state === "ready") ?? true;
  return isUp && !(strict === true && gateway.hasProblems) ? EXIT.ok : EXIT.failed;
}
