/** The records of a journal, for operators: `GET /journal`. */

import { tenantPrefix } from "./identity.ts";
import { readValues } from "./pages.ts";
import type { HttpPart, ToolRequest } from "./request.ts";
import { json, ProblemError } from "./responses.ts";

/** A journal whose records are read: `journal()` of `@plue/tools/journal`. */
export interface JournalReader {
  /** Yields the records, newest first. */
  records(): AsyncIterable<object>;
}

const DEFAULT_LIMIT = 100;
/** The size of the records that one request reads, in characters. */
const MAX_READ = 20_000_000;
/** The minimum size that a record counts, so that a request reads at most 20,000 records. */
const MIN_SIZE = 1_000;

/**
 * Makes the part that shows the records of a journal, newest first: `GET /journal`. Only callers with
 * `explain` may read them, because they are about all callers, or about all callers of their tenant.
 * The query may have `callId`, `principal`, `tool`, `outcome`, and `limit`: 1 to 1,000, by default 100.
 * The response is `{ records, more }`; `more` is true if older records were not read.
 */
export function serveJournal(journal: JournalReader): HttpPart {
  const names = ["callId", "principal", "tool", "outcome", "limit"];
  const answer = async ({ raw, caller }: ToolRequest): Promise<Response> => {
    if (caller.explain !== true) {
      const detail = "Cannot read the journal: the caller may not see hidden tools";
      throw new ProblemError({ status: 403, code: "denied", detail });
    }
    const query = readValues(new URL(raw.url).searchParams, names);
    const { limit = DEFAULT_LIMIT, ...wanted } = query;
    const fields = Object.entries(wanted);
    const prefix = caller.tenant === undefined ? "" : tenantPrefix(caller.tenant);
    const records: object[] = [];
    let read = 0;
    // Awaited, so that a reader that rejects instead of yielding does not end the process.
    for await (const record of await journal.records()) {
      if (records.length === limit || read >= MAX_READ) return json({ records, more: true });
      const { principal = "" } = record as { readonly principal?: string };
      const isWanted = principal.startsWith(prefix) &&
        fields.every(([name, value]) => record[name as never] === value);
      if (isWanted) records.push(record);
      read += Math.max(MIN_SIZE, JSON.stringify(record).length);
    }
    return json({ records, more: false });
  };
  return () => ({
    routes: [{ method: "GET", path: "/journal", answer }],
    // The explorer's page requests a journal only if there is one.
    metrics: { journal: true },
  });
}
