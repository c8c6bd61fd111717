/** Secrets of a call, which layers remove from everything that leaves its tool. */

import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolResult } from "../../../../mod.ts";
import { emissions, redactWith, truncation } from "../../../../src/execute/layers/mod.ts";
import { around, core, type FakeTool, outcome } from "../support.ts";

const SECRET = "s3cret-".repeat(3);

/** Tools that show the secret. */
const TOOLS: readonly (Partial<FakeTool> & { readonly title: string })[] = [
  { title: "a result", execute: () => ({ secret: SECRET }) },
  { title: "an invalid result", returns: { enum: [1] }, execute: () => SECRET },
  { title: "a failure", execute: () => ToolResult.error("denied", SECRET) },
  {
    title: "an error",
    execute: () => {
      throw new Error(SECRET);
    },
  },
  {
    title: "a rejection, metadata and progress",
    execute: async (_, { metadata, progress }) => {
      metadata({ [SECRET]: SECRET });
      progress(1, 2, SECRET);
      return await Promise.reject(new Error(SECRET));
    },
  },
  {
    title: "the output of a generator",
    async *execute() {
      yield await Promise.resolve(SECRET);
    },
  },
  {
    title: "a truncated text",
    outputOverflow: "truncate",
    execute: () => "x".repeat(98) + SECRET + "y".repeat(200),
  },
];

/** Calls a tool. Returns everything that it shows. */
async function shownBy(tool: Partial<FakeTool>, change: (value: unknown) => unknown) {
  const hides = around((call, next) => {
    redactWith(call, change);
    redactWith(call, (value) => value);
    return next(call);
  });
  const sent: unknown[] = [];
  const note = (value: unknown): void => void sent.push(value);
  const layers = [emissions(), hides, ...truncation()];
  const { call, reports } = core(layers, tool, { maxOutputBytes: 200 });
  const result = await call({}, { metadata: note, progress: note, output: note });
  const errors = reports.map(({ error }) => String(error));
  return { result, text: JSON.stringify([result, sent, errors]) };
}

function withoutSecret(value: unknown): unknown {
  return value instanceof Error
    ? new Error(value.message.replaceAll(SECRET, "[secret]"))
    : JSON.parse(JSON.stringify(value).replaceAll(SECRET, "[secret]"));
}

describe("redactWith()", () => {
  for (const { title, ...tool } of TOOLS) {
    it(`removes a secret from ${title}`, async () => {
      const { text } = await shownBy(tool, withoutSecret);
      assert(/\[sec|must be 1/.test(text), text);
      assert(!text.includes("s3cret"), text);
    });

    it(`sends nothing of ${title} if the secret cannot be removed`, async () => {
      const { text, result } = await shownBy(tool, () => {
        throw new TypeError("It cannot be read");
      });
      assert(!text.includes("s3cret"), text);
      assertEquals(outcome(result), "threw");
    });
  }
});
