/**
 * `plue mcp add` and `plue mcp remove`: edit the entry of plue in the configuration file of an MCP
 * client. Only the entry changes, so comments and other servers stay.
 */

import { applyEdits, modify, parse, type ParseError, printParseErrorCode } from "jsonc-parser";
import { isUtf8 } from "node:buffer";
import { constants } from "node:fs";
import * as fs from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, resolve } from "node:path";
import process from "node:process";
import { isDeepStrictEqual } from "node:util";
import { describeThrown, isObject } from "../tool/mod.ts";
import { clientOf, configPath, type Entry } from "./mcp_clients.ts";
import { readHeader } from "./show.ts";
import { absoluteSource, isHere } from "./sources/mod.ts";
import { EXIT, type Terminal, usageError } from "./terminal.ts";

export interface McpFlags {
  readonly name?: string;
  readonly url?: string;
  readonly header?: readonly string[];
  readonly env?: readonly string[];
  readonly config?: string;
  readonly maxRisk?: string;
  readonly role?: string;
  readonly bridge?: boolean;
  readonly project?: boolean;
  readonly dryRun?: boolean;
  readonly force?: boolean;
}

/** @param sources The sources that the client's own `plue serve` serves. */
export async function mcp(
  action: "add" | "remove",
  client: string,
  sources: readonly string[],
  flags: McpFlags,
  terminal: Terminal,
): Promise<number> {
  const { title, member, project } = clientOf(client);
  const { name = "plue", dryRun = false, force = false } = flags;
  const goal = action === "add" ? `add "${name}" to ${title}` : `remove "${name}" from ${title}`;
  if (!/^[A-Za-z0-9][\w.-]{0,63}$/.test(name)) {
    throw usageError(`Cannot ${goal}: --name must be letters, digits, "_", "." or "-"`);
  }
  const isForEntry = Object.keys(flags)
    .some((flag) => !["name", "project", "dryRun", "json"].includes(flag));
  if (action === "remove" && (sources.length > 0 || isForEntry)) {
    throw usageError(`Cannot ${goal}: only --name, --project and --dry-run have an effect here`);
  }
  if (flags.project === true && project === undefined) {
    throw usageError(`Cannot ${goal}: ${title} has no file for a project; omit --project`);
  }
  const { env } = terminal.io;
  const home = env["HOME"] || env["USERPROFILE"] || homedir();
  const path = flags.project === true && project !== undefined
    ? resolve(project)
    : configPath(client, { platform: process.platform, env, home });
  const entry = action === "add" ? entryOf(client, sources, flags, goal) : undefined;
  const file = await ConfigFile.read(path, member, goal);
  const before = file.entry(name);
  const isSame = isDeepStrictEqual(before, entry);
  if (!isSame && before !== undefined && entry !== undefined && !force) {
    throw usageError(
      `Cannot ${goal}: ${path} has another entry with this name; add --force to replace it, or ` +
        "choose another name with --name",
    );
  }
  const after = isSame ? file.text : file.with(name, entry);
  if (dryRun && !terminal.isJson) {
    terminal.note(isSame ? `${path} would not change` : path);
    if (!isSame) terminal.printForeign(differenceOf(name, before, entry));
    return EXIT.ok;
  }
  const copy = isSame || dryRun ? undefined : await file.write(after);
  terminal.printResult({ path, entry, changed: !isSame && !dryRun, copy }, () => {
    if (isSame) {
      return `${path} ${entry === undefined ? "has no such entry" : "has this entry"} already`;
    }
    const kept = copy === undefined ? "" : `\nThe old file is now ${copy}.`;
    return `${action === "add" ? "Added" : "Removed"} "${name}" in ${path}.${kept}\n` +
      `Restart ${title} to apply the change.`;
  });
  return EXIT.ok;
}

/** The flags of `plue serve` that the entry passes on. */
const SERVE_FLAGS = {
  config: "--config",
  maxRisk: "--max-risk",
  role: "--role",
  bridge: "--bridge",
} as const;

