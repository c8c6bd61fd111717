/**
 * The keys that an API wants as credentials.
 *
 * @module
 */

import { objectIn, textIn } from "../fields.ts";
import type { OpenApiDocument } from "./document.ts";

/**
 * The keys of the document's security schemes, as `in name`: a model has none, and must not be asked
 * for one.
 */
export function secretsOf(document: OpenApiDocument): ReadonlySet<string> {
  const schemes = objectIn(objectIn(document.root, "components"), "securitySchemes") ?? {};
  const secrets = new Set<string>();
  for (const name of Object.keys(schemes)) {
    const scheme = document.resolve(schemes[name], "")?.value;
    const key = textIn(scheme, "name");
    const place = textIn(scheme, "in");
    if (textIn(scheme, "type") !== "apiKey" || key === undefined || place === undefined) continue;
    secrets.add(`${place} ${place === "header" ? key.toLowerCase() : key}`);
  }
  return secrets;
}
