/**
 * What the dispatcher needs of the registry, besides its tools: one tool made ready to run.
 *
 * @module
 */

import type { SchemaEngine, SchemaValidator } from "../schema/schema_engine.ts";
import type { ToolSource } from "../select/tool_source.ts";
import type { Services, Tool } from "../tool/mod.ts";

/** A registered tool, ready to run. One object per registration, so a call allocates nothing for it. */
export interface ToolRuntime {
  readonly tool: Tool;
  readonly services: Services;
  /** The tool's configuration, checked. */
  readonly config: unknown;
  /** What `init` returned. */
  readonly state: unknown;
  /** The validator of `tool.parameters`: compiled once, at the latest when it is acquired. */
  readonly parameters: SchemaValidator;
  /** The validator of `tool.returns`. */
  readonly returns: SchemaValidator | undefined;
}

/** A source of tools that can also run them. */
export interface ToolHost extends ToolSource {
  readonly engine: SchemaEngine;
  /**
   * Begins a call: compiles the schemas and runs `init` if that has not been done, and keeps `dispose` away until `release`.
   * Answers at once when `init` has run (or there is none), so that a call need not wait.
   *
   * @throws {ToolLifecycleError} If the tool is not registered any more, was replaced, its schemas
   * cannot be compiled, or its `init` failed.
   */
  acquire(tool: Tool): ToolRuntime | Promise<ToolRuntime>;
  /** Ends a call that `acquire` began. Exactly once each. */
  release(runtime: ToolRuntime): void;
}

/** Whether a source can also run its tools. */
export function isToolHost(source: ToolSource | undefined): source is ToolHost {
  return source !== undefined && typeof (source as Partial<ToolHost>).acquire === "function";
}

/** A tool could not be made ready. The message is written for a model; `cause` for the log. */
export class ToolLifecycleError extends Error {
  override readonly name = "ToolLifecycleError";
}
