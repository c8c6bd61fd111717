/**
 * What a registry may be told.
 *
 * @module
 */

import type { SchemaEngine } from "../schema/mod.ts";
import type { RegistryClock, Services, Tool, ToolDefinition } from "../tool/mod.ts";
import type { SchemaLimits } from "./admission.ts";
import type { ToolIndex } from "./search/mod.ts";

/** An error that reached no caller, for the host's log. */
export interface RegistryErrorReport {
  /** The tool that it was about. */
  readonly toolId: string;
  /** A listener threw, the search index could not follow, or a tool was not disposed of. */
  readonly phase: "listener" | "index" | "dispose";
  /** What was thrown, as it is. */
  readonly error: unknown;
}

/** Options for `ToolRegistry`. */
export interface ToolRegistryOptions {
  /** Compiles the tools' schemas. */
  readonly engine: SchemaEngine;
  /** Tools to register at once. */
  readonly tools?: Iterable<Tool | ToolDefinition> | undefined;
  /** Dependencies that the tools are handed, by name. */
  readonly services?: Services | undefined;
  /**
   * The tools' configuration by id: JSON, checked against the tool's `config` schema when the tool
   * is registered. `ready()` reports ids that no tool has.
   */
  readonly config?: { readonly [id: string]: unknown } | undefined;
  /** Bounds of the schemas that are accepted. */
  readonly limits?: SchemaLimits | undefined;
  /**
   * Makes the index that `searchTools` asks, such as `createToolIndex`; without one there is nothing
   * to search. The registry of `@plue/tools` has that one by default.
   */
  readonly index?: (() => ToolIndex) | undefined;
  /**
   * How long one tool's `init` or `dispose` may take, in milliseconds.
   *
   * @default {30_000}
   */
  readonly lifecycleTimeoutMs?: number | undefined;
  /**
   * Is told of errors that reach no caller: a listener that throws, a search index that cannot
   * follow a change, a `dispose` that fails after its tool was unregistered. Without it a listener's error is dropped; those of `dispose` are
   * thrown by the registry's own `dispose()` in either case.
   */
  readonly onError?: ((report: RegistryErrorReport) => void) | undefined;
  /**
   * Gives the events their timestamps, and bounds the time of `init` and `dispose`.
   *
   * @default The clock of the runtime.
   */
  readonly clock?: RegistryClock | undefined;
}

/** Options for `registry.dispose()`. */
export interface DisposeOptions {
  /** Stops waiting for the calls under way: their tools are disposed of while they run. */
  readonly signal?: AbortSignal | undefined;
}
