/** The targets of plue: their names and types, and the records by name. */

import { describe, isFunction, isObject } from "../tool/mod.ts";
import * as providers from "./providers/index.ts";
import type { Provider, Target } from "./target.ts";

export type KnownProvider = (typeof providers)[keyof typeof providers];

type KnownTarget = KnownProvider["targets"][number];

/** Other names for targets. A target may become a newer version of itself. */
export const TARGET_ALIASES = {
  "mcp": "mcp@2026-07-28",
  "openai": "openai.chat",
  "openai.strict": "openai.chat.strict",
  "openapi": "openapi@3.1",
} as const;

/** A target: one provider's surface, mode and version. */
export type TargetId = KnownTarget["id"];

/** The name of a target: its id, or an alias. */
export type TargetName = TargetId | keyof typeof TARGET_ALIASES;

type ResolveTarget<Name extends TargetName> = Name extends keyof typeof TARGET_ALIASES
  ? (typeof TARGET_ALIASES)[Name]
  : Name;

/** A target, by its name or as `defineTarget` made it. */
export type TargetLike = TargetName | Target;

/** The record of a name or of a record itself. */
export type TargetOf<Like extends TargetLike> = Like extends TargetName
  ? Extract<KnownTarget, { readonly id: ResolveTarget<Like> }>
  : Like extends Target ? Like
  : never;

/** The tools of a request to a target. */
export type ToolsOf<Like extends TargetLike> = ReturnType<TargetOf<Like>["assemble"]>;

/** The fields of a request for its settings, by the target or its name. */
export type RequestOf<Like extends TargetLike> = ReturnType<
  NonNullable<TargetOf<Like>["choose"]>
>;

/** The answer to one call, by the target or its name. */
export type AnswerOf<Like extends TargetLike> = ReturnType<TargetOf<Like>["calls"]["write"]>;

/** A message with answers, by the target or its name. */
export type MessageOf<Like extends TargetLike> = ReturnType<
  NonNullable<TargetOf<Like>["calls"]["gather"]>
>[number];

// In code-unit order: a bundler may list the providers in any order.
const TARGETS: readonly Target[] = (Object.values(providers) as readonly Provider[])
  .flatMap(({ targets }) => targets).sort((a, b) => a.id < b.id ? -1 : 1);

/** The targets of plue, in the order of their ids. */
export function listTargets(): readonly Target<TargetId>[] {
  return TARGETS as readonly Target<TargetId>[];
}

const BY_NAME: ReadonlyMap<string, Target> = byName();

function byName(): Map<string, Target> {
  const found = new Map(TARGETS.map((target) => [target.id, target]));
  for (const [alias, id] of Object.entries(TARGET_ALIASES)) {
    found.set(alias, found.get(id) as Target);
  }
  return found;
}

/** True if `value` is the name of a target, or an alias. */
export function isTargetName(value: unknown): value is TargetName {
  return typeof value === "string" && BY_NAME.has(value);
}

/**
 * The record of a target: its rules as data, and its functions. `defineTarget` can extend it.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { targetOf } from "@plue/tools/formats";
 *
 * assert.equal(targetOf("openai").id, "openai.chat");
 * ```
 *
 * @param target The target's name. A target of your own is returned.
 * @throws {RangeError} If there is no such target.
 */
export function targetOf<Like extends TargetLike>(target: Like): TargetOf<Like> {
  // The map holds the record of each name, and the types follow from the same records.
  return findTarget(target) as TargetOf<Like>;
}

export function isTarget(value: unknown): value is Target {
  return isObject(value) && isObject(value["calls"]) && isFunction(value["calls"]["read"]) &&
    Array.isArray(value["features"]) && isFunction(value["wire"]);
}

export function findTarget(target: string | Target): Target {
  if (isTarget(target)) return target;
  const found = BY_NAME.get(target);
  if (found !== undefined) return found;
  if (typeof target !== "string") {
    throw new RangeError("Cannot find the target: it must be a name, or made by defineTarget");
  }
  throw new RangeError(
    `Cannot find the target ${describe(target)}: it must be one of ${
      [...BY_NAME.keys()].map((name) => `"${name}"`).join(", ")
    }, or made by defineTarget`,
  );
}

export function strictModeOf(target: Target): Target | undefined {
  if (target.fallback !== undefined) return target;
  return target.strictMode === undefined ? undefined : findTarget(target.strictMode);
}

export function plainModeOf(target: Target): Target {
  return target.fallback === undefined ? target : findTarget(target.fallback);
}
