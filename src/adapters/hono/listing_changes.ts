/**
 * How a caller's listing changes. Listings are compared, not the registry's changes handed on: so a
 * tool that the caller does not see is never named, one that comes into sight is `added`, and any
 * number of changes that nobody has read yet become one step.
 *
 * @module
 */

import type { Tool } from "../../tool/mod.ts";

/** How one tool of a listing changed. */
export interface ListingChange {
  readonly type: "added" | "removed" | "updated";
  readonly id: string;
}

/**
 * Compares two listings, both in code-unit order of id.
 *
 * @returns The changes, in order of id.
 */
export function listingChanges(
  before: readonly Tool[],
  after: readonly Tool[],
): readonly ListingChange[] {
  if (before === after) return [];
  const changes: ListingChange[] = [];
  let left = 0;
  let right = 0;
  for (;;) {
    const old = before[left];
    const now = after[right];
    if (old === undefined && now === undefined) return changes;
    if (old !== undefined && (now === undefined || old.id < now.id)) {
      changes.push({ type: "removed", id: old.id });
      left++;
    } else if (now !== undefined && (old === undefined || now.id < old.id)) {
      changes.push({ type: "added", id: now.id });
      right++;
    } else {
      if (old !== now && now !== undefined) {
        changes.push({ type: "updated", id: now.id });
      }
      left++;
      right++;
    }
  }
}
