/** The tools of a toolset as declarations of TypeScript, for the model that writes a program. */

import { countTokens, type TokenCounter } from "../../finding/mod.ts";
import { FunctionDefinition, isToolset, type Toolset } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { isObject, type JsonSchema, type Tool } from "../../tool/mod.ts";
import { SCALARS } from "../../finding/signature.ts";
import * as kit from "../../formats/provider_kit.ts";
import { detectDialect, listOf } from "../../schema/mod.ts";

/** Options for {@linkcode toolsAsTypeScript}. */
export interface ToolTypesOptions {
  /**
   * The maximum number of tokens, 100 or above; by default there is no limit. The tools with the
   * shortest declarations are declared. A comment at the end names others, as far as there is
   * space, and has the number of the rest.
   */
  readonly maxTokens?: number | undefined;
  /** Counts the tokens of a text. By default an estimate of OpenAI's o200k. */
  readonly count?: TokenCounter | undefined;
}

const ACTION = "write the tools as TypeScript";

const CHECKS = {
  maxTokens: check.wholeFrom(100),
  count: check.checkFunction as check.Check<unknown> as check.Check<TokenCounter>,
} satisfies { readonly [Field in keyof ToolTypesOptions]-?: check.Check };

const HEAD = `/** The error of a failed call. */
declare class ToolError extends Error {
  /** The kind of failure, such as "invalid_arguments", "denied" or "timeout". */
  readonly code: string;
}
`;

const ABOUT = "/** All calls are asynchronous. A failed call throws a ToolError. */\n";

interface Declaration {
  readonly tool: Tool;
  readonly comment: string;
  /** The arguments and the result: `(args: …): Promise<…>;`. */
  readonly signature: string;
  readonly types: readonly string[];
}

/**
 * Writes tools as declarations of TypeScript: a global `tools` with a member for each namespace,
 * whose functions take the arguments and return a promise of the result. Tools without a namespace
 * are members of `tools` itself. Schemas that refer to themselves, or are shared, are named types.
 *
 * The same tools and options give the same text, in any order of registration. The text compiles
 * under `strict` for any names, descriptions and schemas: they cannot end a comment or add a
 * declaration. Rules that a type cannot express are in comments or omitted, so a call may still
 * fail with `invalid_arguments`. Values that a schema does not restrict are `unknown`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { buildToolset, defineTool } from "@plue/tools";
 * import { toolsAsTypeScript } from "@plue/tools/code";
 *
 * const tool = defineTool({
 *   name: "close",
 *   description: "Closes an issue.",
 *   parameters: { type: "object", properties: { reason: { enum: ["done", "duplicate"] } } },
 *   returns: { type: "boolean" },
 * });
 * const text = toolsAsTypeScript(buildToolset([tool]));
 * assert.match(text, /close\(args\?: \{ reason\?: "done" \| "duplicate" \}\): Promise<boolean>;/);
 * ```
 *
 * @param toolset The toolset, of which the available tools are written. Of a bridge, the tools that
 * it gives access to.
 * @throws {TypeError} If an option is unknown or invalid.
 */
export function toolsAsTypeScript(toolset: Toolset, options: ToolTypesOptions = {}): string {
  const { maxTokens, count = countTokens } = check.readFields(ACTION, options, CHECKS);
  if (!isToolset(toolset)) check.fail(ACTION, "pass a toolset, such as registry.select()");
  const named: NamedTypes = new Map();
  const tools = (toolset.bridge?.target ?? toolset).available();
  const all = tools.map((tool) => declareTool(tool, named));
  const bySize = all.toSorted((a, b) => a.signature.length - b.signature.length);
  const write = (declared: number, names: number): string => {
    const chosen = new Set(bySize.slice(0, declared));
    const left = all.filter((declaration) => !chosen.has(declaration));
    return writeFile(all.filter((one) => chosen.has(one)), named) + note(left, names);
  };
  const fits = (declared: number, names: number): boolean =>
    maxTokens === undefined || count(write(declared, names)) <= maxTokens;
  if (fits(all.length, 0)) return write(all.length, 0);
  const declared = largest(all.length - 1, (number) => fits(number, 0));
  return write(declared, largest(all.length - declared, (number) => fits(declared, number)));
}

