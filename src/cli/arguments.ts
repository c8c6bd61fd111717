/**
 * The arguments of a tool, read from flags that follow from its schema: `--path notes.md`,
 * `--opts.depth 2`, `--tags a --tags b`, `--no-recursive`, `--data @file.json`.
 *
 * @module
 */

import { parseArgs } from "node:util";
import {
  detectDialect,
  indexSchemas,
  isOfType,
  ReferenceIndex,
  resolveAnywhere,
} from "../schema/mod.ts";
import {
  clip,
  describe,
  describeThrown,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  nearIds,
  setOwn,
  type Tool,
} from "../tool/mod.ts";
import { usageError } from "./terminal.ts";

/** Reads the file that an argument names by `@file`; `-` is standard input. */
export type ReadFile = (path: string) => Promise<string>;

/** A flag of a tool, for help and completion. */
export interface ToolFlag {
  /** Without the dashes: `opts.depth`. */
  readonly name: string;
  /** Describes its value, for people: `integer`, `asc|desc`. */
  readonly type: string;
  /** The values that it takes, where they are few. */
  readonly values: readonly string[];
  readonly isSwitch: boolean;
  readonly isRequired: boolean;
  readonly description: string;
}

/** How deep objects are taken apart into flags. Below that they are given as JSON. */
const MAX_FLAG_LEVELS = 4;
/** The maximum number of flags in help: a recursive schema has many. */
const MAX_FLAGS = 200;
/** The maximum depth of references and unions at one position. */
const MAX_PARTS = 64;

/** The flags of a tool, in the order of its schema. */
export function flagsOf(tool: Tool): readonly ToolFlag[] {
  const flags: ToolFlag[] = [];
  const walk = (place: Place, path: readonly string[], isNeeded: boolean): void => {
    for (const [name, child] of place.properties()) {
      if (flags.length >= MAX_FLAGS) return;
      const isRequired = isNeeded && place.requires(name);
      const at = [...path, name];
      if (at.length < MAX_FLAG_LEVELS && child.isStructure) walk(child, at, isRequired);
      else flags.push(flagOf(child, at.join("."), isRequired));
    }
  };
  walk(placeOf(tool), [], true);
  return flags;
}

function flagOf(place: Place, name: string, isRequired: boolean): ToolFlag {
  const { values } = place;
  const types = place.types.filter((type) => type !== "null");
  return {
    name,
    type: values.length > 0 && values.length <= 12
      ? values.join("|")
      : (types.length > 0 ? types : ["json"]).map((type) => place.typeName(type)).join("|"),
    values: place.isSwitch ? [] : values,
    isSwitch: place.isSwitch,
    isRequired,
    description: place.description,
  };
}

/** A value that a person enters. */
export interface AskedField {
  /** The name of the property; absent: the value is the whole content. */
  readonly name: string | undefined;
  readonly description: string;
  readonly isSwitch: boolean;
  readonly isRequired: boolean;
  readonly values: readonly string[];
  /** The default that the schema names. */
  readonly otherwise: unknown;
  /** Converts the entered text to the type of the schema, if possible. */
  convert(word: string): unknown;
}

/**
 * Returns the values to ask for, so that the answer fits a schema: its properties, or one value.
 */
export function askedFields(schema: JsonSchema): readonly AskedField[] {
  const root = rootOf(schema);
  const properties = root.properties();
  const places = properties.length > 0 ? properties : [[undefined, root] as const];
  return places.map(([name, place]) => ({
    name,
    description: place.description,
    isSwitch: place.isSwitch,
    isRequired: name === undefined || root.requires(name),
    values: place.isSwitch ? [] : place.values,
    otherwise: place.otherwise,
    convert: (word) => place.convert(word),
  }));
}

/**
 * Reads the words after a tool's id: flags, and JSON objects (`'{"depth": 2}'`, `@file.json`, `-`),
 * whose members the flags override. The dispatcher checks the arguments against the schema.
 *
 * @throws {CommandError} If a flag is unknown, or a file or its JSON cannot be read.
 */