/** Returns the entry: the URL of a running service, or the command that starts plue. */
function entryOf(client: string, sources: readonly string[], flags: McpFlags, goal: string): Entry {
  const { url, header = [], env = [], config } = flags;
  const { remote, program } = clientOf(client);
  const values = { ...flags, ...(config !== undefined && { config: absoluteSource(config) }) };
  const passed = Object.entries(SERVE_FLAGS).flatMap(([name, flag]) => {
    const value = values[name as keyof typeof SERVE_FLAGS];
    return value === undefined ? [] : value === true ? [flag] : [flag, String(value)];
  });
  if (url === undefined) {
    if (sources.length === 0 && config === undefined) {
      throw usageError(`Cannot ${goal}: name a source, such as tools.mjs, or a service with --url`);
    }
    if (header.length > 0) throw usageError(`Cannot ${goal}: --header has no effect without --url`);
    if (sources.some((source) => basename(source) === "plue.json")) {
      throw usageError(`Cannot ${goal}: give a file of sources with -c`);
    }
    const [command, ...own] = ownCommand();
    const variables = env.map(readVariable);
    // An MCP server receives no other variables of the client.
    if (!sources.every(isHere)) {
      variables.push(["PLUE_SOURCE_ENV", variables.map(([name]) => name).join()]);
    }
    return {
      ...program,
      command,
      args: [...own, "serve", ...sources.map(absoluteSource), ...passed, "--stdio"],
      ...(env.length > 0 && { env: Object.fromEntries(variables) }),
    };
  }
  const [unused] = [...sources.map(() => "a source"), ...env.map(() => "--env"), ...passed];
  if (unused !== undefined) {
    throw usageError(`Cannot ${goal}: ${unused} has no effect with --url; omit it`);
  }
  if (!URL.canParse(url) || !/^https?:/i.test(url)) {
    throw usageError(`Cannot ${goal}: --url must be an address such as http://127.0.0.1:8787/mcp`);
  }
  if (remote === undefined) {
    throw usageError(`Cannot ${goal}: it only starts programs; name a source instead of --url`);
  }
  const headers = Object.fromEntries(header.map(readHeader));
  return { ...remote(url), ...(header.length > 0 && { headers }) };
}

function readVariable(text: string): readonly [string, string] {
  const [, name = "", value = ""] = /^([A-Za-z_]\w*)=(.*)$/s.exec(text) ?? [];
  // The message does not repeat the text: it may be a secret.
  if (name === "") throw usageError('Cannot read --env: it must be "NAME=value"');
  return [name, value];
}

/** Returns the command that starts this plue again, in any folder and without a shell. */
function ownCommand(): readonly string[] {
  const [, script = ""] = process.argv;
  // The caches of npx and bunx are removed from time to time.
  if (/[\\/]_npx[\\/]/.test(script)) return ["npx", "-y", "@plue/cli"];
  if (/[\\/]\.?bunx-/.test(script)) return ["bunx", "@plue/cli"];
  const run = process.versions["deno"] === undefined ? [] : ["run", "-A"];
  // Deno does not run a file of its cache of packages, which is at npm/<registry>/@plue/cli/<version>.
  const isCached = run.length > 0 && /[\\/]npm[\\/].+[\\/]@plue[\\/]cli[\\/]\d/.test(script);
  return [process.execPath, ...run, isCached ? "npm:@plue/cli" : resolve(script)];
}

/** The text of a client's file, and the servers in it. */
class ConfigFile {
  readonly text: string;
  readonly #path: string;
  readonly #member: string;
  readonly #goal: string;
  /** The text in the file; `undefined` if there is no file. */
  readonly #found: string | undefined;

  private constructor(found: string | undefined, path: string, member: string, goal: string) {
    // Editors on Windows write a byte order mark.
    this.text = found === undefined || found.trim() === "" ? "{}\n" : found.replace(/^\uFEFF/, "");
    this.#found = found;
    this.#path = path;
    this.#member = member;
    this.#goal = goal;
  }

  /** @throws {CommandError} If there is a file, but it cannot be read or is invalid. */
  static async read(path: string, member: string, goal: string): Promise<ConfigFile> {
    const bytes = await fs.readFile(path).catch((cause: NodeJS.ErrnoException) => {
      if (cause.code === "ENOENT") return undefined;
      throw usageError(`Cannot ${goal}: ${path} cannot be read: ${describeThrown(cause)}`, {
        cause,
      });
    });
    const file = new ConfigFile(bytes?.toString(), path, member, goal);
    if (bytes !== undefined && !isUtf8(bytes)) file.#fail("it is not UTF-8; convert it first");
    file.#parse(file.text);
    return file;
  }

