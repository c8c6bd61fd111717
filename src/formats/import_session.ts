/** The session of one import, which limits, names and creates the tools that an importer reads. */

import * as schemas from "../schema/mod.ts";
import {
  attemptOr,
  cleanText,
  clip,
  copyJson,
  defined,
  describeThrown,
  HINTS,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  makeTool,
  once,
  type RiskLevel,
  type Tool,
  type ToolAnnotations,
  type ToolContext,
  type ToolExample,
  type ToolIcon,
  toolId,
  type ToolOutput,
} from "../tool/mod.ts";
import * as imports from "./import_options.ts";
import * as findings from "./import_findings.ts";
import { flagIn, type JsonRecord, objectIn, textIn } from "./wire.ts";
import { mapNames, type NameRule } from "../select/mod.ts";
import type { ProviderHints } from "./provider_hints.ts";
import { mapSchema, without } from "./transform/rewrite.ts";

/** A tool as an importer reads it, before the session names and creates the tool. */
export interface ImportedTool {
  readonly sourceName: string;
  /** The name to make legal, if it differs from `sourceName`. */
  readonly wantedName?: string;
  readonly namespace?: string | undefined;
  /** The JSON Pointer of the entry in the document. */
  readonly path: string;
  title?: string | undefined;
  description?: string | undefined;
  parameters?: JsonSchemaObject | undefined;
  returns?: JsonSchema | undefined;
  tags?: readonly string[];
  icons?: readonly ToolIcon[];
  examples?: readonly ToolExample[];
  deprecated?: boolean;
  hints: ToolAnnotations;
  /** The hints for exporters, in the `meta` of the tool. */
  provider: { -readonly [Key in keyof ProviderHints]: ProviderHints[Key] };
  /** The rest of the tool's `meta`. */
  meta?: JsonRecord | undefined;
  /** Runs the calls if the option `execute` is not set. */
  execute?: (args: JsonRecord, context: ToolContext) => ToolOutput<unknown>;
  /** Converts the arguments of a call for the option `execute`. */
  writeArguments?: (args: JsonRecord) => JsonRecord;
}

/** Reads the documents of one source. */
export interface Importer<Source extends string = string> {
  readonly source: Source;
  detects(document: unknown): boolean;
  read(tools: ImportSession, document: unknown, options: imports.ImportToolsOptions): void;
}

const MAX_WARNINGS = 1_000;
/** The maximum number of icons of a tool, and of characters in the address of an icon. */
const MAX_ICONS = 16;
const MAX_ICON = 65_536;

export class ImportSession {
  readonly source: string;
  readonly #options: imports.ImportOptions;
  readonly #limits: Required<imports.ImportLimits>;
  readonly #read: ImportedTool[] = [];
  readonly #notes: Parameters<ImportSession["warn"]>[] = [];
  readonly #rejected: imports.RejectedImport[] = [];
  /** The findings in the texts of each tool, which are searched before the texts are cleaned. */
  readonly #found = new Map<ImportedTool, readonly findings.Finding[]>();
  /** The parts of the document without findings. */
  readonly #plain = new WeakSet<object>();
  /** The names of the tools that the options exclude. */
  readonly #leftOut = new Set<string>();
  #entries = 0;
  /** The number of states that remains for the automata of all regular expressions. */
  #patternStates = 1_000_000;
  #values: number;
  /** The sizes of the counted parts, so that a shared part is measured once. */
  readonly #sizes = new WeakMap<object, number>();

  constructor(source: string, options: imports.ImportOptions) {
    this.source = source;
    this.#options = options;
    this.#limits = imports.checkImportOptions(options);
    this.#values = this.#limits.maxValues;
  }

  /** Counts an entry. Returns false beyond `maxTools`, and reports the first such entry. */
  count(path: string): boolean {
    const { maxTools } = this.#limits;
    this.#entries++;
    if (this.#entries === maxTools + 1) {
      const limit = `the document has more than ${maxTools} tools, which is the limit`;
      this.reject(undefined, path, "maxTools", `Cannot import what follows: ${limit}`);
    }
    return this.#entries <= maxTools;
  }

