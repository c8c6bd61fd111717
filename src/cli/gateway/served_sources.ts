/** The sources of a file over HTTP: `GET /sources`, and `POST /sources/approve` for operators. */

import { type HttpPart, json, ProblemError, type ToolRequest } from "../../adapters/http/mod.ts";
import { explainWithoutEngine } from "../../schema/mod.ts";
import { describeThrown } from "../../tool/mod.ts";
import { isOperator } from "./callers.ts";
import schema from "./approval.schema.json" with { type: "json" };
import type { SourceStatus } from "./source.ts";

/** Tools to approve, each with the digest of the definition that the operator has read. */
export interface Approval {
  readonly source: string;
  /** The tenant of the source; `undefined` for a source of the file. */
  readonly tenant?: string;
  readonly tools: readonly { readonly id: string; readonly digest: string }[];
}

/** The sources that the callers of one tenant use; all sources for callers without a tenant. */
export interface ServedSources {
  readonly tenant: string | undefined;
  status(): readonly SourceStatus[];
  /** Approves tools. Rejects if one of them is not held back, or has another definition now. */
  approve(approval: Approval, principal: string): Promise<void>;
}

const issuesOf = explainWithoutEngine(schema);

/**
 * Makes the part that shows the sources to callers with `explain`, and approves tools for callers with
 * `operator`. A caller of a tenant approves only tools of the tenant's own sources, because the other
 * sources are shared. Sources are added, changed and removed in the file only.
 */
export function serveSources(sources: ServedSources): HttpPart {
  const isOwn = ({ tenant }: Pick<Approval, "tenant">): boolean =>
    sources.tenant === undefined || sources.tenant === tenant;
  const list = ({ raw, caller }: ToolRequest): Response => {
    if (!isOperator(raw) && caller.explain !== true) {
      throw denied("Cannot list the sources: the caller may not see hidden tools");
    }
    const listed = sources.status().map((status) => ({
      ...status,
      mayApprove: isOperator(raw) && isOwn(status),
    }));
    return json({ sources: listed });
  };
  const approve = async (request: ToolRequest): Promise<Response> => {
    if (!isOperator(request.raw)) {
      throw denied('Cannot approve tools: the caller does not have "operator": true in the file');
    }
    const body = await request.readJson();
    const issues = issuesOf(body);
    if (issues.length > 0) {
      const detail = "Cannot approve tools: the body is invalid";
      throw new ProblemError({ status: 422, code: "invalid_arguments", detail, issues });
    }
    if (!isOwn(body as Approval)) {
      throw denied("Cannot approve tools: the source does not belong to the caller's tenant");
    }
    try {
      await sources.approve(body as Approval, request.caller.principal ?? "");
    } catch (cause) {
      const detail = describeThrown(cause, 1_000);
      throw new ProblemError({ status: 409, code: "unavailable", detail }, { cause });
    }
    return list(request);
  };
  return () => ({
    routes: [
      { method: "GET", path: "/sources", answer: list },
      { method: "POST", path: "/sources/approve", answer: approve },
    ],
  });
}

function denied(detail: string): ProblemError {
  return new ProblemError({ status: 403, code: "denied", detail });
}
