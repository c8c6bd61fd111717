/**
 * Who calls, and which tools that caller sees. Every route works on the toolset made here, and on no
 * other.
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

/** What `authorize` found out about a caller. A caller has nothing that is absent here. */
export interface Caller {
  /** The caller's role. Absent: only tools that list no roles. */
  readonly role?: string | undefined;
  /** The scopes that the caller holds. Absent: none. */
  readonly scopes?: readonly string[] | undefined;
  /** What is available where the caller works: a workspace, a terminal, an editor, git. */
  readonly context?: ToolAvailabilityInput | undefined;
  /** The highest risk that this caller may see. */
  readonly maxRisk?: RiskLevel | undefined;
  /** Names the caller: idempotency keys are kept apart by it, and hooks and approvers are told it. */
  readonly principal?: string | undefined;
  /**
   * What this caller's tools that declare a `context` are given, such as `{ tenant: "acme" }`. Nothing
   * that a client sends is put there.
   */
  readonly callContext?: unknown;
  /**
   * When the caller's token ends, in milliseconds since 1970: an open `GET /events` ends then. Calls
   * that run have timeouts of their own.
   */
  readonly expiresAt?: number | undefined;
  /**
   * Whether the caller may ask why a tool is hidden, and so learn that it exists. `GET /metrics` then
   * also has what belongs to none of the caller's tools.
   */
  readonly explain?: boolean | undefined;
}

/**
 * Decides who calls. A `Response` refuses the request: a copy of it is sent, so one without a body
 * may be returned for many requests.
 *
 * @param env What the runtime gives a handler beside the request: the bindings of Workers, Bun's
 * server, Deno's connection, Node's request.
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

/** How many keys of narrowed toolsets are kept for each toolset: about two for each of them. */
const MAX_NARROWED = 512;

/**
 * Narrows a toolset to what a caller sees. Callers who may see the same get the same toolset, and
 * are checked once. The selections of queries do not belong here: each toolset keeps exports and
 * more, and clients choose how many there are.
 */
export class ToolsetNarrower {
  readonly #narrowed = new WeakMap<Toolset, BoundedMap<string, Toolset>>();
  /** The last toolset that was found: most requests of a server come from callers of one kind. */
  #last: { readonly toolset: Toolset; readonly key: string; readonly kept: Toolset } | undefined;

  /** @throws {TypeError} If `authorize` returned something other than a caller. */
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
 * Writes what a caller may see as one text, if only strings decide it; `undefined` otherwise: an
 * object, such as a context, has to be read first.
 */
function keyOfPlain(caller: Caller): string | undefined {
  if (typeof caller !== "object" || caller === null) return undefined;
  for (const field in caller) if (!FIELDS.has(field)) return undefined;
  const { role, scopes, context, maxRisk } = caller;
  if (context !== undefined || !isTextOrAbsent(role) || !isTextOrAbsent(maxRisk)) return undefined;
  if (scopes !== undefined && !Array.isArray(scopes)) return undefined;
  // Each text stands after its length, so two different callers never have the same key.
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
 * Makes the function that gives the tools that the owner serves now.
 *
 * @param source A registry, which may change, or a toolset, which does not.
 * @param selection Which of its tools the owner serves.
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
 * Checks a caller that is known before it calls.
 *
 * @throws {TypeError} If a field is unknown or wrong.
 * @throws {RangeError} If a number is out of range.
 */
export function checkCaller(caller: Caller): void {
  checkSelection(selectionOfCaller(caller));
  const { principal, expiresAt, explain } = caller;
  readFields("tell who calls", { principal, expiresAt, explain }, CHECKS);
}

/**
 * Refuses what is no object. A `false` that is spread would become a caller.
 *
 * @throws {TypeError} If it is none.
 */
export function requireCaller(caller: Caller): void {
  if (typeof caller === "object" && caller !== null) return;
  throw new TypeError(
    "Cannot tell who calls: authorize must answer a caller such as {} or a Response",
  );
}

/**
 * What a caller sees of the owner's tools.
 *
 * @throws {TypeError} If `authorize` returned something other than a caller.
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
