/** Callers, and the toolset that each caller sees. Every route uses this toolset, and no other. */

import type { Registry } from "../../registry/mod.ts";
import {
  buildToolset,
  checkSelection,
  type Selection,
  selectionKey,
  ToolAvailabilityContext,
  type ToolAvailabilityInput,
  Toolset,
} from "../../select/mod.ts";
import {
  assertSync,
  checkFlag,
  checkText,
  fail,
  isObject,
  isThenable,
  numberFrom,
  once,
  rejectUnknownFields,
  type RiskLevel,
} from "../../tool/mod.ts";
import { BoundedMap } from "./bounded_map.ts";

/**
 * The caller of a request, as `authorize` returns it. A caller has none of the rights that are
 * absent here.
 */
export interface Caller {
  /** The caller's role. By default, the caller sees only tools that list no roles. */
  readonly role?: string | undefined;
  /** The scopes that the caller holds. By default, it holds none. */
  readonly scopes?: readonly string[] | undefined;
  /** The environment of the caller: a workspace, a terminal, an editor, git. */
  readonly context?: ToolAvailabilityInput | undefined;
  /** The maximum risk of the caller's tools. */
  readonly maxRisk?: RiskLevel | undefined;
  /**
   * The name of the caller. Idempotency keys are separate per principal; hooks and approvers
   * receive it.
   */
  readonly principal?: string | undefined;
  /**
   * The context of this caller's tools that declare a `context`, such as `{ tenant: "acme" }`. It
   * never contains data of the client.
   */
  readonly callContext?: unknown;
  /**
   * The expiry of the caller's token, in milliseconds since 1970: an open `GET /events` ends then.
   * Running calls have their own timeouts.
   */
  readonly expiresAt?: number | undefined;
  /**
   * True if the caller may read explanations of hidden tools, which reveal their existence. `GET
   * /metrics` then also contains figures without a visible tool.
   */
  readonly explain?: boolean | undefined;
}

/**
 * Identifies the caller of a request. A `Response` rejects the request. It is copied, so that one
 * without a body may be returned for many requests.
 *
 * @param env The runtime's second argument for handlers: the bindings of Workers, Bun's server,
 * Deno's connection, Node's request.
 */
export type Authorize = (
  request: Request,
  env?: unknown,
) => Caller | Response | Promise<Caller | Response>;

const FIELDS: ReadonlySet<string> = new Set(Object.keys(
  {
    role: 0,
    scopes: 0,
    context: 0,
    maxRisk: 0,
    principal: 0,
    callContext: 0,
    expiresAt: 0,
    explain: 0,
  } satisfies Record<keyof Caller, 0>,
));

/** The maximum number of cached keys per toolset. A narrowed toolset has about two keys. */
const MAX_NARROWED = 512;

/**
 * Narrows a toolset to the tools of a caller. Callers with the same rights get the same toolset,
 * and are checked once. Selections of queries are not cached here: each toolset caches its exports,
 * and clients choose the number of queries.
 */
export class ToolsetNarrower {
  readonly #narrowed = new WeakMap<Toolset, BoundedMap<string, Toolset>>();
  /** The last toolset: most requests of a server have equal permissions. */
  #last: LastNarrowed | undefined;

  /** @throws {TypeError} If `authorize` returned a value that is not a caller. */
  narrow(toolset: Toolset, caller: Caller): Toolset {
    const last = this.#last;
    if (last !== undefined && last.toolset === toolset && hasRights(caller, last)) return last.kept;
    const key = keyOfPlain(caller);
    const known = once(
      this.#narrowed,
      toolset,
      () => new BoundedMap<string, Toolset>({ maxEntries: MAX_NARROWED }),
    );
    const narrow = (): Toolset => {
      const selection = selectionOfCaller(caller);
      const checkedKey = selectionKey(selection);
      return checkedKey === undefined
        ? toolset.narrow(selection)
        : known.getOrMake(checkedKey, () => toolset.narrow(selection));
    };
    if (key === undefined) return narrow();
    const kept = known.getOrMake(key, narrow);
    const { role, scopes = [], maxRisk } = caller;
    this.#last = { toolset, role, scopes: [...scopes], maxRisk, kept };
    return kept;
  }
}

