/**
 * The tools that a worker offers, and their entries in the directory: each definition, and the lists of
 * the definitions that the worker serves.
 */

import type { Registry } from "../../registry/mod.ts";
import type { Selection, Toolset } from "../../select/mod.ts";
import { type Clock, jsonEqual, systemClock, type Tool } from "../../tool/mod.ts";
import { Directory, listIn, MAX_LISTED } from "./directory.ts";
import type { Link } from "./link.ts";
import { encodeJson } from "../../execute/durable/mod.ts";
import { digestOfRecord, DIRECTORY, pathOf, recordOf, toolKey, workerKey } from "./protocol.ts";
import { MARKER_MS } from "./streams.ts";

/** A worker without presence messages for this time is removed from the directory, in milliseconds. */
const DEAD_AFTER_MS = 60_000;
const AT_ONCE = 16;
/** The worker waits for a confirmation of the server after this number of definitions. */
const PUTS_TO_CONFIRM = 64;
/** The maximum number of omitted tools that the directory names. */
const MAX_NAMED = 16;

export interface OffersSettings {
  readonly link: Link;
  readonly registry: Registry;
  readonly selection?: Selection | undefined;
  readonly worker: string;
}

export class Offers {
  readonly #settings: OffersSettings;
  readonly #link: Link;
  readonly #clock: Pick<Clock, "now" | "timestamp">;
  #toolset: Toolset | undefined;
  #offers: ReadonlyMap<string, Tool> = new Map();
  #tooLarge: ReadonlySet<Tool> = new Set();
  /** The paths in each part of the list. A path stays in its part, so that few parts are rewritten. */
  #parts: readonly (readonly string[])[] = [[]];
  #directory: Directory | undefined;
  readonly #seen: Map<string, number> = new Map();
  #writing: Promise<void> = Promise.resolve();
  #isDue = false;
  #sweptAt = -Infinity;
  #isClosed = false;

  constructor(settings: OffersSettings, clock: Pick<Clock, "now" | "timestamp"> = systemClock) {
    this.#settings = settings;
    this.#link = settings.link;
    this.#clock = clock;
    this.refresh();
  }

  get tools(): ReadonlyMap<string, Tool> {
    return this.#offers;
  }

  at(path: string): Tool | undefined {
    const tool = this.#offers.get(path);
    // A filter or a policy of the selection may hide the tool now.
    return tool && this.#toolset?.resolve(tool.id);
  }

  /** Reads the tools of the registry. Returns true if the offered tools have changed. */
  refresh(): boolean {
    const before = this.#offers;
    // Paths of unchanged tools are not computed again.
    const known = new Map([...before].map(([path, tool]) => [tool, path]));
    const offers = new Map<string, Tool>();
    const tooLarge = new Set<Tool>();
    const { registry, selection } = this.#settings;
    this.#toolset = registry.select(selection);
    for (const tool of this.#toolset.tools) {
      const path = known.get(tool) ?? this.#pathOf(tool);
      if (path === undefined) tooLarge.add(tool);
      else offers.set(path, tool);
    }
    this.#offers = offers;
    this.#tooLarge = tooLarge;
    const added = [...offers.keys()].filter((path) => !before.has(path));
    if (added.length === 0 && before.size === offers.size) return false;
    this.#divide(added);
    return true;
  }

  /** @throws {Error} If the directory cannot be read or written. */
  async open(action: string): Promise<void> {
    this.#directory = await Directory.open(action, this.#link, undefined, false);
    await this.#write();
  }

  /** Writes the missing entries of the directory, even if another process removed them. */
  announce(): void {
    if (this.#isDue || this.#isClosed) return;
    this.#isDue = true;
    this.#writing = this.#writing.then(() => {
      this.#isDue = false;
      return this.#write();
    }).catch(this.#link.log);
  }

  restart(): void {
    this.#directory?.restart();
  }

  get directory(): Directory | undefined {
    return this.#directory;
  }

  has(worker: string): boolean {
    return this.#seen.has(worker);
  }

  touch(worker: string): void {
    this.#seen.set(worker, this.#clock.now());
  }

