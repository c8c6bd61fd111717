import { assertLessOrEqual } from "@std/assert";
import { describe, it } from "bun:test";
import { unclearSentences } from "./words.ts";

/** Lower it when sentences were rewritten; it never rises. */
const LIMIT = 418;

describe("comments, messages, titles and guides", () => {
  it("contain at most the allowed number of phrases that a reader has to decode", () => {
    // `bun test/architecture/words.ts` prints the sentences.
    assertLessOrEqual(unclearSentences().length, LIMIT);
  });
});
