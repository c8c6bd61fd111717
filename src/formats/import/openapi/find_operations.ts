/**
 * The operations of a document: where they stand, and what they are called.
 *
 * @module
 */

import { clip } from "../../../schema/mod.ts";
import { pointerStep, type ToolAnnotations } from "../../../tool/mod.ts";
import { isMembers, objectIn, wordsIn } from "../fields.ts";
import type { Intake } from "../intake.ts";
import type { Located, OpenApiDocument } from "./document.ts";

/** What each method promises, as HTTP has it. `fetch` sends no other but those of its owner. */
export const METHODS: ReadonlyMap<string, ToolAnnotations> = new Map<string, ToolAnnotations>([
  ["get", { readOnlyHint: true, idempotentHint: true }],
  ["head", { readOnlyHint: true, idempotentHint: true }],
  ["options", { readOnlyHint: true, idempotentHint: true }],
  ["query", { readOnlyHint: true, idempotentHint: true }],
  ["put", { readOnlyHint: false, idempotentHint: true }],
  ["delete", { readOnlyHint: false, idempotentHint: true, destructiveHint: true }],
  ["post", { readOnlyHint: false }],
  ["patch", { readOnlyHint: false }],
]);

/** Methods that `fetch` refuses, and those whose request has no body. */
const REFUSED: ReadonlySet<string> = new Set(["trace", "connect", "track"]);
export const BODILESS: ReadonlySet<string> = new Set(["get", "head"]);

const METHOD = /^[A-Za-z]{1,32}$/;

/** An operation of the document, before it is read. */
export interface Found {
  readonly method: string;
  readonly path: string;
  readonly item: Located;
  readonly operation: Located;
  readonly operationId: string | undefined;
}

/** Finds the operations. What cannot be one is rejected. */
export function findOperations(intake: Intake, document: OpenApiDocument): readonly Found[] {
  const found: Found[] = [];
  const paths = objectIn(document.root, "paths") ?? {};
  for (const path of Object.keys(paths)) {
    if (path.startsWith("x-")) continue;
    const at = `/paths${pointerStep(path)}`;
    const item = document.resolve(paths[path], at);
    if (item === undefined) {
      intake.reject(
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
      if (!intake.count(operation.path)) return found;
      const operationId = wordsIn(operation.value, "operationId");
      found.push({ method, path, item, operation, operationId });
    }
  }
  return found;
}

/**
 * The name that each operation should get: its id, if no other has it; else its method and path, in
 * words where these are its own.
 */
export function nameOperations(found: readonly Found[]): ReadonlyMap<Found, string> {
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

/** Whether requests with a method can be sent. */
export function isSendable(method: string): boolean {
  return METHOD.test(method) && !REFUSED.has(method.toLowerCase());
}

/** The operations of a path, with the methods that OpenAPI 3.2 adds. */
function* operationsOf(item: Located): Generator<[string, Located]> {
  for (const key of Object.keys(item.value)) {
    const value = item.value[key];
    if (key === "additionalOperations" && isMembers(value)) {
      for (const method of Object.keys(value)) {
        const operation = value[method];
        const path = `${item.path}/${key}${pointerStep(method)}`;
        if (isMembers(operation)) yield [method, { value: operation, path }];
      }
    } else if ((METHODS.has(key) || REFUSED.has(key)) && isMembers(value)) {
      yield [key, { value, path: `${item.path}/${key}` }];
    }
  }
}

/** `get /pets/{petId}` as `get_pets_petId`. */
export function pathName({ method, path }: Found): string {
  const words = path.split(/[{}/]/).filter((word) => word !== "");
  return [method.toLowerCase(), ...words].join("_");
}