  /** Removes dead workers from the directory, and definitions that no worker serves. */
  async removeDead(): Promise<void> {
    const { name } = this.#link;
    const { worker: own } = this.#settings;
    const { entries = new Map<never, never>() } = this.#directory ?? {};
    const now = this.#clock.now();
    const served = new Set<string>();
    const there = new Set<string>([own]);
    const dead: (readonly [key: string, revision: number])[] = [];
    for (const [key, { value, revision }] of entries) {
      const list = listIn(name, key, value);
      if (list === undefined) continue;
      const { worker, up, down } = list;
      // A worker that has not been heard before gets the full time from now on.
      if (!this.#seen.has(worker)) this.touch(worker);
      if (worker === own || now - (this.#seen.get(worker) ?? now) < DEAD_AFTER_MS) {
        there.add(worker);
        for (const path of [...up, ...down]) served.add(path);
      } else dead.push([key, revision]);
    }
    for (const worker of this.#seen.keys()) if (!there.has(worker)) this.#seen.delete(worker);
    const tools = toolKey(`${name}.`);
    for (const [key, { revision }] of entries) {
      if (key.startsWith(tools) && !served.has(`${name}.${key.slice(tools.length)}`)) {
        dead.push([key, revision]);
      }
    }
    await inTurn(dead, ([key, revision]) => this.#directory?.bucket.remove(key, revision));
    // One worker is enough: the one with the first id removes the entries.
    const isFirst = [...there].every((worker) => own <= worker);
    const time = this.#clock.timestamp();
    if (!isFirst || time - this.#sweptAt < MARKER_MS) return;
    this.#sweptAt = time;
    await this.#directory?.bucket.sweep(time).catch((cause) => {
      const what = `deleted entries of the bucket "${DIRECTORY}"`;
      this.#link.log(new Error(`Cannot purge ${what}; the next sweep tries again`, { cause }));
    });
  }

  async close(isUp: boolean): Promise<void> {
    this.#isClosed = true;
    this.#directory?.stop();
    if (!isUp) return;
    const own = `${workerKey(this.#link.name, this.#settings.worker)}.`;
    const removed = this.#writing.then(async () => {
      const { entries, bucket } = this.#directory ?? {};
      const keys = [...entries?.keys() ?? []].filter((key) => key.startsWith(own));
      await inTurn(keys, (key) => bucket?.remove(key));
    });
    // If the connection closes, the confirmation never arrives.
    await Promise.race([removed, this.#link.connection.closed()]);
  }

  /** Returns the path of a tool's definition; `undefined` if the definition is larger than a message. */
  #pathOf(tool: Tool): string | undefined {
    const { seal, name, log, maxBytes: most } = this.#link;
    if (this.#tooLarge.has(tool)) return undefined;
    const record = recordOf(tool);
    const length = seal.bytes + encodeJson(record).length;
    if (length <= most) return pathOf(name, tool.id, digestOfRecord(record));
    log(
      new RangeError(
        `Cannot serve "${tool.id}": its definition has ${length} bytes, but the server allows ` +
          `${most}; shorten the definition, or raise max_payload`,
      ),
    );
    return undefined;
  }

  /** Adds new paths to parts of the list with free slots, and removes old paths. */
  #divide(added: readonly string[]): void {
    const parts = this.#parts.map((part) => part.filter((path) => this.#offers.has(path)));
    let at = 0;
    for (const path of added) {
      while ((parts[at]?.length ?? 0) >= MAX_LISTED) at++;
      (parts[at] ??= []).push(path);
    }
    this.#parts = parts;
  }

  *#lists(): Generator<readonly [key: string, value: Record<string, readonly string[]>]> {
    const { link: { name }, registry, worker } = this.#settings;
    const isUp = (path: string): boolean => {
      const tool = this.at(path);
      return tool !== undefined && registry.isAvailable(tool);
    };
    for (const [at, paths] of this.#parts.entries()) {
      const up: string[] = [];
      const down: string[] = [];
      for (const path of paths) (isUp(path) ? up : down).push(path);
      const tooLarge = [...this.#tooLarge].slice(0, MAX_NAMED).map(({ id }) => id);
      yield [`${workerKey(name, worker)}.${at}`, {
        ...{ up, down },
        ...(at === 0 && tooLarge.length > 0 && { tooLarge }),
      }];
    }
  }

  /** Writes the list before the definitions: other workers remove definitions that are not listed. */
  async #write(): Promise<void> {
    const { entries } = this.#directory ?? {};
    if (entries === undefined || this.#isClosed) return;
    const lists = [...this.#lists()].filter(([key, value]) =>
      !jsonEqual(entries.get(key)?.value, value)
    );
    await inTurn(lists, ([key, value]) => this.#directory?.put(key, value));
    const missing = [...this.#offers].filter(([path]) => !entries.has(toolKey(path)));
    for (const [at, [path, tool]] of missing.entries()) {
      const [key, record] = [toolKey(path), recordOf(tool)];
      // The server stores messages of a connection in order, so one confirmation covers all before
      // it. If a message was dropped, the watch does not show the entry, and it is written again.
      const isConfirmed = (at + 1) % PUTS_TO_CONFIRM === 0 || at + 1 === missing.length;
      if (isConfirmed) await this.#directory?.put(key, record);
      else this.#directory?.send(key, record);
    }
  }
}

/** Runs an operation for each element, a few of them concurrently. */
async function inTurn<T>(
  all: readonly T[],
  work: (one: T) => Promise<unknown> | undefined,
): Promise<void> {
  let at = 0;
  const take = async (): Promise<void> => {
    for (let one = all[at++]; one !== undefined; one = all[at++]) await work(one);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, take));
}
