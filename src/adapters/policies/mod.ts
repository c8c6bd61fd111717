/**
 * Policies that an engine decides: Open Policy Agent and Cedar. The engine is a parameter.
 *
 * @module
 */

export {
  type CedarAnswer,
  type CedarEngine,
  type CedarEntity,
  cedarPolicy,
  type CedarPolicyOptions,
} from "./cedar.ts";
export { opaPolicy, type OpaPolicyOptions, type OpaProgram } from "./opa.ts";
export type { ToolFacts } from "./tool_facts.ts";
