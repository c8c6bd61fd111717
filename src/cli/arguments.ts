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

/** A flag of a tool, or an input of a prompt. */
export interface Flag {
  /** The name without the dashes: `opts.depth`. */
  readonly name: string;
  readonly argument: Argument;
  readonly isRequired: boolean;
}

/** The number of levels of objects whose members are flags. Deeper objects are passed as JSON. */
const MAX_FLAG_LEVELS = 4;
/** The maximum number of flags in help: a recursive schema has many. */
const MAX_FLAGS = 200;

export function flagsOf(tool: Tool): readonly Flag[] {
  const flags: Flag[] = [];
  const walk = (parent: Argument, path: readonly string[], isNeeded: boolean): void => {
    for (const [name, argument] of parent.properties) {
      if (flags.length >= MAX_FLAGS) return;
      const isRequired = isNeeded && parent.requires(name);
      const at = [...path, name];
      const isStructure = !argument.takes("array") && argument.properties.size > 0;
      if (at.length < MAX_FLAG_LEVELS && isStructure) walk(argument, at, isRequired);
      else flags.push({ name: at.join("."), argument, isRequired });
    }
  };
  walk(rootOf(tool.parameters), [], true);
  return flags;
}

/** Returns the inputs of a prompt for a schema: its properties, or one value without a name. */
export function askedFields(
  schema: JsonSchema,
): readonly (Omit<Flag, "name"> & { readonly name: string | undefined })[] {
  const root = rootOf(schema);
  if (root.properties.size === 0) return [{ name: undefined, argument: root, isRequired: true }];
  return Array.from(root.properties, ([name, argument]) => (
    { name, argument, isRequired: root.requires(name) }
  ));
}

/**
 * Reads the words after a tool's id: flags, and JSON objects (`'{"depth": 2}'`, `@file.json`, `-`),
 * whose members the flags override. The dispatcher checks the arguments against the schema.
 */
export async function readArguments(
  tool: Tool,
  words: readonly string[],
  readFile: ReadFile,
): Promise<Record<string, unknown>> {
  const root = rootOf(tool.parameters);
  const found = new Map<string, FoundFlag | undefined>();
  const options: WordOptions = {};
  const isOwnJson = root.find("json") !== undefined;
  for (const word of words) {
    const [, name, value] = /^--([^=]+)(=.*)?$/s.exec(word) ?? [];
    if (word === "--") break;
    if (name === undefined) continue;
    // `--json` contains all arguments as one object.
    const flag = !isOwnJson && name === "json" ? undefined : findFlag(tool, root, name);
    found.set(name, flag);
    // A switch can have a value after "=": `--flag=false`.
    const isSwitch = flag?.argument.isSwitch === true && value === undefined &&
      options[name]?.type !== "string";
    options[name] = { type: isSwitch ? "boolean" : "string", multiple: true };
  }
  const { tokens } = parseWords(tool, words, options);
  const args: Record<string, unknown> = {};
  const flags: [FoundFlag, string | boolean][] = [];
  for (const token of tokens) {
    if (token.kind === "positional") {
      Object.assign(args, await readObject(token.value, readFile));
    } else if (token.kind === "option") {
      const flag = found.get(token.name);
      if (flag !== undefined) flags.push([flag, token.value ?? !flag.switchesOff]);
      else Object.assign(args, await readObject(token.value ?? "", readFile));
    }
  }
  for (const [{ name, path, argument }, value] of flags) {
    const isText = typeof value === "string";
    const read = isText ? await argument.read(value, `--${name}`, readFile) : value;
    setAt(args, path, read, argument);
  }
  return args;
}

type WordOptions = Record<string, { type: "string" | "boolean"; multiple: true }>;

function parseWords(tool: Tool, words: readonly string[], options: WordOptions) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true, tokens: true });
  } catch (cause) {
    const why = describeThrown(cause);
    const hint = why.includes("'--json")
      ? "; --json after the id has the arguments, and --json before the id prints JSON"
      : "";
    throw usageError(`Cannot call "${tool.id}": ${why}${hint}`, { cause });
  }
}

interface Found {
  readonly path: readonly string[];
  readonly argument: Argument;
}