  entry(name: string): unknown {
    const { servers } = this.#parse(this.text);
    return Object.hasOwn(servers, name) ? servers[name] : undefined;
  }

  /** Returns the text with an entry; without the entry, if it is `undefined`. */
  with(name: string, entry: Entry | undefined): string {
    const indent = /^([ \t]+)\S/m.exec(this.text)?.[1] ?? "  ";
    const edits = modify(this.text, [this.#member, name], entry, {
      formattingOptions: {
        insertSpaces: !indent.includes("\t"),
        tabSize: indent.includes("\t") ? 1 : indent.length,
        eol: this.text.includes("\r\n") ? "\r\n" : "\n",
      },
    });
    const after = applyEdits(this.text, edits);
    // A member that occurs twice has another value for clients than for the editor.
    if (!isDeepStrictEqual(this.#parse(after).servers[name], entry)) {
      this.#fail(`it has "${this.#member}" or "${name}" twice; remove one of them`);
    }
    return after;
  }

  /**
   * Writes the file as a whole, so that no client reads a part of it.
   *
   * @returns The path of the copy of the old file; `undefined` if there was no file.
   */
  async write(after: string): Promise<string | undefined> {
    try {
      if (this.#found === undefined) {
        await fs.mkdir(dirname(this.#path), { recursive: true });
        await fs.writeFile(this.#path, after, { flag: "wx", mode: 0o600 });
        return undefined;
      }
      // The file may be a link into a folder of settings, which stays a link.
      const path = await fs.realpath(this.#path);
      const copy = await copyOf(path);
      if (await fs.readFile(copy, "utf8") !== this.#found) {
        throw new Error("it has changed; try again");
      }
      const draft = `${path}.${process.pid}.new`;
      const { mode, uid, gid } = await fs.stat(path);
      await fs.writeFile(draft, after, { flag: "wx", mode });
      try {
        // The umask narrows the mode of a new file.
        await fs.chmod(draft, mode);
        // Root may edit the file of another user, who must be able to read it.
        if ((await fs.stat(draft)).uid !== uid) await fs.chown(draft, uid, gid);
        await fs.rename(draft, path);
      } catch (error) {
        await fs.rm(draft);
        throw error;
      }
      return copy;
    } catch (cause) {
      throw usageError(`Cannot ${this.#goal}: ${describeThrown(cause)}`, { cause });
    }
  }

  #parse(text: string): { readonly servers: Entry } {
    const errors: ParseError[] = [];
    const root: unknown = parse(text, errors, { allowTrailingComma: true });
    const [error] = errors;
    if (error !== undefined) {
      const lines = text.slice(0, error.offset).split("\n");
      const where = `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`;
      const why = printParseErrorCode(error.error).replaceAll(/\B[A-Z]/g, (letter) => ` ${letter}`);
      this.#fail(`${where} is not valid JSON: ${why.toLowerCase()}`);
    }
    if (!isObject(root)) return this.#fail("it must be a JSON object");
    const { [this.#member]: servers = {} } = root;
    return isObject(servers) ? { servers } : this.#fail(`"${this.#member}" must be an object`);
  }

  #fail(why: string): never {
    throw usageError(`Cannot ${this.#goal}: ${this.#path} is unchanged, because ${why}`);
  }
}

/** Copies a file into its folder, without overwriting an earlier copy. */
async function copyOf(path: string): Promise<string> {
  for (let number = 1;; number++) {
    const copy = number === 1 ? `${path}.backup` : `${path}.backup-${number}`;
    try {
      await fs.copyFile(path, copy, constants.COPYFILE_EXCL);
      return copy;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

/** Returns the old and the new entry. The rest of the file is omitted, because it may have secrets. */
function differenceOf(name: string, before: unknown, after: unknown): string {
  const linesOf = (sign: string, entry: unknown): readonly string[] =>
    entry === undefined ? [] : JSON.stringify({ [name]: entry }, null, 2).split("\n").slice(1, -1)
      .map((line) => sign + line);
  return [...linesOf("-", before), ...linesOf("+", after)].join("\n");
}
