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
import type { Seal } from "./seal.ts";
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

/** A tool that is offered. */
interface Offer {
  readonly path: string;
  readonly tool: Tool;
  readonly record: Record<string, unknown>;
}

/** A worker that was not heard for so long is taken out of the directory, in milliseconds. */
const DEAD_AFTER_MS = 60_000;
/** How many writes are under way: a thousand at once would be slow for everybody. */
const AT_ONCE = 16;
/** How many tools are named that cannot be offered. */
const MAX_NAMED = 16;

/** The tools that a worker offers. */
export class Offers {
  readonly #settings: OffersSettings;
  readonly #clock: Pick<Clock, "now">;
  #toolset: Toolset | undefined;
  /** By path. */
  #offers: ReadonlyMap<string, Offer> = new Map();
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
    return new Map([...this.#offers].map(([path, { tool }]) => [path, tool] as const));
  }

  /** The tool of a definition. */
  at(path: string): Tool | undefined {
    const tool = this.#offers.get(path)?.tool;
    // A filter or a policy of the selection may deny it now.
    return tool && this.#toolset?.resolve(tool.id);
  }

  /** Takes over the tools of the registry. Answers whether others are offered than before. */
  refresh(): boolean {
    const { registry, selection } = this.#settings;
    const before = this.#offers;
    // Definitions that are the same stay the same objects.
    const known = new Map([...before.values()].map((offer) => [offer.tool, offer]));
    const offers = new Map<string, Offer>();
    const tooLarge = new Set<Tool>();
    this.#toolset = registry.select(selection);
    for (const tool of this.#toolset.tools) {
      const offer = known.get(tool) ?? this.#offerOf(tool);
      if (offer === undefined) tooLarge.add(tool);
      else offers.set(offer.path, offer);
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

  #offerOf(tool: Tool): Offer | undefined {
    const { connection, seal, name, log } = this.#settings;
    if (this.#tooLarge.has(tool)) return undefined;
    const record = recordOf(tool);
    const { length } = seal.wrap(record, "");
    const { max_payload: most = length } = connection.info ?? {};
    if (length <= most) {
      return { path: pathOf(name, tool.id, digestOfRecord(record)), tool, record };
    }
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
    const put = ([key, value]: readonly [string, Record<string, unknown>]) =>
      this.#directory?.put(key, value);
    await inTurn(
      [...this.#lists()].filter(([key, value]) => !isSame(entries.get(key)?.value, value)),
      put,
    );
    const missing = [...this.#offers.values()].filter(({ path }) => !entries.has(toolKey(path)));
    await inTurn(missing.map(({ path, record }) => [toolKey(path), record] as const), put);
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
