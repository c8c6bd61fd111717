/**
 * The tools that a worker offers, and what the directory has of them: each definition, and lists of
 * the definitions that the worker serves.
 *
 * @module
 */

import type { NatsConnection } from "@nats-io/nats-core";
import type { Registry } from "../../registry/mod.ts";
import type { Selection, Toolset } from "../../select/mod.ts";
import {
  type Clock,
  type HookLog,
  isListOf,
  isWord,
  systemClock,
  type Tool,
} from "../../tool/mod.ts";
import { Directory, listIn, MAX_LISTED } from "./directory.ts";
import { encodeJson, type Seal } from "./seal.ts";
import { STORAGE, type StorageSettings } from "./streams.ts";
import { digestOfRecord, pathOf, recordOf, toolKey, workerKey } from "./subjects.ts";

/** What tools are offered with. */
export interface OffersSettings {
  readonly action: string;
  readonly registry: Registry;
  readonly selection: Selection | undefined;
  readonly connection: NatsConnection;
  readonly seal: Seal;
  /** The name of the registry. */
  readonly name: string;
  readonly worker: string;
  readonly log: HookLog;
  readonly storage?: StorageSettings;
  /** Tells the time. @default {systemClock} */
  readonly clock?: Pick<Clock, "now">;
}

/** A worker that was not heard for so long is taken out of the directory, in milliseconds. */
const DEAD_AFTER_MS = 60_000;
/** The number of writes that wait for the server at once. */
const AT_ONCE = 16;
/** The server confirms one of so many definitions. */
const PUTS_TO_CONFIRM = 64;
/** How many tools are named that cannot be offered. */
const MAX_NAMED = 16;

/** The tools that a worker offers. */
export class Offers {
  readonly #settings: OffersSettings;
  readonly #clock: Pick<Clock, "now">;
  #toolset: Toolset | undefined;
  /** By path. */
  #offers: ReadonlyMap<string, Tool> = new Map();
  /** Those whose definitions no message of the server can have. */
  #tooLarge: ReadonlySet<Tool> = new Set();
  /** The paths in each part of the list. A path stays in its part, so that few are written again. */
  #parts: readonly (readonly string[])[] = [[]];
  #directory: Directory | undefined;
  /** When each worker was heard last. */
  readonly #heard: Map<string, number> = new Map();
  #writing: Promise<void> = Promise.resolve();
  /** Whether something is to be written that is not begun. */
  #isDue = false;
  #isClosed = false;

  constructor(settings: OffersSettings) {
    this.#settings = settings;
    this.#clock = settings.clock ?? systemClock;
    this.refresh();
  }

  /** Those that are offered, by the paths of their definitions. */
  get tools(): ReadonlyMap<string, Tool> {
    return this.#offers;
  }

  /** The tool of a definition. */
  at(path: string): Tool | undefined {
    const tool = this.#offers.get(path);
    // A filter or a policy of the selection may deny it now.
    return tool && this.#toolset?.resolve(tool.id);
  }

