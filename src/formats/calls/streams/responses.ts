/**
 * Streams whose chunks are responses, with each call whole in one of them: Gemini and Ollama.
 *
 * @module
 */

import { isRecord } from "../shape.ts";
import type { StreamFormat, StreamStep, WireCall } from "../types.ts";

/**
 * How a provider streams whose chunks `read` reads.
 *
 * @param fields What a chunk with calls in it has one of.
 */
export function streamResponses(
  read: (response: unknown) => readonly WireCall[],
  fields: readonly string[],
): () => StreamFormat {
  return () => {
    let count = 0;
    return {
      steps: (event) => {
        if (!fields.some((field) => isRecord(event[field]) || Array.isArray(event[field]))) {
          return [];
        }
        return read(event)
          .map(({ raw }): StreamStep => ({ type: "whole", key: `${count++}`, raw }));
      },
      rebuild: () => undefined,
      endsSilently: true,
    };
  };
}
