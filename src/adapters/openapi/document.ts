/**
 * An OpenAPI document: where its references lead, which keys are credentials, and which operations
 * it has. Nothing outside of the document is read.
 *
 * @module
 */

import {
  type ImportSession,
  type JsonRecord,
  objectIn,
  textIn,
  wordsIn,
} from "../../formats/importer_kit.ts";
import { fragmentSteps } from "../../schema/mod.ts";
import { clip, isObject, pointerStep, type ToolAnnotations } from "../../tool/mod.ts";

/** The maximum length of a chain of references; a longer chain counts as a circle. */
const MAX_HOPS = 32;

/** An object of a document, and where it stands. */
export interface Located {
  readonly value: JsonRecord;
  /** A JSON Pointer. */
  readonly path: string;
}

/** An operation of the document, before it is read. */
export interface FoundOperation {
  readonly method: string;
  readonly path: string;
  /** The Path Item Object. */
  readonly item: Located;
  readonly operation: Located;
  readonly operationId: string | undefined;
}

/** An OpenAPI document. */
export class ApiDocument {
  readonly root: JsonRecord;
  /** True if schemas are in the dialect of OpenAPI 3.0. From 3.1 on they are JSON Schema. */
  readonly is30: boolean;
  readonly #charge: (part: unknown) => void;

  /** Is called with the target of each reference, to bound the total. */
  constructor(root: JsonRecord, charge: (part: unknown) => void) {
    this.root = root;
    this.#charge = charge;
    this.is30 = (textIn(root, "openapi") ?? "").startsWith("3.0");
  }

  /** The target of a local reference; `undefined` if it is missing or in another document. */
  at(ref: string): { readonly value: unknown; readonly path: string } | undefined {
    const steps = fragmentSteps(ref);
    if (steps === undefined) return undefined;
    let value: unknown = this.root;
    for (const step of steps) {
      if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) {
        return undefined;
      }
      value = (value as JsonRecord)[step];
    }
    return { value, path: steps.map(pointerStep).join("") };
  }

  /** An object of the document. References to it are followed. */
  resolve(value: unknown, path: string): Located | undefined {
    let at: { readonly value: unknown; readonly path: string } | undefined = { value, path };
    for (let hops = 0; hops < MAX_HOPS; hops++) {
      if (at === undefined || !isObject(at.value)) return undefined;
      const ref = at.value["$ref"];
      if (typeof ref !== "string") return { value: at.value, path: at.path };
      at = this.at(ref);
      this.#charge(at?.value);
    }
    return undefined;
  }
}

/**
 * The keys of the document's `apiKey` security schemes, as `in name`. A model has no credentials,
 * so it is not asked for these parameters.
 */
export function credentialKeys(document: ApiDocument): ReadonlySet<string> {
  const schemes = objectIn(objectIn(document.root, "components"), "securitySchemes") ?? {};
  const keys = new Set<string>();
  for (const name of Object.keys(schemes)) {
    const scheme = document.resolve(schemes[name], "")?.value;
    const key = textIn(scheme, "name");
    const place = textIn(scheme, "in");
    if (textIn(scheme, "type") !== "apiKey" || key === undefined || place === undefined) continue;
    keys.add(`${place} ${place === "header" ? key.toLowerCase() : key}`);
  }
  return keys;
}

/** The hints that follow from a method, by RFC 9110. */
export const METHOD_HINTS: ReadonlyMap<string, ToolAnnotations> = new Map<string, ToolAnnotations>([
  ["get", { readOnlyHint: true, idempotentHint: true }],
  ["head", { readOnlyHint: true, idempotentHint: true }],
  ["options", { readOnlyHint: true, idempotentHint: true }],
  ["query", { readOnlyHint: true, idempotentHint: true }],
  ["put", { readOnlyHint: false, idempotentHint: true }],
  ["delete", { readOnlyHint: false, idempotentHint: true, destructiveHint: true }],
  ["post", { readOnlyHint: false }],
  ["patch", { readOnlyHint: false }],
]);

/** Methods that `fetch` cannot send. */
const REFUSED: ReadonlySet<string> = new Set(["trace", "connect", "track"]);

const METHOD = /^[A-Za-z]{1,32}$/;

/** Returns true if `fetch` can send requests with a method. */
export function isSendable(method: string): boolean {
  return METHOD.test(method) && !REFUSED.has(method.toLowerCase());
}

/** Finds the operations. Path items that cannot be read are rejected. */
export function findOperations(
  session: ImportSession,
  document: ApiDocument,
): readonly FoundOperation[] {
  const found: FoundOperation[] = [];
  const paths = objectIn(document.root, "paths") ?? {};
  for (const path of Object.keys(paths)) {
    if (path.startsWith("x-")) continue;
    const at = `/paths${pointerStep(path)}`;
    const item = document.resolve(paths[path], at);
    if (item === undefined) {
      session.reject(
        path,
        at,
        "$ref",
        `Cannot import "${
          clip(path)
        }": it must be an object of operations, and a reference must stay in the document`,
      );
      continue;
    }
    for (const [method, operation] of operationsOf(item)) {
      if (!session.count(operation.path)) return found;
      const operationId = wordsIn(operation.value, "operationId");
      found.push({ method, path, item, operation, operationId });
    }
  }
  return found;
}

/** The operations of a path, with the additional methods of OpenAPI 3.2. */
function* operationsOf(item: Located): Generator<[string, Located]> {
  for (const key of Object.keys(item.value)) {
    const value = item.value[key];
    if (key === "additionalOperations" && isObject(value)) {
      for (const method of Object.keys(value)) {
        const operation = value[method];
        const path = `${item.path}/${key}${pointerStep(method)}`;
        if (isObject(operation)) yield [method, { value: operation, path }];
      }
    } else if ((METHOD_HINTS.has(key) || REFUSED.has(key)) && isObject(value)) {
      yield [key, { value, path: `${item.path}/${key}` }];
    }
  }
}

/**
 * Returns the name of each operation: its id if that is unique; else its method and path as words
 * if these are unique; else its method and path unchanged.
 */
export function nameOperations(
  found: readonly FoundOperation[],
): ReadonlyMap<FoundOperation, string> {
  const ids = tally(found.map(({ operationId }) => operationId));
  const words = tally(found.map(pathName));
  return new Map(found.map((one) => {
    const { method, path, operationId } = one;
    if (operationId !== undefined && ids.get(operationId) === 1) return [one, operationId];
    const name = pathName(one);
    return [one, words.get(name) === 1 && !ids.has(name) ? name : `${method} ${path}`];
  }));
}

function tally(names: readonly (string | undefined)[]): ReadonlyMap<string | undefined, number> {
  const counts = new Map<string | undefined, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** `get /pets/{petId}` as `get_pets_petId`. */
function pathName({ method, path }: FoundOperation): string {
  const words = path.split(/[{}/]/).filter((word) => word !== "");
  return [method.toLowerCase(), ...words].join("_");
}
