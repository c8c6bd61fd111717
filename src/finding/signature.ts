/** A tool in one line, with its arguments as a TypeScript type: enough for a model to call it. */

import { fragmentSteps } from "../schema/mod.ts";
import { clip, isObject, type JsonSchemaObject, type Tool } from "../tool/mod.ts";

/** The maximum depth of a type; a reference and a union count as a level. */
const MAX_LEVELS = 8;
/** The maximum number of types in a signature, because references may multiply types. */
const MAX_TYPES = 200;
/** The maximum number of values of an enum, members of a union or properties of an object. */
const MAX_ITEMS = 40;

/** The keywords that a type expresses, and annotations. */
const SAID: ReadonlySet<string> = new Set([
  ...["type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf", "$ref"],
  ...["additionalProperties", "title", "description", "default", "examples", "$schema", "$id"],
  ...["$defs", "definitions", "$comment", "deprecated", "readOnly", "writeOnly"],
]);

export const SCALARS: Readonly<Record<string, string>> = {
  string: "string",
  number: "number",
  integer: "number",
  boolean: "boolean",
  null: "null",
};

/** Writes a type. It is `lossy` if it omits a rule of the schema, such as a pattern or a limit. */
export function argumentsOf(
  { parameters }: Pick<Tool, "parameters">,
): { readonly text: string; readonly lossy: boolean } {
  const writer = new Writer(parameters);
  const text = writer.type(parameters, MAX_LEVELS);
  return { text, lossy: writer.lossy };
}

const MAX_SENTENCE = 200;

export function firstSentence({ description }: Pick<Tool, "description">): string {
  const [sentence = ""] = description.trim().split(/(?<=[.!?])\s|(?<=[。！？])|\n/u, 1);
  return clip(sentence, MAX_SENTENCE);
}

/** Writes the path of a tool in a program: `tools.crm.invoices`. */
export function functionPath(id: string): string {
  const steps = id.split(":").map((name) =>
    /^[A-Za-z_$][\w$]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`
  );
  return `tools${steps.join("")}`;
}

/**
 * Writes a tool in one line: `web:search({ query: string }): Searches the web.` With `[lossy]`
 * before the colon, the type omits a rule of the schema.
 */
export function signatureOf(tool: Tool): string {
  const { text, lossy } = argumentsOf(tool);
  // Without `properties`, any arguments are valid; with empty `properties`, none are expected.
  const args = text !== "{}" ? text : "properties" in tool.parameters ? "" : "object";
  return `${tool.id}(${args})${lossy ? " [lossy]" : ""}: ${firstSentence(tool)}`;
}

class Writer {
  lossy = false;
  readonly #root: JsonSchemaObject;
  #written = 0;

  constructor(root: JsonSchemaObject) {
    this.#root = root;
  }

  type(schema: unknown, levels: number): string {
    if (!isObject(schema) || levels === 0 || ++this.#written > MAX_TYPES) {
      this.lossy ||= schema !== true && schema !== undefined;
      return "unknown";
    }
    if (Object.keys(schema).some((keyword) => !SAID.has(keyword))) this.lossy = true;
    const { $ref: ref, type, enum: values, anyOf, oneOf } = schema;
    if (typeof ref === "string") return this.type(this.#find(ref), levels - 1);
    if ("const" in schema) return JSON.stringify(schema["const"]);
    if (Array.isArray(values)) {
      return this.#union(values, (value) => JSON.stringify(value));
    }
    const either = anyOf ?? oneOf;
    if (Array.isArray(either) && schema["properties"] === undefined) {
      return this.#union(either, (member) => this.type(member, levels - 1));
    }
    if (either !== undefined) this.lossy = true;
    if (Array.isArray(type)) {
      return this.#union(type, (one) => this.type({ ...schema, type: one }, levels));
    }
    if (type === "array") {
      const items = this.type(schema["items"] ?? true, levels - 1);
      return /[ |]/.test(items) && !items.startsWith("{") ? `(${items})[]` : `${items}[]`;
    }
    if (type === "object" || isObject(schema["properties"])) return this.#object(schema, levels);
    return SCALARS[String(type)] ?? "unknown";
  }

  #object(schema: JsonSchemaObject, levels: number): string {
    const { properties, required, additionalProperties } = schema;
    const names = new Set(Array.isArray(required) ? required : []);
    const members = isObject(properties) ? Object.entries(properties) : [];
    if (members.length > MAX_ITEMS) this.lossy = true;
    const written = members.slice(0, MAX_ITEMS).map(([name, member]) => {
      const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
      return `${key}${names.has(name) ? "" : "?"}: ${this.type(member, levels - 1)}`;
    });
    if (isObject(additionalProperties)) {
      written.push(`[key: string]: ${this.type(additionalProperties, levels - 1)}`);
    }
    if (written.length > 0) return `{ ${written.join("; ")} }`;
    return additionalProperties === false || levels === MAX_LEVELS ? "{}" : "object";
  }

  #union(members: readonly unknown[], write: (member: unknown) => string): string {
    if (members.length > MAX_ITEMS) this.lossy = true;
    return [...new Set(members.slice(0, MAX_ITEMS).map(write))].join(" | ");
  }

  #find(ref: string): unknown {
    const found = fragmentSteps(ref)?.reduce<unknown>(
      (part, step) => isObject(part) && Object.hasOwn(part, step) ? part[step] : undefined,
      this.#root,
    );
    return found ?? { not: {} };
  }
}
