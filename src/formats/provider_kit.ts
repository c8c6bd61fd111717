/**
 * The parts of which the records of providers are made.
 *
 * @module
 */

export * from "./call_format.ts";
export * from "./export_options.ts";
export * from "./form_rules.ts";
export * from "./importer_kit.ts";
export * from "./target.ts";
export * from "./wire.ts";
