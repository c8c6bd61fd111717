import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as formats from "../../../src/formats/mod.ts";
import {
  makeTool,
  type Tool,
  type ToolDefinition,
  type ToolResult,
} from "../../../src/tool/mod.ts";
import { namesFor, TOOLS } from "./cases.ts";
import calls from "./cases/calls.json" with { type: "json" };
import exports from "./cases/exports.json" with { type: "json" };
import results from "./cases/results.json" with { type: "json" };

/** One call of a function, and its whole outcome. */
interface Step {
  readonly does: "export" | "decode" | "encode";
  readonly target: formats.TargetName;
  /** By default, the tools of `cases.ts`. `null` means that no export's names are passed. */
  readonly tools?: readonly ToolDefinition[] | null;
  readonly options?: formats.ExportOptions;
  readonly response?: unknown;
  readonly call?: Parameters<typeof formats.encodeResult>[1];
  readonly result?: ToolResult;
  /** The returned value as JSON, without empty lists. Each loss or warning is one line. */
  readonly gives?: unknown;
  /** The message of the error. */
  readonly throws?: string;
}

/** A case: one step, or several steps with common fields. */
interface Case extends Partial<Step> {
  readonly title: string;
  readonly steps?: readonly Partial<Step>[];
}

/** A value as JSON: maps as lists of entries, and sets as lists. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(
      value,
      (_key, part) => part instanceof Map || part instanceof Set ? [...part] : part,
    ),
  );
}

const orNone = <Item>(list: readonly Item[]): readonly Item[] | undefined =>
  list.length === 0 ? undefined : list;

function exported({ target, options }: Step, tools: readonly Tool[]): unknown {
  const { tools: sent, losses, rejected, warnings, names, request } = formats.exportTools(
    tools,
    target,
    options,
  );
  const rewrites = names.encodings.flatMap(({ id, input }) =>
    input ? [[id, input.marks.get(input.schema)]] : []
  );
  const report = ({ tool = "all", rule, message }: Record<"rule" | "message", string> & {
    readonly tool?: string;
  }) => `${tool} ${rule}: ${message}`;
  return {
    tools: sent,
    losses: orNone(
      losses.map((loss) =>
        `${loss.tool} ${loss.side} ${loss.path} ${loss.keyword}: ${loss.action}, ${loss.grade}` +
        `${loss.widens ? ", widens" : ""}${loss.narrows ? ", narrows" : ""}: ${loss.message}`
      ),
    ),
    rejected: orNone(rejected.map(report)),
    warnings: orNone(warnings.map(report)),
    rewrites: rewrites.length === 0 ? undefined : Object.fromEntries(rewrites),
    request: Object.keys(request).length === 0 ? undefined : request,
  };
}

function outcome(step: Step): unknown {
  const { does, target, response, call, result } = step;
  const tools = step.tools?.map((definition) => makeTool(definition)) ?? TOOLS;
  if (does === "export") return exported(step, tools);
  const names = step.tools === null ? undefined : namesFor(target, tools);
  if (does === "decode") {
    return formats.decodeCalls(target, response, names as ReturnType<typeof namesFor>)
      .map(({ raw: _raw, ...decoded }) => decoded);
  }
  const losses: formats.ResultLoss[] = [];
  const lose = (loss: formats.ResultLoss): unknown => losses.push(loss);
  const answer = formats.encodeResult(target, call as never, result as ToolResult, names, lose);
  return {
    answer,
    losses: orNone(
      losses.map(({ callId, path, mimeType, message }) =>
        `${callId} ${path} ${mimeType}: ${message}`
      ),
    ),
  };
}

for (const [subject, cases] of Object.entries({ exports, calls, results })) {
  describe(subject, () => {
    // JSON has no narrower types.
    for (const { title, steps = [{}], ...shared } of cases as unknown as readonly Case[]) {
      it(title, () => {
        for (const own of steps) {
          // Together they are a step.
          const { gives, throws, ...step } = { ...shared, ...own } as Step;
          if (throws === undefined) assertEquals(plain(outcome(step)), gives);
          else assertEquals(assertThrows(() => outcome(step), Error).message, throws);
        }
      });
    }
  });
}
