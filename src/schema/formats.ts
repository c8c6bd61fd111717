/**
 * Which values of `format` are asserted.
 *
 * The rule: every format that draft-07 or 2020-12 names is asserted, in both drafts and by every
 * engine, because a model that is told `"format": "date"` should send a date. Any other format
 * (`int32`, `password`, `city`) is an annotation: it is handed to models, and accepts everything.
 *
 * @module
 */

/** The formats that are asserted. */
export const ASSERTED_FORMATS: ReadonlySet<string> = new Set([
  "date",
  "date-time",
  "duration",
  "email",
  "hostname",
  "idn-email",
  "idn-hostname",
  "ipv4",
  "ipv6",
  "iri",
  "iri-reference",
  "json-pointer",
  "regex",
  "relative-json-pointer",
  "time",
  "uri",
  "uri-reference",
  "uri-template",
  "uuid",
]);
