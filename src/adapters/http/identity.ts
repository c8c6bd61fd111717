/**
 * The caller and its toolset. Every route uses only the toolset that is created here.
 *
 * @module
 */

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
import { checkFlag, checkText, numberFrom, readFields, type RiskLevel } from "../../tool/mod.ts";
import { BoundedMap } from "./bounded_map.ts";

/** The result of `authorize`. A caller has no permissions beyond these fields. */
export interface Caller {
  /** The caller's role. Without it only tools without roles are visible. */
  readonly role?: string | undefined;
  /** The caller's scopes. By default none. */
  readonly scopes?: readonly string[] | undefined;
  /** The caller's environment: a workspace, a terminal, an editor, git. */
  readonly context?: ToolAvailabilityInput | undefined;
  /** The maximum risk of the caller's tools. */
  readonly maxRisk?: RiskLevel | undefined;
  /**
   * The id of the caller: idempotency keys are separate for each, and hooks and approvers receive
   * it.
   */
  readonly principal?: string | undefined;
  /**
   * The context for tools that declare one, such as `{ tenant: "acme" }`. It never contains data
   * from a client.
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
 * Identifies the caller. A `Response` rejects the request: a copy of it is sent, so one without a
 * body may be returned for many requests.
 *
 * @param env The runtime's second argument of a handler: the bindings of Workers, Bun's server,
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

/** The maximum number of cached keys of narrowed toolsets, about two per toolset. */
const MAX_NARROWED = 512;

/**
 * Narrows a toolset for a caller. Callers with the same permissions receive the same toolset, and
 * are checked once. Selections of queries are not cached here, because each toolset caches exports
 * and more, and clients choose the number of queries.
 */
export class ToolsetNarrower {
  readonly #narrowed = new WeakMap<Toolset, BoundedMap<string, Toolset>>();
  /** The last toolset: most requests of a server have equal permissions. */
  #last: { readonly toolset: Toolset; readonly key: string; readonly kept: Toolset } | undefined;

  /** @throws {TypeError} If `authorize` returned a value that is not a caller. */
  narrow(toolset: Toolset, caller: Caller): Toolset {
    const key = keyOfPlain(caller);
    const last = this.#last;
    if (last !== undefined && last.toolset === toolset && last.key === key) return last.kept;
    let known = this.#narrowed.get(toolset);
    if (known === undefined) {
      this.#narrowed.set(toolset, known = new BoundedMap({ maxEntries: MAX_NARROWED }));
    }
    const kept = key === undefined ? undefined : known.get(key);
    if (key !== undefined && kept !== undefined) {
      this.#last = { toolset, key, kept };
      return kept;
    }
    const selection = selectionOfCaller(caller);
    const narrow = (): Toolset => toolset.narrow(selection);
    const checkedKey = selectionKey(selection);
    const narrowed = checkedKey === undefined ? narrow() : known.getOrMake(checkedKey, narrow);
    if (key !== undefined) known.set(key, narrowed);
    return narrowed;
  }
}

/**
 * Returns a caller's permissions as one text if they consist of strings, or `undefined`: an object,
 * such as a context, has to be read first.
 */
function keyOfPlain(caller: Caller): string | undefined {
  if (typeof caller !== "object" || caller === null) return undefined;
  for (const field in caller) if (!FIELDS.has(field)) return undefined;
  const { role, scopes, context, maxRisk } = caller;
  if (context !== undefined || !isTextOrAbsent(role) || !isTextOrAbsent(maxRisk)) return undefined;
  if (scopes !== undefined && !Array.isArray(scopes)) return undefined;
  // Each text follows its length, so two different callers never have the same key.
  let key = `${role?.length} ${role},${maxRisk?.length} ${maxRisk}`;
  for (const scope of scopes ?? NO_SCOPES) {
    if (typeof scope !== "string") return undefined;
    key += `,${scope.length} ${scope}`;
  }
  return key;
}

const NO_SCOPES: readonly unknown[] = [];

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

/**
 * Creates a function that returns the currently served tools.
 *
 * @param source A registry, which may change, or a toolset, which does not.
 * @param selection The selection of the served tools.
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

const CHECKS = { principal: checkText, expiresAt: numberFrom(0), explain: checkFlag };

/**
 * Checks a caller that is configured in advance.
 *
 * @throws {TypeError} If a field is unknown or invalid.
 * @throws {RangeError} If a number is out of range.
 */
export function checkCaller(caller: Caller): void {
  checkSelection(selectionOfCaller(caller));
  const { principal, expiresAt, explain } = caller;
  readFields("tell who calls", { principal, expiresAt, explain }, CHECKS);
}

/**
 * Rejects a value that is not an object: `{ ...false }` would be a caller.
 *
 * @throws {TypeError} If it is not an object.
 */
export function requireCaller(caller: Caller): void {
  if (typeof caller === "object" && caller !== null) return;
  throw new TypeError(
    "Cannot tell who calls: authorize must answer a caller such as {} or a Response",
  );
}

/**
 * Returns the caller's toolset of the served tools.
 *
 * @throws {TypeError} If `authorize` returned a value that is not a caller.
 */
export function selectionOfCaller(caller: Caller): Selection {
  requireCaller(caller);
  for (const field of Object.keys(caller)) {
    if (!FIELDS.has(field)) {
      throw new TypeError(
        `Cannot tell who calls: authorize answered "${field}", and known are ${
          [...FIELDS].join(", ")
        }`,
      );
    }
  }
  const { role, scopes, context, maxRisk } = caller;
  return {
    role: role ?? null,
    scopes: scopes ?? [],
    ...(context === undefined ? {} : { context: ToolAvailabilityContext.from(context) }),
    ...(maxRisk === undefined ? {} : { maxRisk }),
  };
}
