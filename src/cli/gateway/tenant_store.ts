/** The part of a store that belongs to one tenant. */

import type { CallStore, StoredEntry } from "../../execute/durable/mod.ts";

/**
 * Returns a store whose keys begin with a word of the tenant. Two tenants cannot reach each other's
 * entries, and a service runs only the tasks of its tenant.
 *
 * @param tenant Letters, digits and `-`.
 */
export function tenantStore(store: CallStore, tenant: string): CallStore {
  // The first word of a key is its kind, which has no "_".
  const prefix = `t_${tenant}_`;
  const inside = <Entry extends Pick<StoredEntry, "key">>(entry: Entry): Entry => ({
    ...entry,
    key: entry.key.slice(prefix.length),
  });
  const { now } = store;
  return {
    get: (key) => store.get(prefix + key),
    create: (key, value, options) => store.create(prefix + key, value, options),
    update: (key, value, revision, options) => store.update(prefix + key, value, revision, options),
    delete: (key, revision) => store.delete(prefix + key, revision),
    async *list(start, after) {
      for await (const entry of store.list(prefix + start, after && prefix + after)) {
        yield inside(entry);
      }
    },
    async due(kind, before, limit, after) {
      const place = after && { ...after, key: prefix + after.key };
      return (await store.due(prefix + kind, before, limit, place)).map(inside);
    },
    ...(now && { now: () => now.call(store) }),
  };
}
