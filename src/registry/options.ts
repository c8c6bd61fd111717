/** The options of a registry, and the checks of a tool before the registry changes. */

import { admitSchema, compileOnce, isSchemaEngine, type SchemaEngine } from "../schema/mod.ts";
import {
  attempt,
  callHook,
  copyJson,
  defined,
  fail,
  isStandardSchema,
  type JsonSchema,
  MAX_TIMEOUT_MS,
  noop,
  numberFrom,
  type RegistryClock,
  rejectUnknownFields,
  type Services,
  systemClock,
  type Tool,
  type ToolDefinition,
} from "../tool/mod.ts";

/** An error that no caller receives, for the host's log. */
export interface RegistryErrorReport {
  /** The tool of the error. */
  readonly toolId: string;
  /**
   * The failed part: a listener, an `isAvailable` function, a description function, the update of
   * the search index, or the disposal of a tool.
   */
  readonly phase: "listener" | "availability" | "description" | "index" | "dispose";
  /** The thrown value, unchanged. */
  readonly error: unknown;
}

/** Options for `Registry`. */
export interface RegistryOptions {
  /** Checks the tools' schemas when tools are registered, and compiles the schemas. */
  readonly engine: SchemaEngine;
  /** Tools to register immediately. */
  readonly tools?: Iterable<Tool | ToolDefinition> | undefined;
  /** Dependencies that the tools receive, by name. */
  readonly services?: Services | undefined;
  /** The tools' configurations, as JSON, by id. `ready()` reports ids that no tool has. */
  readonly config?: { readonly [id: string]: unknown } | undefined;
  /** The time limit of an `init` or `dispose`, in milliseconds. @default {30_000} */
  readonly lifecycleTimeoutMs?: number | undefined;
  /**
   * Receives errors that no caller receives: errors of listeners, of `isAvailable` functions (at
   * each listing), of the search index at a change, and of the `dispose` of an unregistered tool.
   * The registry's own `dispose()` also throws the errors of tools' `dispose`. Errors of this
   * function are ignored.
   */
  readonly onError?: ((report: RegistryErrorReport) => void) | undefined;
  /** The clock for timestamps and time limits. By default, the runtime's clock. */
  readonly clock?: RegistryClock | undefined;
}

type CompleteOptions = {
  readonly [Option in keyof RegistryOptions]-?: Exclude<RegistryOptions[Option], undefined>;
};

const DEFAULTS: CompleteOptions = {
  // Required: there is no default.
  engine: undefined as never,
  tools: [],
  services: Object.freeze({}),
  config: {},
  lifecycleTimeoutMs: 30_000,
  onError: noop,
  clock: systemClock,
};

export const OPTIONS: readonly string[] = Object.keys(DEFAULTS);

const checkTimeout = numberFrom(1, MAX_TIMEOUT_MS);

export type Report = (phase: RegistryErrorReport["phase"], toolId: string, error: unknown) => void;

/** Options for `registry.updateTool()`. */
export interface UpdateOptions {
  /** The new configuration of the tool. By default, the tool keeps its configuration. */
  readonly config?: unknown;
}

/** Options for `registry.dispose()`. */
export interface DisposeOptions {
  /** When it aborts, running calls are not awaited: their tools are disposed of while they run. */
  readonly signal?: AbortSignal | undefined;
}

export interface RegistrySettings extends Omit<CompleteOptions, "tools" | "config" | "onError"> {
  /** Must not throw. */
  readonly report: Report;
}

export function readOptions(options: RegistryOptions): CompleteOptions & RegistrySettings {
  const action = "make a registry";
  rejectUnknownFields(action, options, OPTIONS);
  const read = { ...DEFAULTS, ...defined(options) } as CompleteOptions;
  const { engine, lifecycleTimeoutMs, onError } = read;
  if (!isSchemaEngine(engine)) {
    fail(action, "the option engine must be a schema engine; create it with withSchemaCheck()");
  }
  checkTimeout(action, lifecycleTimeoutMs, "lifecycleTimeoutMs");
  const report: Report = (phase, toolId, error) =>
    callHook(() => onError({ toolId, phase, error }), noop);
  return { ...read, report };
}

export type AdmissionAction = "register" | "update";

/** Checks a tool's schemas. Checks the tool's configuration, and returns it. */
export function admit(
  tool: Tool,
  { engine }: RegistrySettings,
  action: AdmissionAction,
  givenConfig: unknown,
): unknown {
  const { id, config: configSchema } = tool;
  const doing = `${action} tool "${id}"`;
  const check = (schema: JsonSchema, what: string): void =>
    attempt(doing, () => admitSchema(engine, schema, what));
  for (const field of ["parameters", "returns", "config", "context"] as const) {
    const schema = tool[field];
    if (schema !== undefined && !isStandardSchema(schema)) check(schema, `its ${field}`);
  }
  // The arguments of a view are also checked against the schemas of its original tools.
  for (let view = tool.view; view; view = view.tool.view) {
    check(view.tool.parameters, "its tool's parameters");
  }
  if (configSchema === undefined) {
    return givenConfig === undefined ? undefined : fail(doing, "the tool declares no config");
  }
  // A tool whose settings are all optional receives an empty configuration.
  const config = attempt(doing, () => copyJson(givenConfig ?? {}, "its configuration"));
  const validator = attempt(doing, () => compileOnce(engine, configSchema));
  if (validator.check(config)) return config;
  const issues = validator.issues(config).map((issue) => issue.message).join("; ");
  const problem = givenConfig === undefined ? "missing" : "invalid";
  fail(doing, `its configuration is ${problem}: ${issues}`);
}