export async function readArguments(
  tool: Tool,
  words: readonly string[],
  readFile: ReadFile,
): Promise<Record<string, unknown>> {
  const root = placeOf(tool);
  const found = new Map<string, FoundFlag>();
  const options: Record<string, { type: "string" | "boolean"; multiple: true }> = {};
  const isOwnJson = root.find("json") !== undefined;
  for (const word of words) {
    const [, name, value] = /^--([^=]+)(=.*)?$/s.exec(word) ?? [];
    if (word === "--") break;
    if (name === undefined) continue;
    const flag = !isOwnJson && name === "json" ? WHOLE : findFlag(tool, root, name);
    found.set(name, flag);
    // Once with "=", always with a value: `--flag=false`.
    const isSwitch = flag.place?.isSwitch === true && value === undefined &&
      options[name]?.type !== "string";
    options[name] = { type: isSwitch ? "boolean" : "string", multiple: true };
  }
  const { tokens } = parseWords(tool, words, options);
  const args: Record<string, unknown> = {};
  const given: [FoundFlag, string | boolean][] = [];
  for (const token of tokens) {
    if (token.kind === "positional") {
      Object.assign(args, await readObject(token.value, readFile));
    } else if (token.kind === "option") {
      const flag = found.get(token.name) ?? WHOLE;
      const value = token.value ?? flag.switchesOff !== true;
      if (flag === WHOLE) Object.assign(args, await readObject(String(value), readFile));
      else given.push([flag, value]);
    }
  }
  for (const [{ name, path, place }, value] of given) {
    const read = typeof value === "string" ? await place.read(value, `--${name}`, readFile) : value;
    setAt(args, path, read, place, name);
  }
  return args;
}

/** The words of a command line, taken apart by Node's rules. */
function parseWords(
  tool: Tool,
  words: readonly string[],
  options: Record<string, { type: "string" | "boolean"; multiple: true }>,
) {
  try {
    return parseArgs({
      args: [...words],
      options,
      allowPositionals: true,
      tokens: true,
    });
  } catch (error) {
    const why = describeThrown(error);
    const hint = why.includes("'--json")
      ? "; behind the id it is the arguments, and before it, it prints the result as JSON"
      : "";
    throw usageError(`Cannot call "${tool.id}": ${why}${hint}`, { cause: error });
  }
}

/** A flag that was written, and the place of its value in the arguments. */
interface FoundFlag {
  readonly name: string;
  /** True for `--no-…`. */
  readonly switchesOff?: boolean;
  readonly path: readonly string[];
  readonly place: Place;
}

/** `--json`: the arguments as a whole. */
const WHOLE = { name: "json", path: [], place: undefined } as unknown as FoundFlag;

function findFlag(tool: Tool, root: Place, word: string): FoundFlag {
  const found = root.find(word);
  if (found !== undefined) return { name: word, ...found };
  const switched = word.startsWith("no-") ? root.find(word.slice(3)) : undefined;
  if (switched?.place.isSwitch === true) {
    return { name: word.slice(3), switchesOff: true, ...switched };
  }
  const flags = flagsOf(tool).map(({ name }) => name);
  const near = nearIds(word, flags).map((name) => `--${name}`);
  const hint = near.length > 0
    ? `did you mean ${near.join(" or ")}?`
    : flags.length > 0
    ? `it has ${clip(flags.map((name) => `--${name}`).join(", "), 500)}`
    : "it takes no arguments";
  throw usageError(
    `Cannot call "${tool.id}": there is no flag --${clip(word)}; ${hint}${
      near.length > 0 ? "" : "; plue's own flags stand before the tool's id"
    }`,
  );
}