  /** Takes over the tools of the registry. Answers whether others are offered than before. */
  refresh(): boolean {
    const { registry, selection } = this.#settings;
    const before = this.#offers;
    // Definitions that are the same stay the same objects.
    const known = new Map([...before].map(([path, tool]) => [tool, path]));
    const offers = new Map<string, Tool>();
    const tooLarge = new Set<Tool>();
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
  async open(): Promise<void> {
    const { action, connection, seal, name, log, storage = STORAGE } = this.#settings;
    const settings = { action, connection, seal, registry: name, log, storage };
    this.#directory = await Directory.open({ ...settings, hasDefinitions: false }, () => {});
    await this.#write();
  }

  /**
   * Writes into the directory what it does not have: new tools, whether they are available, and what
   * another process has removed.
   */
  announce(): void {
    if (this.#isDue || this.#isClosed) return;
    this.#isDue = true;
    this.#writing = this.#writing.then(() => {
      this.#isDue = false;
      return this.#write();
    }).catch(this.#settings.log);
  }

  /** Reads the directory again: another server may have other entries. */
  restart(): void {
    this.#directory?.restart();
  }

  /** Whether a worker has entries in the directory. */
  knows(worker: string): boolean {
    return this.#heard.has(worker);
  }

  /** A worker has said that it is there. */
  hear(worker: string): void {
    this.#heard.set(worker, this.#clock.now());
  }

  /** Takes workers out of the directory that have died, and definitions that no worker serves. */
  async removeDead(): Promise<void> {
    const { name, worker: own } = this.#settings;
    const { entries = new Map<never, never>() } = this.#directory ?? {};
    const now = this.#clock.now();
    const served = new Set<string>();
    const there = new Set<string>([own]);
    const dead: (readonly [key: string, revision: number])[] = [];
    for (const [key, { value, revision }] of entries) {
      const list = listIn(name, key, value);
      if (list === undefined) continue;
      const { worker, up, down } = list;
      // One that was never heard is given the same time from now on.
      if (!this.#heard.has(worker)) this.hear(worker);
      if (worker === own || now - (this.#heard.get(worker) ?? now) < DEAD_AFTER_MS) {
        there.add(worker);
        for (const path of up) served.add(path);
        for (const path of down) served.add(path);
      } else dead.push([key, revision]);
    }
    for (const worker of this.#heard.keys()) if (!there.has(worker)) this.#heard.delete(worker);
    const tools = toolKey(`${name}.`);
    for (const [key, { revision }] of entries) {
      if (key.startsWith(tools) && !served.has(`${name}.${key.slice(tools.length)}`)) {
        dead.push([key, revision]);
      }
    }
    await inTurn(dead, ([key, revision]) => this.#directory?.remove(key, revision));
  }

  /**
   * Takes this worker out of the directory.
   *
   * @param isUp Whether the server can be reached.
   */
  async close(isUp: boolean): Promise<void> {
    this.#isClosed = true;
    this.#directory?.stop();
    if (!isUp) return;
    const removed = this.#writing.then(() =>
      inTurn(this.#ownKeys(), (key) => this.#directory?.remove(key))
    );
    // A connection that is closed meanwhile confirms nothing.
    await Promise.race([removed, this.#settings.connection.closed()]);
  }

  /** Returns the path of a tool's definition; `undefined` if no message has room for it. */
  #pathOf(tool: Tool): string | undefined {
    const { connection, seal, name, log } = this.#settings;
    if (this.#tooLarge.has(tool)) return undefined;
    const record = recordOf(tool);
    const length = seal.bytes + encodeJson(record).length;
    const { max_payload: most = length } = connection.info ?? {};
    if (length <= most) return pathOf(name, tool.id, digestOfRecord(record));
    log(
      new RangeError(
        `Cannot serve "${tool.id}": its definition has ${length} bytes, and the server takes ` +
          `${most}; shorten it, or raise max_payload`,
      ),
    );
    return undefined;
  }

  /** Puts new paths into the parts of the list that have room, and leaves out those that are gone. */
  #divide(added: readonly string[]): void {
    const parts = this.#parts.map((part) => part.filter((path) => this.#offers.has(path)));
    let at = 0;
    for (const path of added) {
      while ((parts[at]?.length ?? 0) >= MAX_LISTED) at++;
      (parts[at] ??= []).push(path);
    }
    this.#parts = parts;
  }

  /** The list as the directory is to have it. */
  *#lists(): Generator<readonly [key: string, value: Record<string, readonly string[]>]> {
    const { registry, name, worker } = this.#settings;
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

  /** Writes the list first: a definition that no worker lists would be removed by others. */
  async #write(): Promise<void> {
    const { entries } = this.#directory ?? {};
    if (entries === undefined || this.#isClosed) return;
    const lists = [...this.#lists()].filter(([key, value]) =>
      !isSame(entries.get(key)?.value, value)
    );
    await inTurn(lists, ([key, value]) => this.#directory?.put(key, value));
    const missing = [...this.#offers].filter(([path]) => !entries.has(toolKey(path)));
    for (const [at, [path, tool]] of missing.entries()) {
      const [key, record] = [toolKey(path), recordOf(tool)];
      // The server stores the messages of a connection in turn, so one answer confirms many. The watch
      // of the directory shows those that it has dropped; they are written again.
      const isConfirmed = (at + 1) % PUTS_TO_CONFIRM === 0 || at + 1 === missing.length;
      if (isConfirmed) await this.#directory?.put(key, record);
      else this.#directory?.send(key, record);
    }
  }

  #ownKeys(): readonly string[] {
    const own = `${workerKey(this.#settings.name, this.#settings.worker)}.`;
    return [...this.#directory?.entries.keys() ?? []].filter((key) => key.startsWith(own));
  }
}

/** Does something with each, with a few at a time. */
async function inTurn<T>(
  all: readonly T[],
  work: (one: T) => Promise<void> | undefined,
): Promise<void> {
  let at = 0;
  const take = async (): Promise<void> => {
    for (let one = all[at++]; one !== undefined; one = all[at++]) await work(one);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, take));
}

/** Whether a part of the list says the same. */
function isSame(
  one: Readonly<Record<string, unknown>> | undefined,
  other: Readonly<Record<string, readonly string[]>>,
): boolean {
  return one !== undefined && ["up", "down", "tooLarge"].every((field) => {
    const [a = [], b = []] = [one[field], other[field]];
    return isListOf(a, isWord) && a.length === b.length &&
      (a as readonly string[]).every((word, at) => word === b[at]);
  });
}