  warn(imported: ImportedTool | undefined, path: string, rule: string, message: string): void {
    if (this.#notes.length <= MAX_WARNINGS) this.#notes.push([imported, path, rule, message]);
  }

  reject(source: unknown, path: string, rule: string, message: string): void {
    const name = typeof source === "string" ? clip(source, 200) : undefined;
    this.#rejected.push(Object.freeze({ name, path, rule, message }));
  }

  /** @param why The reason, as the end of a sentence. */
  rejectTool(
    imported: ImportedTool,
    rule: string,
    why: string,
    path: string = imported.path,
  ): void {
    const { sourceName } = imported;
    this.reject(sourceName, path, rule, `Cannot import "${clip(sourceName)}": ${why}`);
  }

  /** Returns a copy of an entry that cannot change during the import, or rejects the entry. */
  copy(entry: unknown, path: string): JsonRecord | undefined {
    if (!isObject(entry)) {
      this.reject(undefined, path, "type", "Cannot import the tool: it must be an object");
      return undefined;
    }
    try {
      return copyJson(entry, "the tool");
    } catch (cause) {
      const message = describeThrown(cause).replace("Cannot copy", "Cannot import");
      this.reject(undefined, path, "type", message);
      return undefined;
    }
  }

  /** Adds a tool, or rejects the tool if `parameters` is invalid or a limit is exceeded. */
  add(imported: ImportedTool): void {
    const { parameters, returns, path, sourceName } = imported;
    if (!imports.isWanted(this.#options, sourceName)) return void this.#leftOut.add(sourceName);
    if (imported.icons !== undefined) imported.icons = this.#goodIcons(imported, imported.icons);
    for (const part of [parameters, returns, imported.meta, imported.provider, imported.examples]) {
      this.charge(part);
    }
    if (this.isFull) {
      const { maxValues } = this.#limits;
      const why = `the tools have more than ${maxValues} values together, which is the limit`;
      return this.rejectTool(imported, "maxValues", why);
    }
    try {
      if (parameters !== undefined) {
        const what = `the parameters of "${clip(sourceName)}"`;
        imported.parameters = this.#check(imported, parameters, what) as JsonSchemaObject;
      }
    } catch (cause) {
      return this.reject(sourceName, path, "parameters", describeThrown(cause));
    }
    try {
      if (returns !== undefined) {
        const what = `the result schema of "${clip(sourceName)}"`;
        imported.returns = this.#check(imported, returns, what);
      }
    } catch (cause) {
      imported.returns = undefined;
      this.warn(imported, path, "returns", `${describeThrown(cause)}; results are not checked`);
    }
    this.#found.set(imported, findings.textFindings(textsOf(imported), this.#plain));
    for (const field of findings.cleanTexts(imported)) {
      const message = `Its ${field} was shortened: it had hidden characters, or more than ` +
        `${findings.MAX_DESCRIPTION} in a description or ${findings.MAX_TITLE} in a title`;
      this.warn(imported, path, "text", message);
    }
    this.#read.push(imported);
  }

  /** Returns the icons that are small, and whose scheme neither runs code nor reads files. */
  #goodIcons(imported: ImportedTool, icons: readonly ToolIcon[]): readonly ToolIcon[] {
    const good = icons.filter(({ src }) =>
      src.length <= MAX_ICON && /^(https?:\/\/|data:image\/)/i.test(src)
    ).slice(0, MAX_ICONS);
    if (good.length < icons.length) {
      const message =
        `Icons are omitted: more than ${MAX_ICONS}, with more than ${MAX_ICON} characters, or ` +
        'with an address that does not begin with "https:", "http:" or "data:image/"';
      this.warn(imported, `${imported.path}/icons`, "icons", message);
    }
    return good;
  }

  /** Returns the schema without patterns that are too slow or too large to check. */
  #check(imported: ImportedTool, schema: JsonSchema, what: string): JsonSchema {
    const left = Math.min(this.#patternStates, schemas.MAX_PATTERN_STATES);
    const check = (checked: JsonSchema): JsonSchema => {
      const budget: schemas.PatternBudget = { left };
      schemas.checkSchema(checked, what, schemas.HARDENING, budget);
      this.#patternStates -= left - budget.left;
      return checked;
    };
    try {
      return check(schema);
    } catch (cause) {
      if (!(cause instanceof SyntaxError)) throw cause;
      const budget: schemas.PatternBudget = { left };
      const checkable = mapSchema(undefined, schema, {
        enter: (node) =>
          isTooSlow(node["pattern"], budget) ? without(undefined, node, "pattern") : node,
      });
      if (checkable === schema) throw cause;
      check(checkable);
      const message = `${describeThrown(cause)}; such patterns are omitted`;
      this.warn(imported, imported.path, "pattern", message);
      return checkable;
    }
  }

  /** Counts the JSON values of a part of the document for the limit `maxValues`; see `isFull`. */
  charge(part: unknown): void {
    if (part === undefined || this.isFull) return;
    const known = typeof part === "object" && part !== null ? this.#sizes.get(part) : 1;
    const size = known ?? countValues(part, this.#values);
    if (known === undefined) this.#sizes.set(part as object, size);
    this.#values -= size;
  }

  get isFull(): boolean {
    return this.#values < 0;
  }

  finish(): imports.ImportResult {
    const names = nameTools(this.#read, this);
    const ids = new Map<ImportedTool, string>();
    const tools: Tool[] = [];
    const lookAlikes = this.#lookAlikes(names);
    for (const imported of this.#read) {
      const name = names.get(imported);
      if (name === undefined) continue;
      const { namespace, sourceName, hints, path } = imported;
      const found = [...this.#found.get(imported) ?? [], ...lookAlikes.get(imported) ?? []];
      for (const { rule, path: at, message } of found) {
        const where = `in "${clip(sourceName)}"${at && ` at "${at}"`}`;
        this.warn(imported, path, rule, `${message}, ${where}`);
      }
      // Called outside of the `try`, because an invalid risk is an error in the host's code.
      const decisions = imports.decide(this.#options, {
        id: toolId(name, namespace),
        sourceName,
        annotations: hints,
        suggested: found.length === 0 ? suggestRisk(hints) : "high",
        findings: found.map(({ rule }) => rule),
      });
      const { missing } = decisions;
      if (missing !== undefined) {
        this.rejectTool(imported, missing, `the option ${missing} does not name it`);
        continue;
      }
      try {
        // Imported tools are untrusted, so they are hardened even if the registry's engine is not.
        const tool = schemas.hardenTool(this.#make(imported, name, decisions));
        ids.set(imported, tool.id);
        tools.push(tool);
      } catch (cause) {
        this.reject(sourceName, imported.path, "tool", describeThrown(cause));
      }
    }
    const warnings: imports.ImportWarning[] = [];
    for (const [imported, path, rule, message] of this.#notes) {
      const tool = imported === undefined ? undefined : ids.get(imported);
      // The notes on a rejected tool are omitted: `rejected` has the reason.
      if (imported !== undefined && tool === undefined) continue;
      warnings.push(Object.freeze({ ...defined({ tool }), path, rule, message }));
    }
    if (warnings.length > MAX_WARNINGS) {
      warnings[MAX_WARNINGS] = Object.freeze({
        path: "",
        rule: "maxWarnings",
        message: `There are more warnings: these are the first ${MAX_WARNINGS} warnings`,
      });
    }
    return Object.freeze({
      source: this.source,
      tools: Object.freeze(tools),
      warnings: Object.freeze(warnings),
      rejected: Object.freeze(this.#rejected),
    });
  }

  /** Returns the findings of look-alike names. Warns of names in `include` that no tool has. */
  #lookAlikes(
    names: ReadonlyMap<ImportedTool, string>,
  ): ReadonlyMap<ImportedTool, readonly findings.Finding[]> {
    const { include, beside = [] } = this.#options;
    const named = [...names].map(([imported, name]) => ({
      imported,
      id: toolId(name, imported.namespace),
      name: imported.sourceName,
    }));
    const others = [...beside].map(({ id, name, meta }) => ({
      id,
      name: textIn(objectIn(meta, "provider"), "name") ?? name,
    }));
    for (const name of typeof include === "object" ? include : []) {
      const isThere = this.#leftOut.has(name) || named.some((tool) => tool.name === name);
      const message = `No tool is called "${clip(name)}", which include names`;
      if (!isThere) this.warn(undefined, "", "include", message);
    }
    const lookAlikes = findings.lookAlikes(named, others);
    return new Map(named.flatMap(({ imported, id }) => {
      const other = lookAlikes.get(id);
      if (other === undefined) return [];
      const message = `A name looks like the name of "${clip(other)}"`;
      return [[imported, [{ rule: "look-alike", path: "", message }]]];
    }));
  }

  #make(
    imported: ImportedTool,
    name: string,
    { risk, roles, scopes }: imports.HostDecisions,
  ): Tool {
    const { sourceName, title, description = "", hints, provider, writeArguments } = imported;
    const { parameters, returns, icons, examples, deprecated, namespace } = imported;
    const { execute: runAny, tags = [], credentials } = this.#options;
    const described = description.trim() !== "";
    if (!described) provider.description = null;
    const run = runAny === undefined
      ? imported.execute
      : (args: JsonRecord, context: ToolContext) =>
        runAny(sourceName, writeArguments?.(args) ?? args, context);
    return makeTool({
      ...{ name, namespace, title, parameters, returns, icons, examples, deprecated },
      ...{ risk, roles, scopes, credentials },
      description: described ? description : title ?? cleanText(sourceName, findings.MAX_TITLE),
      tags: [...tags, ...imported.tags ?? []],
      annotations: withDefaults(hints),
      idempotent: hints.idempotentHint === true,
      meta: { ...imported.meta, provider: { source: this.source, ...provider } },
      // The arguments are an object, because the dispatcher has validated them by an object schema.
      ...(run && { execute: (args, context) => run(args as JsonRecord, context as ToolContext) }),
    });
  }
}

function textsOf(imported: ImportedTool): JsonRecord {
  const { sourceName, title, description, parameters, returns, examples, meta } = imported;
  const { annotations, extra } = imported.provider;
  const prose = { sourceName, title, description, parameters, returns, examples };
  return { ...prose, annotations, meta, extra };
}

/** Returns true if a regular expression is too large, or cannot be matched in linear time. */
function isTooSlow(pattern: unknown, budget: schemas.PatternBudget): boolean {
  if (typeof pattern !== "string") return false;
  return attemptOr(undefined, () => new RegExp(pattern, "u")) !== undefined &&
    attemptOr(undefined, () => schemas.compilePattern(pattern, budget)) === undefined;
}

/** Counts the values in a JSON value, up to a limit. */
function countValues(value: unknown, limit: number): number {
  if (value === undefined) return 0;
  let count = 1;
  if (typeof value !== "object" || value === null) return count;
  for (const item of Object.values(value)) {
    count += countValues(item, limit - count);
    if (count > limit) break;
  }
  return count;
}

const TOOL_NAMES: NameRule = { also: ".-", max: 128, separator: "_" };

/** Returns legal names that are unique per namespace. A second tool with a name is rejected. */
function nameTools(
  read: readonly ImportedTool[],
  session: ImportSession,
): ReadonlyMap<ImportedTool, string> {
  const names = new Map<ImportedTool, string>();
  const byNamespace = new Map<string | undefined, Map<string, ImportedTool>>();
  for (const imported of read) {
    const { namespace, sourceName, wantedName = sourceName } = imported;
    const wanted = once(byNamespace, namespace, () => new Map<string, ImportedTool>());
    const other = wanted.get(wantedName);
    if (other === undefined) wanted.set(wantedName, imported);
    else session.rejectTool(imported, "name", `the name is taken by the tool at "${other.path}"`);
  }
  for (const wanted of byNamespace.values()) {
    const legal = mapNames([...wanted.keys()], TOOL_NAMES);
    for (const [name, imported] of wanted) {
      const legalName = legal.get(name) ?? name;
      names.set(imported, legalName);
      if (legalName === imported.sourceName) continue;
      imported.provider.name = imported.sourceName;
      if (imported.wantedName !== undefined) continue;
      const problem = `"${clip(imported.sourceName)}" is not a valid name for a tool`;
      session.warn(imported, imported.path, "name", `${problem}; its name here is "${legalName}"`);
    }
  }
  return names;
}

export function readHints(value: unknown): ToolAnnotations {
  const hints: Record<string, boolean> = {};
  for (const hint of HINTS) {
    const flag = flagIn(value, hint);
    if (flag !== undefined) hints[hint] = flag;
  }
  return hints;
}

/** Adds MCP's cautious defaults for absent hints. */
function withDefaults(hints: ToolAnnotations): Required<ToolAnnotations> {
  const { readOnlyHint = false, destructiveHint = !readOnlyHint } = hints;
  const { idempotentHint = readOnlyHint, openWorldHint = true } = hints;
  return { readOnlyHint, destructiveHint, idempotentHint, openWorldHint };
}

function suggestRisk(hints: ToolAnnotations): RiskLevel {
  if (hints.destructiveHint === true) return "high";
  return hints.readOnlyHint === true ? "low" : "medium";
}
