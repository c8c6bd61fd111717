/**
 * All targets: the unions of their names and types, and the tables that find one by name. Both
 * follow from the providers' records.
 */

import * as providers from "./providers/index.ts";
import type { KeywordTable } from "./form_rules.ts";
import { defined, describe, isFunction, isObject } from "../tool/mod.ts";
import type { Provider, Target } from "./target.ts";

export type KnownProvider = (typeof providers)[keyof typeof providers];

type KnownTarget = KnownProvider["targets"][number];

const ALIASES = {
  "mcp": "mcp@2026-07-28",
  "openai": "openai.chat",
  "openai.strict": "openai.chat.strict",
  "openapi": "openapi@3.1",
} as const;

/** A target: one provider's surface, mode and version. */
export type TargetId = KnownTarget["id"];

/** Another name for a target, which follows it to its newest version. */
export type TargetAlias = keyof typeof ALIASES;

/** The name of a target: its id, or an alias. */
export type TargetName = TargetId | TargetAlias;

type ResolveTarget<Name extends TargetName> = Name extends TargetAlias ? (typeof ALIASES)[Name]
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

const BY_NAME: ReadonlyMap<string, Target> = byName();

function byName(): Map<string, Target> {
  const found = new Map(TARGETS.map((target) => [target.id, target]));
  for (const [alias, id] of Object.entries(ALIASES)) found.set(alias, found.get(id) as Target);
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

/** A target's rules, as data for a page or a table. */
export interface TargetInfo<Id extends string = TargetId> extends
  Pick<
    Target<Id>,
    "id" | "title" | "source" | "names" | "keys" | "features" | "formats" | "limits"
  > {
  readonly aliases: readonly TargetAlias[];
  /** True if it has its own namespaces. */
  readonly namespaces: boolean;
  /** The rules for `parameters`. */
  readonly keywords: KeywordTable;
  /** The rules for `returns`; absent: it has no field for them. */
  readonly outputKeywords?: KeywordTable;
  /** The id of the target of the tools that this strict mode cannot hold. */
  readonly fallback?: Id;
}

/**
 * The targets, each with its rules as data.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { listTargets } from "@plue/tools/formats";
 *
 * const chat = listTargets().find((target) => target.id === "openai.chat");
 * assert.equal(chat?.names.max, 64);
 * assert.equal(chat?.keywords["root composition"].action, "transform");
 * ```
 */
export function listTargets(): readonly TargetInfo[] {
  return INFOS;
}

const INFOS: readonly TargetInfo[] = Object.freeze(
  TARGETS.map((target) => infoOf(target) as TargetInfo),
);

function infoOf(target: Target): TargetInfo<string> {
  const { id, title, source, names, keys, features, input, output, formats, limits, fallback } =
    target;
  return Object.freeze({
    id,
    title,
    source,
    aliases: [...BY_NAME.keys()].filter((name): name is TargetAlias =>
      name !== id && BY_NAME.get(name) === target
    ),
    names,
    namespaces: target.namespaces !== undefined,
    features,
    keywords: input,
    limits,
    ...defined({
      keys,
      outputKeywords: output?.keywords,
      formats,
      fallback: fallback && findTarget(fallback).id,
    }),
  });
}