/** Reads an object of arguments: JSON, `@file` or `-`. */
async function readObject(word: string, readFile: ReadFile): Promise<object> {
  const isFile = word.startsWith("@") || word === "-";
  let value: unknown;
  try {
    value = JSON.parse(isFile ? await readFile(word.replace(/^@/, "")) : word);
  } catch (cause) {
    throw usageError(
      isFile
        ? `Cannot read the arguments in "${clip(word)}": ${describeThrown(cause)}`
        : `Cannot read ${
          describe(word)
        }: arguments are flags such as --name value, a JSON object, ` +
          "@file.json, or - for standard input",
      { cause },
    );
  }
  if (isObject(value)) return value;
  throw usageError(`Cannot read the arguments: they must be a JSON object, not ${describe(value)}`);
}

/** Sets a value at its position. Items of a list are appended to earlier ones. */
function setAt(
  args: Record<string, unknown>,
  path: readonly string[],
  value: unknown,
  place: Place,
  name: string,
): void {
  let target: Record<string, unknown> = args;
  for (const [at, step] of path.slice(0, -1).entries()) {
    const isList = /^\d+$/.test(path[at + 1] ?? "") && !isObject(target[step]);
    const next = Object.hasOwn(target, step) ? target[step] : undefined;
    const inner = typeof next === "object" && next !== null ? next : isList ? [] : {};
    setOwn(target, step, inner);
    target = inner as Record<string, unknown>;
  }
  const last = path.at(-1) ?? name;
  const before = Object.hasOwn(target, last) ? target[last] : undefined;
  const isMore = place.takes("array") && Array.isArray(before) && Array.isArray(value);
  setOwn(target, last, isMore ? [...before, ...value] : value);
}

function placeOf({ parameters }: Tool): Place {
  return rootOf(parameters);
}

function rootOf(schema: JsonSchema): Place {
  const index = new ReferenceIndex(schema, detectDialect(schema));
  indexSchemas(index, schema);
  return new Place(schema, index);
}

/** A place in the arguments, with every schema that speaks of it: references and unions resolved. */
class Place {
  readonly #parts: readonly JsonSchemaObject[];
  readonly #index: ReferenceIndex;

  constructor(schema: unknown, index: ReferenceIndex) {
    const parts = new Set<JsonSchemaObject>();
    const collect = (one: unknown): void => {
      if (!isObject(one) || parts.has(one) || parts.size >= MAX_PARTS) return;
      parts.add(one);
      const { $ref: ref } = one;
      if (typeof ref === "string") collect(resolveAnywhere(index, ref)?.schema);
      for (const keyword of ["allOf", "anyOf", "oneOf"]) {
        const members = one[keyword];
        if (Array.isArray(members)) members.forEach(collect);
      }
    };
    collect(schema);
    this.#parts = [...parts];
    this.#index = index;
  }

