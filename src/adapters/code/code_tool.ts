/** A toolset of two tools: `search_tools`, and `run_code`, which runs a program over the others. */

import { CallContext } from "../../execute/mod.ts";
import { Quotas } from "../../execute/durable/mod.ts";
import { searchTool, ToolBridge } from "../../finding/bridge.ts";
import { functionPath, signatureOf } from "../../finding/signature.ts";
import { buildToolset, isToolset, type Selection, type Toolset } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { fail, makeTool, type Tool } from "../../tool/mod.ts";
import { CodeRun, type CodeSettings } from "./code_run.ts";
import { type CodeLimits, type Executor, readLimits } from "./executor.ts";

/** Options for {@linkcode codeTool}. Callers with the same options object share the limits. */
export interface CodeToolOptions {
  /** Runs the programs: `quickJs` creates one. */
  readonly executor: Executor;
  readonly limits?: CodeLimits;
}

const ACTION = "make a code tool";

const CHECKS = {
  executor: check.anyValue as check.Check<Executor>,
  limits: readLimits as check.Check as check.Check<Required<CodeLimits>>,
} satisfies { readonly [Name in keyof CodeToolOptions]-?: check.Check };

/**
 * Makes a toolset with two tools. `search_tools` finds tools, and `run_code` runs a program that
 * calls them, so that a model needs one turn instead of fifty.
 *
 * The program is the body of an async function. `await tools.crm.invoices({ … })` calls the tool
 * `crm:invoices`; a failed call throws a `ToolError` with `code` and `message`. Each of these calls
 * is a call of its tool by the caller of `run_code`, with its session, context and trace: the
 * selection, validation, rules, limits, approvals, hooks, metrics and the journal apply to it.
 *
 * A call that waits for an approval or an answer suspends `run_code`, if the dispatcher has
 * `tickets`. The ticket resumes it in any process: the program runs again from its beginning, and
 * receives the results of its earlier calls, which may have 64 kB of JSON together. With a store for
 * the tickets, no call runs twice.
 *
 * The result is `{ value, log, failures }`: the returned value, the text that the program has
 * logged, and the failed calls.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { readFile } from "node:fs/promises";
 * import { fileURLToPath } from "node:url";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { codeTool, quickJs } from "@plue/tools/code";
 *
 * const tool = { name: "ping", description: "Answers.", execute: () => "pong" };
 * const file = fileURLToPath(import.meta.resolve("quickjs-wasi/quickjs.wasm"));
 * const executor = quickJs(await readFile(file));
 * const toolset = codeTool(new ToolRegistry({ tools: [tool] }), { executor });
 *
 * const code = "return [await tools.ping(), await tools.ping()];";
 * const result = await new ToolDispatcher(toolset).dispatch({ name: "run_code", arguments: { code } });
 * assert.deepEqual(result.ok && result.content, { value: ["pong", "pong"] });
 * ```
 *
 * @param source The tools that programs can call: a toolset, or a registry for all of its tools.
 * @throws {TypeError | RangeError} If an option is unknown or invalid.
 */
export function codeTool(
  source: Toolset | { select(selection?: Selection): Toolset },
  options: CodeToolOptions,
): Toolset {
  const toolset = isToolset(source) ? source : source?.select?.();
  if (!isToolset(toolset)) fail(ACTION, "the source must be a toolset or a registry");
  const own = check.once(made, options, () => ownTools(options));
  return new ToolBridge(toolset.bridge?.target ?? toolset, own, { native: false });
}

/** Cached by the options, because the tools refer to no toolset. */
const made = new WeakMap<CodeToolOptions, Toolset>();

function ownTools(options: CodeToolOptions): Toolset {
  const { executor, limits = readLimits(ACTION) } = check.readFields(ACTION, options, CHECKS);
  if (executor === undefined) fail(ACTION, "it needs an executor, such as quickJs()");
  check.checkPort(ACTION, "executor", executor, ["run"]);
  // `tools.crm.invoices({ open?: boolean }): Lists…`
  const show = (tool: Tool) => functionPath(tool.id) + signatureOf(tool).slice(tool.id.length);
  return buildToolset([searchTool(FINDS, show, 10), runCode({ executor, limits })]);
}

const FINDS = "Finds tools by what they do. Returns each one as a function for a program of " +
  "run_code, with its arguments and purpose. [lossy] marks omitted rules: a call that " +
  "violates a rule throws an error that explains it.";

const RUNS = "Runs a program that calls tools, and returns its result. Use it for several " +
  "calls, for loops, and to keep large results out of the conversation: filter them, and return " +
  "what you need. The program is the body of an async function in JavaScript: " +
  "`const open = await tools.crm.invoices({ open: true }); return open.length;`. " +
  "search_tools finds the functions. They return promises of the result, and throw a ToolError " +
  "with code and message. console.log adds to the log. There is no network, file, timer or " +
  "randomness.";

function runCode(settings: CodeSettings): Tool {
  const { maxPrograms, maxProgramsPerPrincipal, maxSourceLength, timeoutMs } = settings.limits;
  const programs = new Quotas<string | undefined>(maxPrograms, maxProgramsPerPrincipal);
  return makeTool({
    name: "run_code",
    description: RUNS,
    parameters: {
      type: "object",
      additionalProperties: false,
      properties: { code: { type: "string", maxLength: maxSourceLength } },
      required: ["code"],
    },
    timeoutMs,
    callsTools: true,
    async execute({ code }: { readonly code: string }, context: check.ToolContext) {
      const call = CallContext.callOf(context);
      const tools = call?.toolset.bridge?.target;
      if (!tools) fail("run a program", "use a dispatcher over the toolset of codeTool()");
      const { principal } = context;
      const exceeded = programs.exceeded(principal, 1);
      if (exceeded !== undefined) {
        const whose = exceeded === "quota" ? "of this caller " : "";
        const why = `too many programs ${whose}are running; try again later`;
        // Nothing has run, so the ticket of a resumed program stays valid.
        return call.fail("overloaded", why, { ran: "no" });
      }
      programs.add(principal, 1);
      try {
        return await new CodeRun(call, tools, settings).run(code);
      } finally {
        programs.add(principal, -1);
      }
    },
  } as check.ToolDefinition);
}
