/** The definition of a tool for a model: name, description, parameters. */

import { legalName, mapNames, OPENAI_NAME_RULE } from "./wire_names.ts";
import * as check from "../tool/mod.ts";
import { describe, type JsonSchemaObject, NO_PARAMETERS, once, type Tool } from "../tool/mod.ts";

/** A function definition as plain JSON. */
export interface FunctionDefinitionJson {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchemaObject;
}

const ACTION = "make a function definition";

const FIELDS = {
  name: check.checkText,
  description: check.checkText,
  parameters: check.createCheck("an object schema", check.isObject),
} satisfies { readonly [Field in keyof FunctionDefinitionJson]: check.Check };

/**
 * The definition of a tool for a model. Frozen.
 *
 * A definition contains the tool's texts unchanged. For a provider, use `exportTools`: it adapts
 * tools to the provider, reports losses, and returns the names that decode the provider's calls.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, FunctionDefinition } from "@plue/tools";
 *
 * const status = defineTool({ name: "chain:status", description: "Says where the chain stands." });
 * const definition = FunctionDefinition.fromTool(status);
 * assert.equal(definition.name, "chain:status");
 * assert.equal(definition.canCallWithoutParameters, true);
 * assert.equal(JSON.parse(definition.toOpenAIToolJson()).function.name, "chain__status");
 *
 * const inContext = FunctionDefinition.fromToolWithContext(status, "The chain is CHAIN-037.");
 * assert.equal(inContext.description, "Says where the chain stands.\n\nThe chain is CHAIN-037.");
 * ```
 */
export class FunctionDefinition {
  static readonly #byTool: WeakMap<Tool, FunctionDefinition> = new WeakMap();

  /** The tool's id. */
  readonly name: string;
  /** The tool's description. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: JsonSchemaObject;

  /**
   * Creates a definition from fields. An omitted name or description is `""`, and omitted
   * parameters are a schema without properties. The schema stays unchanged.
   *
   * @throws {TypeError} If a field is unknown or invalid. The message names the field.
   */
  constructor(fields: Partial<FunctionDefinitionJson> = {}) {
    const { name = "", description = "", parameters = NO_PARAMETERS } = check.readFields(
      ACTION,
      fields,
      FIELDS,
      (field) => `its ${field}`,
      (field) => /^input_?schema$/i.test(field) ? 'did you mean "parameters"?' : undefined,
    );
    this.name = name;
    this.description = description;
    this.parameters = parameters;
    Object.freeze(this);
  }

  /** Returns the definition of a tool: the same object for the same tool. */
  static fromTool(tool: Tool): FunctionDefinition {
    return once(FunctionDefinition.#byTool, tool, () => FunctionDefinition.#of(tool));
  }

  /** Returns the definition of a tool with a text appended to its description. */
  static fromToolWithContext(tool: Tool, additionalContext: string): FunctionDefinition {
    const text = check.checkText(ACTION, additionalContext, "the additional context");
    return FunctionDefinition.#of(tool, `\n\n${text}`);
  }

  /** Returns the definitions as OpenAI's list of tools, in compact JSON. Equal names get a hash. */
  static toOpenAIToolsJson(definitions: Iterable<FunctionDefinition>): string {
    const list = [...definitions];
    const names = mapNames(list.map(({ name }) => name), OPENAI_NAME_RULE);
    return JSON.stringify(list.map((one) => one.#forOpenAI(names.get(one.name) as string)));
  }

  /**
   * True if the tool can be called with `{}`, because nothing is required. False if that depends on
   * a `$ref`, or on the keywords `const`, `enum`, `oneOf`, `not` and `if`.
   */
  get canCallWithoutParameters(): boolean {
    return acceptsEmptyObject(this.parameters);
  }

  /** Returns the definition as plain JSON, for `JSON.stringify`. */
  toJSON(): FunctionDefinitionJson {
    return { name: this.name, description: this.description, parameters: this.parameters };
  }

  /** Returns the definition as compact JSON text. */
  toJson(): string {
    return JSON.stringify(this);
  }

  /** Returns the definition as JSON text, indented by two spaces. */
  toPrettyJson(): string {
    return JSON.stringify(this, undefined, 2);
  }

  /** Returns the definition as an OpenAI tool, in compact JSON, with a name that OpenAI allows. */
  toOpenAIToolJson(): string {
    return JSON.stringify(this.#forOpenAI(legalName(this.name, OPENAI_NAME_RULE)));
  }

  /** Returns a text that names the definition in logs. */
  toString(): string {
    return `FunctionDefinition(${this.name})`;
  }

  static #of(tool: Tool, more = ""): FunctionDefinition {
    if (!check.isObject(tool)) {
      check.fail(ACTION, `the argument must be a tool, not ${describe(tool)}`);
    }
    const { id: name, description, parameters } = tool;
    return new FunctionDefinition({ name, description: description + more, parameters });
  }

  #forOpenAI(name: string): unknown {
    return { type: "function", function: { ...this.toJSON(), name } };
  }
}

const lists = new WeakMap<readonly Tool[], readonly FunctionDefinition[]>();

/** Returns the same array for the same frozen list of tools. */
export function functionDefinitions(tools: readonly Tool[]): readonly FunctionDefinition[] {
  return once(lists, tools, () => Object.freeze(tools.map(FunctionDefinition.fromTool)));
}

/** Keywords whose effect on `{}` is known only after a validation. */
const UNDECIDED = ["$ref", "$dynamicRef", "const", "enum", "oneOf", "not", "if"] as const;

function acceptsEmptyObject(schema: unknown): boolean {
  if (!check.isObject(schema)) return schema === true;
  const { type = "object", required = [], minProperties = 0, allOf = [], anyOf = [true] } = schema;
  return !UNDECIDED.some((keyword) => keyword in schema) &&
    [type].flat().includes("object") && [required].flat().length === 0 && minProperties === 0 &&
    [allOf].flat().every(acceptsEmptyObject) && [anyOf].flat().some(acceptsEmptyObject);
}
