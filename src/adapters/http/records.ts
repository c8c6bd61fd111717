/**
 * The records of the requests that are observed and not yet answered.
 *
 * @module
 */

import type { RequestRecord } from "./observe.ts";

/** Absent until something observes requests: most processes need not look them up. */
let records: WeakMap<Request, RequestRecord> | undefined;

/** Returns the record of a request; `undefined` if nothing observes the request. */
export function recordOf(request: Request): RequestRecord | undefined {
  return records?.get(request);
}

/** Sets the record of a request. */
export function setRecord(request: Request, record: RequestRecord): void {
  (records ??= new WeakMap()).set(request, record);
}