interface FoundFlag extends Found {
  readonly name: string;
  /** True for `--no-…`. */
  readonly switchesOff: boolean;
}

function findFlag(tool: Tool, root: Argument, word: string): FoundFlag {
  const found = root.find(word);
  if (found !== undefined) return { name: word, switchesOff: false, ...found };
  const switched = word.startsWith("no-") ? root.find(word.slice(3)) : undefined;
  if (switched?.argument.isSwitch === true) {
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
  argument: Argument,
): void {
  let target: Record<string, unknown> = args;
  for (const [at, step] of path.slice(0, -1).entries()) {
    const isList = /^\d+$/.test(path[at + 1] ?? "") && !isObject(target[step]);
    const next = Object.hasOwn(target, step) ? target[step] : undefined;
    const inner = typeof next === "object" && next !== null ? next : isList ? [] : {};
    setOwn(target, step, inner);
    target = inner as Record<string, unknown>;
  }
  const last = path.at(-1) ?? "";
  const before = Object.hasOwn(target, last) ? target[last] : undefined;
  const isMore = argument.takes("array") && Array.isArray(before) && Array.isArray(value);
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

  /** The types of the schema; empty if any type is valid. */
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

  /** Describes the value, for people: `integer`, `string…`, `asc|desc`. */
  get type(): string {
    const { values } = this;
    if (values.length > 0 && values.length <= 12) return values.join("|");
    const types = this.types.filter((type) => type !== "null").map((type) => {
      const items = type === "array" ? this.#items().types : [];
      return items.length === 1 ? `${items[0]}…` : type;
    });
    return types.join("|") || "json";
  }

  /** Returns true if a flag needs no value. */
  get isSwitch(): boolean {
    return this.#shapes.every(({ kind }) => kind === "boolean" || kind === "null") &&
      this.types.includes("boolean");
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
  find(word: string): Found | undefined {
    const names = [...this.properties.keys()];
    // The name of a property may contain a dot.
    const [name = undefined] = [
      ...names.filter((one) => one === word),
      ...names.filter((one) => word.startsWith(`${one}.`)).sort((a, b) => b.length - a.length),
      ...names.filter((one) => plain(one) === plain(word)),
      ...names.filter((one) => plain(one) === plain(word.split(".")[0] ?? "")),
    ];
    const step = name ?? word.split(".")[0] ?? "";
    const places = this.#below(step);
    if (places.length === 0) return undefined;
    const argument = new Argument(this.#form, places);
    const isWhole = name !== undefined && (name === word || plain(name) === plain(word));
    const rest = isWhole || word === step
      ? ""
      : word.slice(word.startsWith(`${step}.`) ? step.length + 1 : word.indexOf(".") + 1);
    if (rest === "") return { path: [step], argument };
    const below = argument.find(rest);
    return below && { ...below, path: [step, ...below.path] };
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

  /** Returns the schemas of the property, or of the list item, of that name. */
  #below(name: string): readonly FormPlace[] {
    return this.#shapes.flatMap((shape) => {
      if (shape.kind === "list") {
        return /^\d+$/.test(name) ? [shape.first[Number(name)] ?? shape.rest ?? []] : [];
      }
      if (shape.kind !== "object") return [];
      const { properties, rest = [] } = shape;
      const own = properties.get(name);
      // The schema allows any name, but a mistyped flag must be reported.
      return own !== undefined ? [own] : rest.length > 0 ? [rest] : [];
    });
  }
}

/** Returns the types of JSON that an input can give; an empty list if it can give any. */
function typesOf(shape: Shape): readonly string[] {
  if (shape.kind === "number") return [shape.integer ? "integer" : "number"];
  if (shape.kind === "choice") {
    return ["string", "number", "boolean", "null"].filter((type) =>
      shape.choices.some(({ value }) => isOfType(type, value))
    );
  }
  return TYPES[shape.kind] ?? [shape.kind];
}
const TYPES: { readonly [Kind in Shape["kind"]]?: readonly string[] } = {
  text: ["string"],
  list: ["array"],
  json: [],
  variants: [],
};

/** Returns a name without its case and separators, so that `--max-results` is `maxResults`. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, "");
}
