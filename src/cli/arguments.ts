/**
 * The arguments of a tool, read from flags that follow from its schema: `--path notes.md`,
 * `--opts.depth 2`, `--tags a --tags b`, `--no-recursive`, `--data @file.json`.
 */

import { parseArgs } from "node:util";
import { isOfType } from "../schema/mod.ts";
import { FormSchema, type Notes, type Place as FormPlace, type Shape } from "../schema/form.ts";
import {
  clip,
  describe,
  describeThrown,
  isObject,
  type JsonSchema,
  nearIds,
  setOwn,
  type Tool,
} from "../tool/mod.ts";
import { parsedJson, usageError } from "./terminal.ts";

/** Reads the file that an argument names by `@file`; `-` is standard input. */
export type ReadFile = (path: string) => Promise<string>;

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

export function flagsOf(tool: Tool): readonly ToolFlag[] {
  const flags: ToolFlag[] = [];
  const walk = (place: Argument, path: readonly string[], isNeeded: boolean): void => {
    for (const [name, child] of place.properties) {
      if (flags.length >= MAX_FLAGS) return;
      const isRequired = isNeeded && place.requires(name);
      const at = [...path, name];
      if (at.length < MAX_FLAG_LEVELS && child.isStructure) walk(child, at, isRequired);
      else flags.push(flagOf(child, at.join("."), isRequired));
    }
  };
  walk(rootOf(tool.parameters), [], true);
  return flags;
}

function flagOf(place: Argument, name: string, isRequired: boolean): ToolFlag {
  const { values } = place;
  const types = place.types.filter((type) => type !== "null");
  return {
    name,
    type: values.length > 0 && values.length <= 12
      ? values.join("|")
      : (types.length > 0 ? types : ["json"]).map((type) => place.typeName(type)).join("|"),
    values,
    isSwitch: place.isSwitch,
    isRequired,
    description: place.description,
  };
}

export interface AskedField {
  /** The name of the property; absent: the value is the whole content. */
  readonly name: string | undefined;
  readonly argument: Argument;
  readonly isRequired: boolean;
}

/**
 * Returns the values to ask for, so that the answer fits a schema: its properties, or one value.
 */
export function askedFields(schema: JsonSchema): readonly AskedField[] {
  const root = rootOf(schema);
  const { properties } = root;
  return properties.size === 0
    ? [{ name: undefined, argument: root, isRequired: true }]
    : [...properties].map(([name, argument]) => (
      { name, argument, isRequired: root.requires(name) }
    ));
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
  const root = rootOf(tool.parameters);
  const found = new Map<string, FoundFlag>();
  const options: WordOptions = {};
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

type WordOptions = Record<string, { type: "string" | "boolean"; multiple: true }>;

/** Parses the words of a command line by Node's rules. */
function parseWords(tool: Tool, words: readonly string[], options: WordOptions) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true, tokens: true });
  } catch (cause) {
    const why = describeThrown(cause);
    const hint = why.includes("'--json")
      ? "; behind the id it is the arguments, and before it, it prints the result as JSON"
      : "";
    throw usageError(`Cannot call "${tool.id}": ${why}${hint}`, { cause });
  }
}

/** A flag that was written, and the place of its value in the arguments. */
interface FoundFlag {
  readonly name: string;
  /** True for `--no-…`. */
  readonly switchesOff?: boolean;
  readonly path: readonly string[];
  readonly place: Argument;
}

/** `--json`: the arguments as a whole. */
const WHOLE = { name: "json", path: [], place: undefined } as unknown as FoundFlag;

function findFlag(tool: Tool, root: Argument, word: string): FoundFlag {
  const found = root.find(word);
  if (found !== undefined) return { name: word, ...found };
  const switched = word.startsWith("no-") ? root.find(word.slice(3)) : undefined;
  if (switched?.place.isSwitch === true) {
    return { name: word.slice(3), switchesOff: true, ...switched };
  }
  const flags = flagsOf(tool).map(({ name }) => name);
  const near = nearIds(word, flags).map((name) => `--${name}`);
  const all = clip(flags.map((name) => `--${name}`).join(", "), 500);
  const hint = near.length > 0
    ? `did you mean ${near.join(" or ")}?`
    : `${all === "" ? "it takes no arguments" : `it has ${all}`}; ` +
      "plue's own flags stand before the tool's id";
  throw usageError(`Cannot call "${tool.id}": there is no flag --${clip(word)}; ${hint}`);
}

