/** The default engine, the registry and dispatcher that use it, and `defineTool` with types. */

import * as Formats from "typebox/format";
import {
  type SelectableToolHost,
  ToolDispatcher as CoreToolDispatcher,
  type ToolDispatcherOptions,
} from "../../execute/mod.ts";
import {
  createToolIndex,
  type ToolAnswer,
  type ToolIndex,
  ToolRegistry as FullRegistry,
  type ToolRegistryOptions as FullRegistryOptions,
} from "../../registry/mod.ts";
import * as schemas from "../../schema/mod.ts";
import type { SchemaEngine } from "../../schema/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { describeThrown, fail, type Issue, type JsonSchema } from "../../tool/mod.ts";

export * from "./define_tool.ts";

/** Options for {@linkcode typeboxEngine}. */
export interface TypeboxEngineOptions {
  /**
   * `assert` checks every format that draft-07 or 2020-12 defines, and ignores other formats.
   * `annotate` checks no format.
   *
   * @default {"assert"}
   */
  readonly formats?: "assert" | "annotate";
  /**
   * True to compile schemas to JavaScript where the runtime allows it. With `false`, schemas are
   * interpreted: a check takes microseconds instead of some ten nanoseconds, with the same result.
   *
   * @default {true}
   */
  readonly codeGeneration?: boolean;
}

/**
 * Creates the engine. An engine has no state: two engines with the same options are equal.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { typeboxEngine } from "@plue/tools";
 *
 * const days = typeboxEngine().compile({ type: "integer", minimum: 1 }, "2020-12");
 *
 * assert.equal(days.check(3), true);
 * assert.equal(days.issues(0)[0]?.message, "The value must be at least 1");
 * ```
 */
export function typeboxEngine(options: TypeboxEngineOptions = {}): SchemaEngine {
  const { formats = "assert", codeGeneration = true } = options;
  const asserted = formats === "assert" ? schemas.ASSERTED_FORMATS : new Set<string>();
  return schemas.withSchemaCheck({
    name: "typebox",
    compile(
      schema: JsonSchema,
      dialect: schemas.Dialect,
      hardening?: schemas.Hardening,
    ): schemas.SchemaValidator {
      const form = schemas.normalizeSchema(schema, dialect, { formats: asserted });
      let interpreter: schemas.SchemaInterpreter | undefined;
      const find = (value: unknown, maxSteps?: number): readonly Issue[] =>
        (interpreter ??= new schemas.SchemaInterpreter(form, Formats.Test, hardening))
          .issues(value, maxSteps);
      const issues = (value: unknown): readonly Issue[] => {
        const found = find(value);
        return found.length > 0 ? found : [schemas.vagueIssue()];
      };
      const caches = hardening?.repeatsParts(form) ?? false;
      const check = (codeGeneration ? compile(form, caches, hardening) : undefined) ??
        ((value) => find(value, Infinity).length === 0);
      return hardening?.boundSteps(form, caches, { check, issues }) ?? { check, issues };
    },
  });
}

/** Compiles a schema; returns `undefined` where code may not be generated. */
function compile(
  form: schemas.NormalizedSchema,
  caches: boolean,
  hardening: schemas.Hardening | undefined,
): ((value: unknown) => boolean) | undefined {
  let run: (value: unknown) => boolean;
  try {
    run = new schemas.CheckGenerator(form, Formats.Test, hardening?.compilePattern, caches)
      .generate();
  } catch (cause) {
    // Code must not be generated, or is too deep for the stack. The name is compared, because an
    // error of another realm is not an `instanceof` this realm's EvalError.
    if (/^(Eval|Range)Error$/.test((cause as Error).name)) return undefined;
    throw new SyntaxError(`Cannot compile the schema: ${describeThrown(cause)}`, { cause });
  }
  return (value) => {
    try {
      return run(value);
    } catch {
      // A value that exhausts the stack is invalid.
      return false;
    }
  };
}

let engine: SchemaEngine | undefined;

/** Returns one hardened engine for all registries, so that a shared schema is compiled once. */
export function defaultEngine(): SchemaEngine {
  return engine ??= schemas.hardened(typeboxEngine());
}

/** Returns the hardened engine; other values unchanged, so that the core rejects them. */
function harden(engine: SchemaEngine): SchemaEngine {
  return schemas.isSchemaEngine(engine) ? schemas.hardened(engine) : engine;
}

/** Options for {@linkcode ToolRegistry}. */
export interface ToolRegistryOptions extends Omit<FullRegistryOptions, "engine"> {
  /** Checks and compiles the tools' schemas, hardened. @default {typeboxEngine()} */
  readonly engine?: SchemaEngine | undefined;
  /** Creates the index for `searchTools`. @default {createToolIndex} */
  readonly index?: (() => ToolIndex<ToolAnswer>) | undefined;
}

/**
 * The mutable set of all tools. It keeps ids unique, reports changes, and runs the lifecycle of
 * each tool. Callers use the tools through toolsets, which `select` creates.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 *
 * await using registry = new ToolRegistry({
 *   tools: [{ name: "echo", description: "Says it again.", risk: "safe" }],
 * });
 * const changes: string[] = [];
 * registry.subscribe(({ type, tool }) => changes.push(`${type} ${tool.id}`));
 * registry.registerTool({ name: "rm", description: "Deletes a file.", risk: "high" });
 *
 * assert.deepEqual(registry.ids, ["echo", "rm"]);
 * assert.deepEqual(changes, ["added rm"]);
 * assert.deepEqual(registry.getToolsByRiskLevel("low").map((tool) => tool.id), ["echo"]);
 * assert.equal(registry.searchTools("delete files")[0]?.id, "rm");
 * ```
 */
export class ToolRegistry extends FullRegistry {
  /** @throws {TypeError | RangeError} If an option or one of the tools is invalid. */
  constructor(options: ToolRegistryOptions = {}) {
    // Every option is optional, so a list of tools would be accepted as options without tools.
    if (Array.isArray(options)) fail("make a registry", "pass the tools as the option tools");
    const { engine = defaultEngine(), index = createToolIndex } = options;
    super({ ...options, engine: harden(engine), index });
  }
}

/**
 * Runs calls of the tools in a toolset: from a model's arguments to a valid result, or a failure
 * for the model. The dispatcher never rejects or throws because of a call.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { buildToolset, defineTool, ToolDispatcher } from "@plue/tools";
 *
 * const toolset = buildToolset([
 *   defineTool({
 *     name: "add",
 *     description: "Adds two numbers.",
 *     parameters: {
 *       type: "object",
 *       properties: { a: { type: "number" }, b: { type: "number" } },
 *       required: ["a", "b"],
 *     },
 *     execute: ({ a, b }) => a + b,
 *   }),
 * ]);
 * const dispatcher = new ToolDispatcher(toolset);
 *
 * const sum = await dispatcher.dispatch({ name: "add", arguments: '{"a":2,"b":40}' });
 * assert.equal(sum.ok && sum.content, 42);
 * ```
 */
export class ToolDispatcher extends CoreToolDispatcher {
  /**
   * @param source The tools that may be called: a toolset, or a registry for all of its tools. With
   * a registry, the dispatcher follows its changes and uses its engine.
   * @param options The layers, limits and clock. `engine` is for a toolset that was created from a
   * list. By default, `engine` is {@linkcode typeboxEngine}.
   * @throws {TypeError | RangeError} If an option is invalid.
   */
  constructor(source: Toolset | SelectableToolHost, options: ToolDispatcherOptions = {}) {
    super(source, { ...options, engine: harden(options.engine ?? defaultEngine()) });
  }
}
