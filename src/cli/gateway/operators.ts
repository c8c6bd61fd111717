/** The routes of a gateway for operators: its sources, approvals, and the metrics of its tenants. */

import {
  chooseType,
  type HttpPart,
  json,
  ProblemError,
  type ToolRequest,
  UNCACHED_HEADERS,
} from "../../adapters/http/mod.ts";
import type { ListedSource, SourceStatus } from "../../explorer/page/api.ts";
import type { DispatcherMetrics, ToolMetrics } from "../../execute/mod.ts";
import { explainWithoutEngine } from "../../schema/mod.ts";
import { describeThrown } from "../../tool/mod.ts";
import { isOperator } from "./callers.ts";
import schema from "./approval.schema.json" with { type: "json" };

/** Tools to approve, each with the digest of the definition that the operator has read. */
export interface Approval {
  readonly source: string;
  /** The tenant of the source; `undefined` for a source of the file. */
  readonly tenant?: string;
  readonly tools: readonly { readonly id: string; readonly digest: string }[];
}

/** The part of a gateway that the callers of one tenant use. */
export interface Operated {
  status(): readonly SourceStatus[];
  /** Approves tools. Rejects if one of them is not held back, or has another definition now. */
  approve(approval: Approval, principal: string): Promise<void>;
  metrics(): readonly (readonly [tenant: string, DispatcherMetrics])[];
}

const issuesOf = explainWithoutEngine(schema);

/**
 * Shows the sources to callers with `explain`, and approves tools for callers with `operator`. A caller
 * of a tenant approves only tools of its own sources, because the other sources are shared. Callers
 * without a tenant also see the sum of the calls of each tenant, in JSON or in text for Prometheus.
 */
export function serveOperators(gateway: Operated, tenant: string | undefined): HttpPart {
  const isOwn = (source: Pick<Approval, "tenant">): boolean =>
    tenant === undefined || tenant === source.tenant;
  const list = ({ raw, caller }: ToolRequest): Response => {
    if (!isOperator(raw) && caller.explain !== true) {
      throw denied("Cannot list the sources: the caller may not see hidden tools");
    }
    const listed = gateway.status().map((status): ListedSource => ({
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
      await gateway.approve(body as Approval, request.caller.principal ?? "");
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
      ...tenant === undefined
        ? [{ method: "GET", path: "/metrics/tenants", answer: metricsAnswer(gateway) } as const]
        : [],
    ],
  });
}

/** The metrics of a tenant: their names in JSON and in text, their types and descriptions. */
const METRICS = [
  ["calls", "calls_total", "counter", "Calls of the tenant that have ended."],
  ["failed", "failures_total", "counter", "Calls of the tenant that failed."],
  ["inFlight", "in_flight", "gauge", "Calls of the tenant that have begun and not ended."],
] as const satisfies readonly (readonly [keyof ToolMetrics, string, string, string])[];

function metricsAnswer(gateway: Operated) {
  return ({ raw, caller }: ToolRequest): Response => {
    if (caller.explain !== true) {
      throw denied("Cannot show the metrics of tenants: the caller may not see hidden tools");
    }
    const sums = gateway.metrics().map(([tenant, { tools }]) => {
      const sum = (field: typeof METRICS[number][0]): number =>
        tools.reduce((total, tool) => total + tool[field], 0);
      return { tenant, calls: sum("calls"), failed: sum("failed"), inFlight: sum("inFlight") };
    });
    const type = chooseType(raw.headers.get("accept"), ["application/json", "text/plain"]);
    if (type === "application/json") return json({ tenants: sums });
    const lines = METRICS.flatMap(([field, name, kind, help]) => [
      `# HELP plue_tenant_${name} ${help}`,
      `# TYPE plue_tenant_${name} ${kind}`,
      ...sums.map((sum) => `plue_tenant_${name}{tenant="${sum.tenant}"} ${sum[field]}`),
    ]);
    return new Response(`${lines.join("\n")}\n`, {
      headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8", ...UNCACHED_HEADERS },
    });
  };
}

function denied(detail: string): ProblemError {
  return new ProblemError({ status: 403, code: "denied", detail });
}