  /** The types that are named; none if any type will do. */
  get types(): readonly string[] {
    return [...new Set(this.#parts.flatMap(({ type }) => (type ?? []) as string | string[]))];
  }

  /** The values of enums and constants that can be written as a word. */
  get values(): readonly string[] {
    return this.#constants().map(String);
  }

  get description(): string {
    for (const part of this.#parts) {
      const { description, title } = part;
      for (const text of [description, title]) if (typeof text === "string") return text;
    }
    return "";
  }

  get otherwise(): unknown {
    return this.#parts.find((part) => "default" in part)?.["default"];
  }

  /** Returns true if a flag needs no value. */
  get isSwitch(): boolean {
    return this.types.every((type) => type === "boolean" || type === "null") &&
      this.types.includes("boolean");
  }

  /** Returns true if it is an object whose properties have flags. */
  get isStructure(): boolean {
    return this.takes("object") && !this.takes("array") && this.properties().length > 0;
  }

  takes(type: string): boolean {
    return this.types.includes(type) || type === "object" && this.properties().length > 0;
  }

  requires(name: string): boolean {
    return this.#parts.some(({ required }) => Array.isArray(required) && required.includes(name));
  }

  properties(): readonly (readonly [name: string, place: Place])[] {
    const names = new Set(
      this.#parts.flatMap(({ properties }) => isObject(properties) ? Object.keys(properties) : []),
    );
    return [...names].map((name) => [name, this.#child(name)] as const)
      .filter((entry): entry is readonly [string, Place] => entry[1] !== undefined);
  }

  /** Finds the position of a flag by its name: exactly, or in another case. */
  find(word: string): Omit<FoundFlag, "name"> | undefined {
    const names = this.properties().map(([name]) => name);
    // A property may have a dot in its name.
    const [name = undefined] = [
      ...names.filter((one) => one === word),
      ...names.filter((one) => word.startsWith(`${one}.`)).sort((a, b) => b.length - a.length),
      ...names.filter((one) => plain(one) === plain(word)),
      ...names.filter((one) => plain(one) === plain(word.split(".")[0] ?? "")),
    ];
    const step = name ?? word.split(".")[0] ?? "";
    const child = this.#child(step);
    if (child === undefined) return undefined;
    const isWhole = name !== undefined && (name === word || plain(name) === plain(word));
    const rest = isWhole || word === step
      ? ""
      : word.slice(word.startsWith(`${step}.`) ? step.length + 1 : word.indexOf(".") + 1);
    if (rest === "") return { path: [step], place: child };
    const below = child.find(rest);
    return below && { path: [step, ...below.path], place: below.place };
  }

  /** Reads a word, or the file that it names. */
  async read(word: string, flag: string, readFile: ReadFile): Promise<unknown> {
    if (word.startsWith("@@")) return this.convert(word.slice(1));
    if (!word.startsWith("@")) return this.convert(word);
    try {
      return this.convert(await readFile(word.slice(1)));
    } catch (cause) {
      throw usageError(
        `Cannot read the file of ${flag}: ${describeThrown(cause)}; a value that begins with "@" ` +
          'is written "@@…"',
        { cause },
      );
    }
  }

  /** Returns the name of a type in help. */
  typeName(type: string): string {
    if (type !== "array") return type;
    const { types } = this.#items();
    return types.length === 1 ? `${types[0]}…` : "array";
  }

  /** Converts a word to the type of the schema, if possible. */
  convert(word: string): unknown {
    if (this.takes("array")) {
      const list = parsed(word);
      return Array.isArray(list) ? list : [this.#items().convert(word)];
    }
    const constant = this.#constants().find((value) => String(value) === word);
    if (constant !== undefined) return constant;
    const { types } = this;
    const value = parsed(word);
    const isWanted = types.some((type) => type !== "string" && isOfType(type, value)) ||
      isObject(value) && this.takes("object");
    if (isWanted) return value;
    return types.length === 0 && value !== undefined ? value : word;
  }

  /** The constants that are words, numbers, true, false or null. */
  #constants(): readonly unknown[] {
    const all = this.#parts.flatMap((part) => [
      ...(Array.isArray(part["enum"]) ? part["enum"] : []),
      ...("const" in part ? [part["const"]] : []),
    ]);
    return [...new Set(all)].filter((value) => typeof value !== "object" || value === null);
  }

  #items(): Place {
    return this.#child("0") ?? new Place({}, this.#index);
  }

  /** The place of a property, or of a list's item. */
  #child(name: string): Place | undefined {
    const schemas = this.#parts.flatMap((part) => {
      const { properties, items, prefixItems, additionalProperties: other } = part;
      if (isObject(properties) && Object.hasOwn(properties, name)) return [properties[name]];
      if (/^\d+$/.test(name) && this.types.includes("array")) {
        const tuple = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
        return [tuple[Number(name)] ?? (isObject(items) ? items : {})];
      }
      if (isObject(part["patternProperties"])) return Object.values(part["patternProperties"]);
      return isObject(other) || other === true ? [other] : [];
    });
    return schemas.length === 0 ? undefined : new Place({ allOf: schemas }, this.#index);
  }
}

/** A name without its case and its separators: `maxResults` is `--max-results`. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, "");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
