/**
 * Serves in a child process, which is replaced when a file of its tools changes. The new process
 * loads the tools before the old one stops, so a file with an error changes nothing.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, readlinkSync, statSync, watch } from "node:fs";
import { basename, dirname, extname, join, relative, resolve } from "node:path";
import process from "node:process";
import { attemptOr, describeThrown } from "../../tool/mod.ts";
import { type CommandIo, EXIT, type Terminal, usageError } from "../terminal.ts";

/** Marks a child process: `first`, or `again` for one that replaces another. */
const VARIABLE = "PLUE_SUPERVISED";

type Message =
  | { readonly type: "loaded"; readonly files: readonly string[] }
  | { readonly type: "listen"; readonly port?: number | undefined }
  | { readonly type: "listening"; readonly port: number }
  | { readonly type: "stop" };

function messageOf<Type extends Message["type"]>(
  sender: Pick<ChildProcess, "on">,
  type: Type,
): Promise<Message & { readonly type: Type }> {
  return new Promise((resolve) =>
    sender.on("message", (message: Message) => {
      if (message.type === type) resolve(message as Message & { readonly type: Type });
    })
  );
}

export class Supervised {
  readonly isReload: boolean;
  readonly #listen: Promise<{ readonly port?: number | undefined }>;

  private constructor(io: CommandIo, isReload: boolean) {
    this.isReload = isReload;
    const stop = (): void => {
      if (!io.signal.aborted) io.interrupt();
    };
    // The supervisor was killed.
    process.on("disconnect", stop);
    const sender = process as unknown as ChildProcess;
    void messageOf(sender, "stop").then(stop);
    this.#listen = messageOf(sender, "listen");
  }

  static here(io: CommandIo): Supervised | undefined {
    const role = process.send === undefined ? undefined : process.env[VARIABLE];
    // Commands that tools start are not children of the supervisor.
    delete process.env[VARIABLE];
    return role === undefined ? undefined : new Supervised(io, role === "again");
  }

  /** Reports that the tools are loaded, and waits for the port, if it is fixed. */
  async loaded(files: readonly string[]): Promise<number | undefined> {
    process.send?.({ type: "loaded", files: withImports(files) } satisfies Message);
    return (await this.#listen).port;
  }

  listening(port: number): void {
    process.send?.({ type: "listening", port } satisfies Message);
  }
}

function startServer(isReload: boolean) {
  const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: { ...process.env, [VARIABLE]: isReload ? "again" : "first" },
  });
  return {
    loaded: messageOf(child, "loaded"),
    listening: messageOf(child, "listening"),
    ended: new Promise<number>((resolve) => {
      child.on("error", () => resolve(EXIT.failed));
      child.on("exit", (code) => resolve(code ?? EXIT.failed));
    }),
    tell(message: Message): void {
      if (child.connected) child.send(message);
    },
  };
}

/**
 * Serves with the command line of this process until it is interrupted.
 *
 * @returns The exit code of the process that served last.
 */
export async function supervise(terminal: Terminal): Promise<number> {
  const { signal } = terminal.io;
  let server = startServer(false);
  const stop = (): void => server.tell({ type: "stop" });
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });

  const first = await Promise.race([server.loaded, server.ended]);
  if (typeof first === "number") return first;
  let changes = new Changes(first.files);
  server.tell({ type: "listen" });
  const bound = await Promise.race([server.listening, server.ended]);
  while (typeof bound !== "number" && !signal.aborted) {
    const ended = await Promise.race([changes.next(), server.ended]);
    if (typeof ended === "number" || signal.aborted) break;
    const next = startServer(true);
    const loaded = await Promise.race([next.loaded, next.ended]);
    if (typeof loaded === "number") {
      terminal.note("The changed tools could not be loaded: the previous ones are still served");
      continue;
    }
    server.tell({ type: "stop" });
    await server.ended;
    server = next;
    changes.close();
    changes = new Changes(loaded.files);
    server.tell({ type: "listen", port: bound.port });
    if (signal.aborted) stop();
  }
  const code = await server.ended;
  changes.close();
  return code;
}

/** Several changes together count as one: an editor writes a file in steps. */
const TOGETHER_MS = 50;

/** Watches files through their folders, because editors replace files. */
export class Changes {
  readonly #watchers: { close(): void }[] = [];
  #hasChanged = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #tell: (() => void) | undefined;

  constructor(files: readonly string[]) {
    const folders = new Map<string, Set<string>>();
    for (const file of files.flatMap(withLinks)) {
      const folder = dirname(file);
      folders.set(folder, (folders.get(folder) ?? new Set()).add(basename(file)));
    }
    try {
      for (const [folder, names] of folders) {
        // Deno reports a missing folder only later, as an event.
        statSync(folder);
        const watcher = watch(folder, (_event, name) => {
          if (name !== null && names.has(name)) this.#note();
        });
        this.#watchers.push(watcher.on("error", () => this.#note()));
      }
    } catch (cause) {
      this.close();
      const why = `${describeThrown(cause)}. Start plue with --no-watch`;
      throw usageError(`Cannot watch the files: ${why}`, { cause });
    }
  }

  async next(): Promise<undefined> {
    if (!this.#hasChanged) await new Promise<void>((resolve) => this.#tell = resolve);
    this.#hasChanged = false;
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers) watcher.close();
  }

  #note(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#hasChanged = true;
      this.#tell?.();
    }, TOGETHER_MS);
  }
}

/** Returns the real path of a file, and the links on the way to it: a link can get another target. */
function withLinks(path: string): readonly string[] {
  for (let link = path; dirname(link) !== link; link = dirname(link)) {
    const target = attemptOr(undefined, () => readlinkSync(link));
    if (target === undefined) continue;
    return [link, ...withLinks(resolve(dirname(link), target, relative(link, path)))];
  }
  return [path];
}

const RELATIVE_IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*["'](\.{1,2}\/[^"'\n]+)["']/g;
const CODE = /\.[cm]?[jt]sx?$/;

/**
 * Returns the files, and the files that they import by a relative path. The modules are only read:
 * text that looks like an import is watched without harm.
 */
export function withImports(files: readonly string[]): readonly string[] {
  const found = new Set<string>();
  const waiting = [...files];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file) || !existsSync(file)) continue;
    found.add(file);
    if (!CODE.test(file)) continue;
    for (const [, specifier = ""] of readFileSync(file, "utf8").matchAll(RELATIVE_IMPORT)) {
      const path = join(dirname(file), specifier.replace(/[?#].*$/, ""));
      // An import names the compiled file, which may not exist, or no extension.
      const source = path.replace(/js(x?)$/, "ts$1");
      const names = [path, source, `${path}.ts`, `${path}.js`];
      waiting.push(...names.filter((name) => extname(name) !== ""));
    }
  }
  return [...found];
}
