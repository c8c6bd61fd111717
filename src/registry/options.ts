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

/** An error that reaches no caller, for the host's log. */
export interface RegistryErrorReport {
  /** The tool of the error. */
  readonly toolId: string;
  /**
   * A listener, an `isAvailable` function or a description function failed, the search index could not follow, or a tool was
   * not disposed of.
   */
  readonly phase: "listener" | "availability" | "description" | "index" | "dispose";
  /** The thrown value, unchanged. */
  readonly error: unknown;
}

/** Options for `Registry`. */
export interface RegistryOptions {
  /** Checks the tools' schemas when they are registered, and compiles them. */
  readonly engine: SchemaEngine;
  /** Tools to register immediately. */
  readonly tools?: Iterable<Tool | ToolDefinition> | undefined;
  /** Dependencies that the tools receive, by name. */
  readonly services?: Services | undefined;
  /** The tools' configuration by id: JSON. `ready()` reports ids that no tool has. */
  readonly config?: { readonly [id: string]: unknown } | undefined;
  /** The time limit of an `init` or `dispose`, in milliseconds. @default {30_000} */
  readonly lifecycleTimeoutMs?: number | undefined;
  /**
   * Receives errors that reach no caller: of a listener, of an `isAvailable` function (at each
   * listing), of a search index that cannot follow a change, of a `dispose` whose tool was
   * unregistered before. Errors of `dispose` are thrown by the registry's own `dispose()` as well.
   * Errors of this function are ignored.
   */
  readonly onError?: ((report: RegistryErrorReport) => void) | undefined;
  /** The clock for timestamps and time limits. By default, the runtime's. */
  readonly clock?: RegistryClock | undefined;
}

type CompleteOptions = {
  readonly [Option in keyof RegistryOptions]-?: Exclude<RegistryOptions[Option], undefined>;
};

const DEFAULTS: CompleteOptions = {
  // Required: it has no default.
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
  /** The new configuration of the tool. By default it keeps its own. */
  readonly config?: unknown;
}

/** Options for `registry.dispose()`. */
export interface DisposeOptions {
  /** Stops waiting for running calls: their tools are disposed of while they run. */
  readonly signal?: AbortSignal | undefined;
}

export interface RegistrySettings extends Omit<CompleteOptions, "tools" | "config" | "onError"> {
  /** Never throws. */
  readonly report: Report;
}

export function readOptions(options: RegistryOptions): CompleteOptions & RegistrySettings {
  const action = "make a registry";
  rejectUnknownFields(action, options, OPTIONS);
  const read = { ...DEFAULTS, ...defined(options) } as CompleteOptions;
  const { engine, lifecycleTimeoutMs, onError } = read;
  if (!isSchemaEngine(engine)) {
    fail(action, "its engine must be a schema engine: withSchemaCheck makes one");
  }
  checkTimeout(action, lifecycleTimeoutMs, "lifecycleTimeoutMs");
  const report: Report = (phase, toolId, error) =>
    callHook(() => onError({ toolId, phase, error }), noop);
  return { ...read, report };
}

export type AdmissionAction = "register" | "update";

/** Checks a tool's schemas, and returns its checked configuration. */
export function admit(
  tool: Tool,
  { engine }: RegistrySettings,
  action: AdmissionAction,
  given: unknown,
): unknown {
  const { id, config: schema } = tool;
  const doing = `${action} tool "${id}"`;
  const check = (schema: JsonSchema, what: string): void =>
    attempt(doing, () => admitSchema(engine, schema, what));
  for (const field of ["parameters", "returns", "config", "context"] as const) {
    const schema = tool[field];
    if (schema !== undefined && !isStandardSchema(schema)) check(schema, `its ${field}`);
  }
  // A view's arguments are checked against the schemas of its original tools, too.
  for (let shown = tool.view?.tool; shown; shown = shown.view?.tool) {
    check(shown.parameters, "its tool's parameters");
  }
  if (schema === undefined) {
    return given === undefined ? undefined : fail(doing, "it takes no configuration");
  }
  // A tool with only optional settings receives an empty configuration.
  const config = attempt(doing, () => copyJson(given ?? {}, "its configuration"));
  const validator = attempt(doing, () => compileOnce(engine, schema));
  if (validator.check(config)) return config;
  const issues = validator.issues(config).map((issue) => issue.message).join("; ");
  fail(doing, `its configuration is ${given === undefined ? "missing" : "wrong"}: ${issues}`);
}
