/** Callers, and the toolset of each caller. Routes use only this toolset. */

import type { Registry } from "../../registry/mod.ts";
import * as select from "../../select/mod.ts";
import { Toolset } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { BoundedMap, fail, isObject, isThenable, once, type RiskLevel } from "../../tool/mod.ts";

/** The caller of a request. A right that is absent is not granted. */
export interface Caller {
  /** The caller's role. By default, the caller sees only tools that list no roles. */
  readonly role?: string | undefined;
  /** The scopes that the caller holds. By default, it holds none. */
  readonly scopes?: readonly string[] | undefined;
  /** The environment of the caller: a workspace, a terminal, an editor, git. */
  readonly context?: select.ToolAvailabilityInput | undefined;
  /** The maximum risk of the caller's tools. */
  readonly maxRisk?: RiskLevel | undefined;
  /** The name of the caller. Idempotency keys, running calls and limits are separate per principal. */
  readonly principal?: string | undefined;
  /**
   * The tenant of the caller: 1 to 64 letters, digits and `-`. The principal becomes
   * `tenant:acme:ann`, and the context of calls has the member `tenant`, so that two tenants share no
   * key, quota or record. Requires a `principal`.
   */
  readonly tenant?: string | undefined;
  /** The value for tools that declare a `context`, such as `{ tenant: "acme" }`. */
  readonly callContext?: unknown;
  /**
   * The expiry of the caller's token, in milliseconds since 1970. Streams of changes end at this time;
   * running calls continue.
   */
  readonly expiresAt?: number | undefined;
  /** True if the caller may read explanations of hidden tools, and metrics of all calls. */
  readonly explain?: boolean | undefined;
}

/**
 * Identifies the caller of a request. A `Response` rejects the request.
 *
 * @param env The runtime's second argument for handlers: the bindings of Workers, Bun's server,
 * Deno's connection, Node's request.
 */
export type Authorize = (
  request: Request,
  env?: unknown,
) => Caller | Response | Promise<Caller | Response>;

const FIELDS: readonly string[] = [
  ...["role", "scopes", "context", "maxRisk", "principal", "tenant"] as const,
  ...["callContext", "expiresAt", "explain"] as const,
] satisfies readonly (keyof Caller)[];

const MAX_NARROWED = 512;

export class ToolsetNarrower {
  readonly #narrowed = new WeakMap<Toolset, BoundedMap<string, Toolset>>();
  /** Most callers have equal rights. Comparing rights is ten times as fast as making a key. */
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
    // Rights that are not only strings, such as a context, have a key once they are checked.
    const narrow = (): Toolset => {
      const selection = selectionOfCaller(caller);
      const checkedKey = select.selectionKey(selection);
      return checkedKey === undefined
        ? toolset.narrow(selection)
        : once(known, checkedKey, () => toolset.narrow(selection));
    };
    if (key === undefined) return narrow();
    const kept = once(known, key, narrow);
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

function hasRights(caller: Caller, { role, scopes, maxRisk }: LastNarrowed): boolean {
  if (!isPlain(caller) || caller.role !== role || caller.maxRisk !== maxRisk) return false;
  const own = caller.scopes ?? [];
  return Array.isArray(own) && own.length === scopes.length &&
    scopes.every((scope, index) => own[index] === scope);
}

/** Returns true for an object without unknown fields and without a context. */
function isPlain(caller: Caller): boolean {
  if (caller.context !== undefined) return false;
  for (const field in caller) if (!FIELDS.includes(field)) return false;
  return true;
}

/** Returns a key of a caller's rights; `undefined` if they do not consist of strings. */
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

export function ownerToolset(
  source: Registry | Toolset,
  selection: select.Selection | undefined,
): () => Toolset {
  if (!(source instanceof Toolset)) {
    let toolset: Toolset | undefined;
    return () => toolset?.isCurrent() ? toolset : toolset = source.select(selection);
  }
  const toolset = selection === undefined ? source : select.buildToolset(source, selection);
  return () => toolset;
}

const ACTION = "identify the caller";

export function checkCaller(caller: Caller): void {
  checkAnswered(caller);
  select.checkSelection(selectionOfCaller(caller));
}

/** Checks a caller, except its rights. Rejects promises: as text, all would be one principal. */
export function checkAnswered(caller: Caller): void {
  requireCaller(caller);
  const values = Object.values(caller);
  for (const value of values) {
    // An unhandled rejection would end the process.
    if (isThenable(value)) void Promise.allSettled(values);
    check.assertSync(value);
  }
  const { principal, expiresAt, explain } = caller;
  if (principal !== undefined) check.checkText(ACTION, principal, '"/principal"');
  if (expiresAt !== undefined) check.numberFrom(0)(ACTION, expiresAt, '"/expiresAt"');
  if (explain !== undefined) check.checkFlag(ACTION, explain, '"/explain"');
}

export function tenantPrefix(tenant: string): string {
  return `tenant:${tenant}:`;
}

/** Adds the tenant to the principal and to the context, and so to each key, quota and record. */
export function withTenant(caller: Caller): Caller {
  const { tenant, principal = "", callContext = {} } = caller;
  // Without a tenant, the name of a user must not be the name of a user of a tenant.
  if (tenant === undefined && !principal.startsWith("tenant:")) return caller;
  if (
    typeof tenant !== "string" || !/^[A-Za-z0-9-]{1,64}$/.test(tenant) || principal === "" ||
    !isObject(callContext) || (callContext["tenant"] ?? tenant) !== tenant
  ) {
    fail(ACTION, '"/tenant" must be letters, digits or -, as in callContext; set "/principal"');
  }
  return {
    ...caller,
    principal: tenantPrefix(tenant) + principal,
    callContext: { ...callContext, tenant },
  };
}

/** Rejects values that are not objects: `{ ...false }` would be a valid caller. */
export function requireCaller(caller: Caller): void {
  if (!isObject(caller)) fail(ACTION, "authorize must return a caller or a Response");
}

export function selectionOfCaller(caller: Caller): select.Selection {
  check.rejectUnknownFields(ACTION, caller, FIELDS);
  const { role = null, scopes, context, maxRisk } = caller;
  return {
    role,
    scopes: scopes ?? [],
    ...(context === undefined ? {} : { context: select.ToolAvailabilityContext.from(context) }),
    ...(maxRisk === undefined ? {} : { maxRisk }),
  };
}
