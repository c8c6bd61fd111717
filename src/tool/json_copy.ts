/**
 * Frozen copies of JSON that somebody else owns. A tool keeps copies of its schemas and examples,
 * so that nobody can change them after they were checked.
 *
 * @module
 */

/** Bounds of a copy, against cycles and values made to exhaust memory. */
const MAX_DEPTH = 256;
const MAX_VALUES = 1_000_000;

/** Escapes one step of a JSON Pointer (RFC 6901). */
export function pointerStep(key: string | number): string {
  return `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Sets an own property, also one named `__proto__`, which plain assignment would lose. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  } else target[key] = value;
}

/** What a value that is not JSON is called in a message. */
function nameOf(value: unknown): string {
  if (typeof value === "object") return `an object of class ${classOf(value)}`;
  return typeof value === "number" || value === undefined ? `${value}` : `a ${typeof value}`;
}

/** `Object` for every object but the built-in ones, also for an instance of somebody's class. */
function classOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}

/**
 * Copies JSON and freezes the copy, all the way down. Members that are `undefined` are left out,
 * as `JSON.stringify` does.
 *
 * @throws {TypeError} If something in it is not JSON, with the JSON Pointer of it.
 */
export function copyJson<T>(value: T, what: string): T {
  let left = MAX_VALUES;

  function copy(part: unknown, pointer: string, depth: number): unknown {
    if (depth > MAX_DEPTH || --left < 0) {
      throw new TypeError(
        `Cannot copy ${what}: at "${pointer.slice(0, 200)}" it has more than ` +
          (left < 0 ? `${MAX_VALUES} values` : `${MAX_DEPTH} levels, or contains itself`),
      );
    }
    switch (typeof part) {
      case "string":
      case "boolean":
        return part;
      case "number":
        if (Number.isFinite(part)) return part;
        break;
      case "object":
        if (part === null) return null;
        if (Array.isArray(part)) {
          // Array.from visits holes too, which must be refused, not skipped.
          return Object.freeze(
            Array.from(part, (item, index) => copy(item, `${pointer}/${index}`, depth + 1)),
          );
        }
        // A Date or a Map has no members of its own: its content would be lost.
        if (classOf(part) !== "Object") break;
        return copyObject(part as Record<string, unknown>, pointer, depth);
    }
    throw new TypeError(
      `Cannot copy ${what}: at "${pointer.slice(0, 200)}" it has ${nameOf(part)}, ` +
        "which is not JSON",
    );
  }

  function copyObject(
    part: Record<string, unknown>,
    pointer: string,
    depth: number,
  ): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    for (const key of Object.keys(part)) {
      const member = part[key];
      if (member === undefined) continue;
      setOwn(result, key, copy(member, pointer + pointerStep(key), depth + 1));
    }
    return Object.freeze(result);
  }

  return copy(value, "", 0) as T;
}
