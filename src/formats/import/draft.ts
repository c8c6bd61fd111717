/**
 * A tool while it is being read: what an importer fills in, and the intake makes a tool of.
 *
 * @module
 */

import type {
  JsonSchema,
  JsonSchemaObject,
  ToolAnnotations,
  ToolContext,
  ToolExample,
  ToolIcon,
  ToolOutput,
} from "../../tool/mod.ts";
import type { ProviderHints } from "../types.ts";
import type { Members } from "./fields.ts";

/** A tool that is being read. */
export interface Draft {
  /** The name that the source knows it by. */
  readonly sourceName: string;
  /** The name that it should get, where that is another one; it need not be a legal one. */
  readonly wantedName?: string;
  readonly namespace?: string | undefined;
  /** Where it stands in the document, as a JSON Pointer. */
  readonly path: string;
  title?: string | undefined;
  description?: string | undefined;
  parameters?: JsonSchemaObject | undefined;
  returns?: JsonSchema | undefined;
  tags?: readonly string[];
  icons?: readonly ToolIcon[];
  examples?: readonly ToolExample[];
  deprecated?: boolean;
  /** What the source says of the tool's behaviour. */
  hints: ToolAnnotations;
  /** What the tool's `meta` keeps for exporters. */
  provider: { -readonly [Key in keyof ProviderHints]: ProviderHints[Key] };
  /** The rest of the tool's `meta`. */
  meta?: Members | undefined;
  /** Runs a call, where the source says how; else the option `execute` does. */
  execute?: (args: Members, context: ToolContext) => ToolOutput<unknown>;
  /** What becomes of the arguments of a call before the option `execute` is given them. */
  writeArguments?: (args: Members) => Members;
  /** What becomes of the results of the option `execute`. */
  readResult?: (result: unknown) => unknown;
}
