// An API with the hard cases of OpenAPI 3.0, for tests.

import document from "./pet_store.json" with { type: "json" };

/** Returns a copy of the document. No test can change it for another test. */
export function petStore(): Record<string, unknown> {
  return structuredClone(document);
}
