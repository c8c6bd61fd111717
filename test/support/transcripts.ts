/** Reads and compares the texts and values of transcripts: requests and responses as data. */

import { assert, assertEquals } from "@std/assert";

/** Writes out `{x*9}`, which stands for 9 times `x`. */
export function repeated(text: string): string {
  return text.replace(/\{x\*(\d+)\}/g, (_, count) => "x".repeat(Number(count)));
}

/**
 * Compares the members that are expected. Lists must have as many items. In an expected string, `…`
 * stands for any text.
 */
export function assertMatches(actual: unknown, expected: unknown, at = "body"): void {
  if (typeof expected === "string" && expected.includes("…")) {
    const parts = expected.split("…").map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    const pattern = new RegExp(`^${parts.join("[^]*")}$`);
    assert(pattern.test(String(actual)), `${at}: ${JSON.stringify(actual)} is not ${expected}`);
  } else if (typeof expected === "object" && expected !== null) {
    if (Array.isArray(expected)) assertEquals((actual as unknown[]).length, expected.length, at);
    for (const [name, value] of Object.entries(expected)) {
      assertMatches((actual as Record<string, unknown>)?.[name], value, `${at}/${name}`);
    }
  } else assertEquals(actual, expected, at);
}
