/**
 * Members of JSON objects, whatever their names.
 *
 * @module
 */

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
