/**
 * Protections against schemas and values that were made to use up time: patterns in bounded time,
 * no part of a value checked again and again, and a bound on the steps of a check.
 *
 * @module
 */

import { once, type Tool } from "../tool/mod.ts";
import { boundSteps } from "./check_cost.ts";
import { type Hardening, type SchemaEngine, wrapEngineOf } from "./engine.ts";
import { compilePattern } from "./patterns.ts";
import { splitterFor } from "./repeated_parts.ts";

/** The protections that {@linkcode hardened} passes to an engine. */
export const HARDENING: Hardening = Object.freeze({
  compilePattern,
  splitterFor,
  boundSteps,
});

const hardenedEngines = new WeakMap<SchemaEngine, SchemaEngine>();

/**
 * Protects an engine from hostile schemas and values: a recursive schema visits each
 * part of a value once, and a value whose check takes more than 2,500,000 steps does not fit, such as
 * most texts with the pattern `^(a+)+$`.
 *
 * The `ToolRegistry` and the `ToolDispatcher` of `@plue/tools` harden every engine, and imported
 * tools are always compiled by a hardened one. `@plue/tools/core` leaves it to you: a program that
 * registers only its own tools can do without, and is about 5 kB smaller.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { hardened, typeboxEngine } from "@plue/tools";
 * import { Registry } from "@plue/tools/core";
 *
 * const engine = hardened(typeboxEngine());
 * const registry = new Registry({ engine });
 *
 * assert.equal(registry.engine.compile({ pattern: "^(a+)+$" }).check("a".repeat(50) + "!"), false);
 * assert.equal(hardened(engine), engine);
 * ```
 *
 * @param engine The engine.
 * @returns The protected engine: the same one for the same engine.
 */
export function hardened(engine: SchemaEngine): SchemaEngine {
  return once(hardenedEngines, engine, () => {
    const made = Object.freeze<SchemaEngine>({
      name: engine.name,
      admit: (schema, options) => engine.admit(schema, options, HARDENING),
      compile: (schema, dialect) => engine.compile(schema, dialect, HARDENING),
    });
    hardenedEngines.set(made, made);
    return made;
  });
}

/**
 * Has the schemas of a tool compiled by hardened engines only, whatever registry it is in: for
 * tools that come from outside.
 *
 * @returns The tool.
 */
export function hardenTool(tool: Tool): Tool {
  const { parameters, returns, config, context } = tool;
  for (const schema of [parameters, returns, config, context]) wrapEngineOf(schema, hardened);
  return tool;
}
