/** JSON Schema: drafts, checks, the interface of an engine, and the intake of Standard Schema. */

export * from "./check_schema.ts";
export * from "./engine.ts";
export * from "./explain.ts";
export * from "./generate.ts";
export * from "./hardened.ts";
export * from "./issues.ts";
export * from "./keywords.ts";
export * from "./normalize.ts";
export * from "./patterns.ts";
export * from "./references.ts";
