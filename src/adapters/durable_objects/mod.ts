/**
 * A call store in Durable Objects of Cloudflare with SQLite storage
 * (`@plue/tools/durable-objects`). All isolates of a Worker share it.
 *
 * @module
 */

import * as durable from "../../execute/durable/mod.ts";
import type { CallStore } from "../../execute/durable/mod.ts";
import * as check from "../../tool/mod.ts";
import { describeThrown, systemClock } from "../../tool/mod.ts";
import { type CallStoreMethods, rowOf, type Wire } from "./object.ts";

export {
  type CallStoreMethods,
  callStoreObject,
  type CallStoreObjectClass,
  type CallStoreObjectOptions,
  type DurableObjectBase,
  type Wire,
} from "./object.ts";

/** The used part of a `DurableObjectNamespace`: a binding such as `env.CALLS`. */
export interface CallStoreNamespace {
  idFromName(name: string): unknown;
  get(id: unknown): unknown;
}

/** Options for {@linkcode durableObjectStore}. */
export interface DurableObjectStoreOptions extends Pick<durable.StoreLimits, "maxOwnerBytes"> {
  /** The name of the store. A namespace may have several stores. @default {"plue"} */
  readonly name?: string;
  /**
   * The number of objects among which the principals are distributed. The number is part of the
   * objects' names, so with another number the store is empty.
   *
   * @default {16}
   */
  readonly shards?: number;
}

const ACTION = "open the store";
const CHECKS = {
  name: check.matching('letters, digits, "_" and "-"', /^[\w-]{1,64}$/),
  shards: check.wholeFrom(1, 1_024),
  maxOwnerBytes: durable.STORE_LIMITS.maxOwnerBytes,
};

/**
 * Returns a {@linkcode CallStore} in Durable Objects. Create the store for each request, from the
 * binding in its `env`, or once.
 *
 * All entries of a principal are in one object, so its quota is exact. The default of
 * `maxOwnerBytes` is 134,217,728. The size of the whole store is not limited; Cloudflare limits each
 * object. The store uses the clocks of its objects.
 *
 * @example Usage
 * ```ts ignore
 * import { ToolDispatcher } from "@plue/tools";
 * import { storedTickets } from "@plue/tools/calls";
 * import { durableObjectStore } from "@plue/tools/durable-objects";
 *
 * const tickets = storedTickets(durableObjectStore(env.CALLS));
 * const dispatcher = new ToolDispatcher(registry, { tickets });
 * ```
 *
 * @param namespace The binding of the class that {@linkcode callStoreObject} has made.
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function durableObjectStore(
  namespace: CallStoreNamespace,
  options: DurableObjectStoreOptions = {},
): CallStore {
  const read = check.readFields(ACTION, options, CHECKS);
  const { name = "plue", shards = 16, maxOwnerBytes = durable.MAX_OWNER_BYTES } = read;
  check.checkPort(ACTION, "namespace", namespace, ["idFromName", "get"]);
  let offset = 0;

  async function call(shard: number, ...request: Wire): Promise<Wire> {
    // A stub that has failed stays broken, so each call creates a new stub.
    const id = namespace.idFromName(`${name}:${shards}:${shard}`);
    const [now, ...answer] = await (namespace.get(id) as CallStoreMethods).callStore(request);
    offset = Number(now) - systemClock.timestamp();
    return answer;
  }

  async function callOwner(operation: string, key: string, ...request: Wire): Promise<Wire> {
    return await call(durable.shardOf(durable.ownerOf(key), shards), operation, key, ...request);
  }

  return durable.createCallStore({
    async get(key) {
      const [row] = await callOwner("get", key);
      return row === undefined ? undefined : rowOf(row as Wire);
    },
    async put({ key, value, expected, expires, due }) {
      const request = [value.buffer, expected, expires, due, maxOwnerBytes];
      const [revision, problem] = await callOwner("put", key, ...request);
      if (problem === "quota") throw durable.quotaExhausted();
      return typeof revision === "number" ? revision : undefined;
    },
    remove: async (key, revision) => (await callOwner("delete", key, revision))[0] === true,
    list: (prefix, after) =>
      durable.readPages(after, async (from) => {
        const [rows] = await callOwner("list", prefix, from);
        return (rows as readonly Wire[]).map(rowOf);
      }),
    async due({ kind, before, limit, after }) {
      const request = ["due", kind, before, limit, after.dueAt, after.key];
      const found = Array.from({ length: shards }, async (_, shard) => {
        const [rows, isCut] = await call(shard, ...request);
        const entries = (rows as readonly Wire[]).map(rowOf).map(durable.dueEntryOf);
        return { entries, isCut: isCut === true };
      });
      return durable.earliestOf(await Promise.all(found), limit);
    },
    explain: (error) => durable.explainBy(KNOWN, describeThrown(error)),
    now: () => systemClock.timestamp() + offset,
  });
}

const KNOWN = [
  [/SQLite storage|SQL is not enabled/, "name the class in new_sqlite_classes"],
] as const;