interface LastNarrowed extends Pick<Caller, "role" | "maxRisk"> {
  readonly scopes: readonly string[];
  readonly toolset: Toolset;
  readonly kept: Toolset;
}

/** Returns true if a caller has these permissions, and no others. */
function hasRights(caller: Caller, { role, scopes, maxRisk }: LastNarrowed): boolean {
  if (!isPlain(caller) || caller.role !== role || caller.maxRisk !== maxRisk) return false;
  const own = caller.scopes ?? [];
  return Array.isArray(own) && own.length === scopes.length &&
    scopes.every((scope, index) => own[index] === scope);
}

/** Returns true for an object without unknown fields and without a context, which has to be read. */
function isPlain(caller: Caller): boolean {
  if (caller.context !== undefined) return false;
  for (const field in caller) if (!FIELDS.has(field)) return false;
  return true;
}

/** Returns a caller's permissions as one text if they consist of strings, or `undefined`. */
function keyOfPlain(caller: Caller): string | undefined {
  if (!isPlain(caller)) return undefined;
  const { role, scopes = [], maxRisk } = caller;
  if (!Array.isArray(scopes)) return undefined;
  let key = "";
  for (const text of [role, maxRisk, ...scopes]) {
    if (text !== undefined && typeof text !== "string") return undefined;
    // Each text follows its length, so two different callers never have the same key.
    key += `${text?.length} ${text},`;
  }
  return key;
}

/**
 * Makes a function that returns the tools that are served now.
 *
 * @param source A registry, which may change, or a toolset, which does not.
 * @param selection The tools of the source that are served.
 */
export function ownerToolset(
  source: Registry | Toolset,
  selection: Selection | undefined,
): () => Toolset {
  if (!(source instanceof Toolset)) {
    let toolset: Toolset | undefined;
    return () => toolset?.isCurrent() ? toolset : toolset = source.select(selection);
  }
  const toolset = selection === undefined ? source : buildToolset(source, selection);
  return () => toolset;
}

const ACTION = "identify the caller";

/**
 * Checks a caller that is configured in advance.
 *
 * @throws {TypeError} If a field is unknown or invalid.
 * @throws {RangeError} If a number is out of range.
 */
export function checkCaller(caller: Caller): void {
  checkAnswered(caller);
  checkSelection(selectionOfCaller(caller));
}

/**
 * Checks a caller that `authorize` returned. With a promise as its principal, all callers would be the
 * same caller.
 *
 * @throws {TypeError} If a field is a promise or invalid.
 * @throws {RangeError} If a number is out of range.
 */
export function checkAnswered(caller: Caller): void {
  requireCaller(caller);
  const values = Object.values(caller);
  for (const value of values) {
    // A rejection of another field would end the process.
    if (isThenable(value)) void Promise.allSettled(values);
    assertSync(value);
  }
  const { principal, expiresAt, explain } = caller;
  if (principal !== undefined) checkText(ACTION, principal, '"/principal"');
  if (expiresAt !== undefined) numberFrom(0)(ACTION, expiresAt, '"/expiresAt"');
  if (explain !== undefined) checkFlag(ACTION, explain, '"/explain"');
}

/** Rejects values that are not objects. Spreading `false` would make a caller of it. */
export function requireCaller(caller: Caller): void {
  if (!isObject(caller)) fail(ACTION, "authorize must return a caller or a Response");
}

/**
 * Returns the selection of the tools that a caller sees.
 *
 * @throws {TypeError} If `authorize` returned a value that is not a caller.
 */
export function selectionOfCaller(caller: Caller): Selection {
  rejectUnknownFields(ACTION, caller, [...FIELDS]);
  const { role = null, scopes, context, maxRisk } = caller;
  return {
    role,
    scopes: scopes ?? [],
    ...(context === undefined ? {} : { context: ToolAvailabilityContext.from(context) }),
    ...(maxRisk === undefined ? {} : { maxRisk }),
  };
}
