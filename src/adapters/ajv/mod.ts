/**
 * The Ajv schema engine, for its custom keywords, its plugins, or its speed:
 * `new ToolRegistry({ engine: ajvEngine() })`.
 *
 * @module
 */

export { ajvEngine, type AjvEngineOptions } from "./ajv_engine.ts";
