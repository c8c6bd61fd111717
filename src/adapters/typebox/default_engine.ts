/**
 * The engine that is used where none is handed in.
 *
 * @module
 */

import type { SchemaEngine } from "../../schema/mod.ts";
import { typeboxEngine } from "./typebox_engine.ts";

let engine: SchemaEngine | undefined;

/** One engine for all, so that a schema in two registries is compiled once. */
export function defaultEngine(): SchemaEngine {
  return engine ??= typeboxEngine();
}