/** Returns the largest number from 0 to `most` that fits, if all numbers below it fit, too. */
function largest(most: number, fits: (number: number) => boolean): number {
  let low = 0;
  let high = most;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

function declareTool(tool: Tool, named: NamedTypes): Declaration {
  const { name, namespace, description, deprecated, parameters, returns = true } = tool;
  const pad = namespace === undefined ? "  " : "    ";
  const args = writeType(parameters, `${name}_arguments`, pad, named);
  const result = writeType(returns, `${name}_result`, pad, named);
  const takesNone = "properties" in parameters && parameters["additionalProperties"] !== true &&
    /^\{ \[key: string\]: (never|unknown) \}$/.test(args.text);
  const mark = FunctionDefinition.fromTool(tool).canCallWithoutParameters ? "?" : "";
  return {
    tool,
    comment: `${pad}${comment({ description, deprecated }, pad, `\n${pad}`)}`,
    signature: `(${takesNone ? "" : `args${mark}: ${args.text}`}): Promise<${result.text}>;`,
    types: [...args.names, ...result.names],
  };
}

function note(left: readonly Declaration[], names: number): string {
  if (left.length === 0) return "";
  const ids = left.slice(0, names).map(({ tool }) => tool.id).join(", ");
  const others = left.length - names;
  const rest = names === 0 ? `${others} tools` : others === 0 ? "" : ` and ${others} other tools`;
  return `// Found by search_tools, without a declaration here: ${ids}${rest}.\n`;
}

function writeFile(declarations: readonly Declaration[], named: NamedTypes): string {
  const names = new Set(declarations.flatMap(({ types }) => types));
  const types = [...names].sort().map((name) => named.get(name)).join("");
  const groups = check.groupBy(declarations, ({ tool }) => tool.namespace ?? tool.name);
  const members = Array.from(groups, ([name, group]) => {
    const [{ tool }] = group as [Declaration];
    const isTool = group.length === 1 && tool.namespace === undefined;
    const written = group.map(({ tool, comment, signature }) => {
      // A tool with the name of a namespace becomes a function whose members are the other tools.
      const name = isTool || tool.namespace !== undefined ? memberName(tool.name) : "";
      return `${comment}${name}${signature}\n`;
    }).join("");
    return isTool ? written : `  ${memberName(name)}: {\n${written}  };\n`;
  });
  const body = members.length === 0 ? "{}" : `{\n${members.join("")}}`;
  const space = types === "" ? "" : `declare namespace ${NAMED} {\n${types}}\n`;
  return `${HEAD}${space}${ABOUT}declare const tools: ${body};\n`;
}

// Schemas as types. Schemas that are referenced become named types.

const NAMED = "Types";

/** The maximum length of a comment, and of a literal, in characters. */
const MAX_COMMENT = 2_000;
const MAX_LITERAL = 400;

/** The keywords that a type cannot express. They are tags of a comment. */
const TAGS = ("format pattern default minimum maximum exclusiveMinimum exclusiveMaximum " +
  "multipleOf minLength maxLength minItems maxItems").split(" ");

/** The declarations of the named types of a file, by name. */
type NamedTypes = Map<string, string>;

/** Writes a schema as a type, and adds the types that it needs to `named`. */
function writeType(schema: JsonSchema, name: string, pad: string, named: NamedTypes) {
  const trace = new kit.Trace();
  const dialect = detectDialect(schema);
  const plain = dialect === "2020-12" ? schema : kit.normalizeDraft(trace, schema, dialect);
  const root = kit.hoistReferences(trace, plain);
  for (let salt = 0;; salt++) {
    // If another schema has a different definition of a name, all names get a hash of this one.
    const suffix = salt === 0 ? "" : `_${check.fnv1a(JSON.stringify(root) + salt).toString(16)}`;
    const writer = new SchemaWriter(root, name, suffix);
    const text = writer.write(root, pad);
    const added = [...writer.definitions];
    if (added.some(([key, type]) => (named.get(key) ?? type) !== type)) continue;
    for (const [key, type] of added) named.set(key, type);
    return { text, names: added.map(([key]) => key) };
  }
}

/** Writes the parts of one schema, which has references to its root and to its `$defs` only. */
class SchemaWriter {
  /** The declarations of the referenced schemas, by the name of the type. */
  readonly definitions: NamedTypes = new Map();
  readonly #named: Map<unknown, readonly [name: string, schema: check.JsonSchemaObject]> =
    new Map();
  readonly #root: JsonSchema;
  readonly #name: string;
  readonly #suffix: string;

  constructor(root: JsonSchema, name: string, suffix: string) {
    this.#root = root;
    this.#name = name;
    this.#suffix = suffix;
  }

  write(schema: unknown, pad: string): string {
    const type = this.type(schema, pad);
    // The loop also reaches the definitions that it adds. Recursion would exceed the stack.
    for (const [name, target] of this.#named.values()) {
      const text = `${comment(target, "  ", "\n  ")}type ${name} = ${this.type(target, "  ")}`;
      this.definitions.set(name, `  ${text};\n`);
    }
    return type;
  }

  type(schema: unknown, pad: string): string {
    if (!isObject(schema)) return schema === false ? "never" : "unknown";
    const { $ref, allOf, anyOf, oneOf } = schema;
    const inner = (member: unknown): string => this.type(member, pad);
    const parts = [
      this.#reference($ref, pad),
      this.#own(schema, pad),
      ...listOf(allOf).map(inner),
      ...[anyOf, oneOf].map((list) => Array.isArray(list) ? union(list, inner) : "unknown"),
    ];
    // A part without a type, such as a list of required properties, does not narrow the others.
    const narrow = [...new Set(parts)].filter((part) => part !== "unknown");
    return narrow.length < 2 ? narrow[0] ?? "unknown" : narrow.map(group).join(" & ");
  }

  /** Writes the keywords of a schema without its references and compositions. */
  #own(schema: check.JsonSchemaObject, pad: string): string {
    const { type, enum: values, items, prefixItems, properties } = schema;
    if (Object.hasOwn(schema, "const")) return literal(schema["const"]);
    if (Array.isArray(values)) return union(values, literal);
    if (Array.isArray(type)) return union(type, (one) => this.#own({ ...schema, type: one }, pad));
    if (typeof type === "string" && Object.hasOwn(SCALARS, type)) return SCALARS[type] as string;
    if (type === "object" || (type === undefined && isObject(properties))) {
      return this.#object(schema, pad);
    }
    if (Array.isArray(prefixItems)) return this.#tuple(prefixItems, schema, pad);
    return type === "array" ? this.#list(items, pad) : "unknown";
  }

  #list(items: unknown, pad: string): string {
    return `${group(this.type(items, `${pad}  `))}[]`;
  }

  #tuple(prefix: readonly unknown[], schema: check.JsonSchemaObject, pad: string): string {
    const { minItems = 0, items = true } = schema;
    const members = prefix.map((item, index) =>
      `${group(this.type(item, `${pad}  `))}${index < Number(minItems) ? "" : "?"}`
    );
    if (items !== false) members.push(`...${this.#list(items, pad)}`);
    return `[${members.join(", ")}]`;
  }

  #object(schema: check.JsonSchemaObject, pad: string): string {
    const inside = `${pad}  `;
    const inner = (member: unknown): string => this.type(member, inside);
    const required = kit.requiredBy(schema);
    const properties = kit.mapOf(schema["properties"]);
    const names = new Set([...Object.keys(properties), ...required].map(String));
    const members = Array.from(names, (name) => {
      const property = Object.hasOwn(properties, name) ? properties[name] : true;
      const mark = required.has(name) ? "" : "?";
      return `${comment(property, inside)}${memberName(name)}${mark}: ${inner(property)}`;
    });
    const patterns = Object.values(kit.mapOf(schema["patternProperties"]));
    const isMap = names.size === 0;
    const { additionalProperties: more = isMap && patterns.length === 0 } = schema;
    const others = [...patterns, more].filter((one) => one !== false);
    if (isMap) members.push(`[key: string]: ${union(others, inner)}`);
    // The type of an index signature must include the types of all named members.
    else if (others.length > 0) members.push("[key: string]: unknown");
    return members.some((member) => /^\/\*|\n/.test(member))
      ? `{\n${members.map((member) => `${inside}${member};\n`).join("")}${pad}}`
      : `{ ${members.join("; ")} }`;
  }

  #reference(ref: unknown, pad: string): string {
    const key = ref === "#" ? this.#name : kit.definitionName(ref);
    if (key === undefined) return "unknown";
    const target = ref === "#" ? this.#root : kit.mapOf(kit.mapOf(this.#root)["$defs"])[key];
    if (!isObject(target)) return this.type(target, pad);
    let named = this.#named.get(ref);
    if (named === undefined) {
      named = [this.#freeName(key), target];
      this.#named.set(ref, named);
      this.definitions.set(named[0], "");
    }
    return `${NAMED}.${named[0]}`;
  }

  #freeName(key: string): string {
    const word = key.replace(/\W/g, "_").replace(/^[^A-Za-z]*/, "").slice(0, 100) || "type";
    // No keyword of TypeScript begins with a capital letter.
    const name = word.charAt(0).toUpperCase() + word.slice(1) + this.#suffix;
    let free = name;
    for (let number = 2; this.definitions.has(free); number++) free = `${name}_${number}`;
    return free;
  }
}