async function readObject(word: string, readFile: ReadFile): Promise<object> {
  const isFile = word.startsWith("@") || word === "-";
  let value: unknown;
  try {
    value = JSON.parse(isFile ? await readFile(word.replace(/^@/, "")) : word);
  } catch (cause) {
    const forms = "flags such as --name value, a JSON object, @file.json, or - for standard input";
    throw usageError(
      isFile
        ? `Cannot read the arguments in "${clip(word)}": ${describeThrown(cause)}`
        : `Cannot read ${describe(word)}: arguments are ${forms}`,
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
  place: Argument,
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

function rootOf(schema: JsonSchema): Argument {
  const form = new FormSchema(schema);
  return new Argument(form, [form.root]);
}

/** A value in the arguments, with all alternatives of its schema. */
export class Argument {
  readonly #form: FormSchema;
  readonly #shapes: readonly Shape[];
  readonly #notes: readonly Notes[];
  #properties: ReadonlyMap<string, Argument> | undefined;

  /** @param places Its schemas, each of which is an alternative. */
  constructor(form: FormSchema, places: readonly FormPlace[]) {
    const alternatives = places.flatMap((place) => form.alternativesOf(place));
    this.#form = form;
    this.#shapes = alternatives.map(([, shape]) => shape);
    this.#notes = alternatives.map(([place]) => form.notesOf(place));
  }

  /** The types that are named; none if any type will do. */
  get types(): readonly string[] {
    return [...new Set(this.#shapes.flatMap(typesOf))];
  }

  /** The values of enums and constants that can be written as a word. */
  get values(): readonly string[] {
    return this.#constants().map(String);
  }

  get description(): string {
    const [text = ""] = this.#notes.flatMap(({ description, title }) => description ?? title ?? []);
    return text;
  }

  get otherwise(): unknown {
    return this.#notes.find((notes) => notes.default !== undefined)?.default;
  }

  get isSwitch(): boolean {
    return this.#shapes.every(({ kind }) => kind === "boolean" || kind === "null") &&
      this.types.includes("boolean");
  }

  /** Returns true if it is an object whose properties have flags. */
  get isStructure(): boolean {
    return !this.takes("array") && this.properties.size > 0;
  }

  takes(type: string): boolean {
    return this.types.includes(type);
  }

  requires(name: string): boolean {
    return this.#shapes.some((shape) => shape.kind === "object" && shape.required.has(name));
  }

  get properties(): ReadonlyMap<string, Argument> {
    const names = this.#shapes.flatMap((shape) =>
      shape.kind === "object" ? [...shape.properties.keys()] : []
    );
    return this.#properties ??= new Map(
      [...new Set(names)].map((name) => [name, new Argument(this.#form, this.#below(name))]),
    );
  }

  /** Finds the position of a flag by its name: exactly, or in another case. */
  find(word: string): Omit<FoundFlag, "name"> | undefined {
    const names = [...this.properties.keys()];
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

  async read(word: string, flag: string, readFile: ReadFile): Promise<unknown> {
    if (word.startsWith("@@")) return this.convert(word.slice(1));
    if (!word.startsWith("@")) return this.convert(word);
    try {
      return this.convert(await readFile(word.slice(1)));
    } catch (cause) {
      const hint = 'a value that begins with "@" is written "@@…"';
      throw usageError(`Cannot read the file of ${flag}: ${describeThrown(cause)}; ${hint}`, {
        cause,
      });
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
      const list = parsedJson(word);
      return Array.isArray(list) ? list : [this.#items().convert(word)];
    }
    const constant = this.#constants().find((value) => String(value) === word);
    if (constant !== undefined) return constant;
    const { types } = this;
    const value = parsedJson(word);
    const isWanted = types.some((type) => type !== "string" && isOfType(type, value)) ||
      isObject(value) && this.takes("object");
    if (isWanted) return value;
    return types.length === 0 && value !== undefined ? value : word;
  }

  /** The constants that are words, numbers, true, false or null. */
  #constants(): readonly unknown[] {
    const all = this.#shapes.flatMap((shape) => shape.kind === "choice" ? shape.choices : []);
    return [...new Set(all.map(({ value }) => value))]
      .filter((value) => typeof value !== "object" || value === null);
  }

  #items(): Argument {
    return new Argument(this.#form, this.#below("0"));
  }

  /** Returns the property, or the item of the list, of that name. */
  #child(name: string): Argument | undefined {
    const places = this.#below(name);
    return places.length === 0 ? undefined : new Argument(this.#form, places);
  }

  #below(name: string): readonly FormPlace[] {
    return this.#shapes.flatMap((shape) => {
      if (shape.kind === "list") {
        return /^\d+$/.test(name) ? [shape.first[Number(name)] ?? shape.rest ?? []] : [];
      }
      if (shape.kind !== "object") return [];
      const { properties, rest = [] } = shape;
      const own = properties.get(name);
      // A form offers any name here, but a mistyped flag must be reported.
      return own !== undefined ? [own] : rest.length > 0 ? [rest] : [];
    });
  }
}

/** Returns the types of JSON that an input can give; an empty list if it can give any. */
function typesOf(shape: Shape): readonly string[] {
  switch (shape.kind) {
    case "text":
      return ["string"];
    case "number":
      return [shape.integer ? "integer" : "number"];
    case "list":
      return ["array"];
    case "choice":
      return ["string", "number", "boolean", "null"].filter((type) =>
        shape.choices.some(({ value }) => isOfType(type, value))
      );
    case "json":
    case "variants":
      return [];
    default:
      return [shape.kind];
  }
}

/** A name without its case and its separators: `maxResults` is `--max-results`. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, "");
}
