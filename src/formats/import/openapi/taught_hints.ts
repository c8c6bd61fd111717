/**
 * `x-tool-hints`: what plue's own export to OpenAPI says to providers.
 *
 * @module
 */

import type { ProviderHints } from "../../types.ts";
import { flagIn, isMembers, listIn, member, objectIn, textIn } from "../fields.ts";

/** The hints of an operation that are what they should be. */
export function readTaughtHints(operation: unknown): ProviderHints {
  const given = objectIn(operation, "x-tool-hints");
  const strict = flagIn(given, "strict");
  const deferLoading = flagIn(given, "deferLoading");
  const isAsync = flagIn(given, "async");
  const eagerInputStreaming = flagIn(given, "eagerInputStreaming");
  const callers = listIn(given, "allowedCallers");
  const annotations = member(given, "annotations");
  const support = textIn(given, "taskSupport");
  const namespaceDescription = textIn(given, "namespaceDescription");
  const ttl = textIn(objectIn(given, "cacheControl"), "ttl");
  const cached = textIn(objectIn(given, "cacheControl"), "type") === "ephemeral";
  return {
    ...(strict === undefined ? {} : { strict }),
    ...(deferLoading === undefined ? {} : { deferLoading }),
    ...(isAsync === undefined ? {} : { async: isAsync }),
    ...(eagerInputStreaming === undefined ? {} : { eagerInputStreaming }),
    ...(annotations === null || isMembers(annotations) ? { annotations } : {}),
    ...(callers?.every((caller) => typeof caller === "string") === true
      ? { allowedCallers: callers as readonly string[] }
      : {}),
    ...(support === "forbidden" || support === "optional" || support === "required"
      ? { taskSupport: support }
      : {}),
    ...(namespaceDescription === undefined ? {} : { namespaceDescription }),
    ...(cached
      ? { cacheControl: { type: "ephemeral", ...(ttl === "5m" || ttl === "1h" ? { ttl } : {}) } }
      : {}),
  };
}