function group(text: string): string {
  const isOneObject = text.startsWith("{") && text.indexOf("}") === text.length - 1;
  return / [&|] /.test(text) && !isOneObject ? `(${text})` : text;
}

function union(members: readonly unknown[], write: (member: unknown) => string): string {
  const texts = new Set(members.map(write));
  return texts.has("unknown") ? "unknown" : [...texts].join(" | ") || "never";
}

function literal(value: unknown): string {
  return check.argumentsText(value, MAX_LITERAL) ?? SCALARS[typeof value] ?? "unknown";
}

function memberName(name: string): string {
  // `new` would declare a constructor.
  const isPlain = /^[A-Za-z_$][\w$]*$/.test(name) && name !== "new";
  return isPlain ? name : check.argumentsText(name, Infinity) as string;
}

/**
 * Writes the description and the limits of a schema as a comment; `""` if there are none. No text
 * can end the comment, or be a directive of the compiler.
 */
function comment(schema: unknown, pad: string, end = " "): string {
  if (!isObject(schema)) return "";
  const { type, description = "", deprecated = false } = schema;
  const tags = TAGS.filter((keyword) => Object.hasOwn(schema, keyword)).map((keyword) => {
    const value = schema[keyword];
    return `@${keyword} ${keyword === "default" ? literal(value) : String(value)}`;
  });
  if (type === "integer") tags.unshift("@integer");
  if (deprecated !== false) tags.push(`@deprecated${deprecated === true ? "" : ` ${deprecated}`}`);
  const lines = check.cleanText(`${description}\n${tags.join(" ")}`, MAX_COMMENT).split("\n")
    .map((line) => line.trim().replaceAll("*/", "*\\/").replaceAll("@ts-", "@ ts-"))
    .filter((line) => line !== "");
  if (lines.length === 0) return "";
  return lines.join("").length <= 100
    ? `/** ${lines.join(" ")} */${end}`
    : `/**\n${lines.map((line) => `${pad} * ${line}\n`).join("")}${pad} */\n${pad}`;
}
