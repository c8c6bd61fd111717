/**
 * What a model is told of a tool: name, description, parameters.
 *
 * @module
 */

import { buildToolset, type ToolAvailabilityInput } from "../select/mod.ts";
import { isObject, type JsonSchemaObject, type Tool } from "../tool/mod.ts";
import { legalName, mapNames, OPENAI_NAME_RULE } from "./names.ts";

/** A function definition as plain JSON. */
export interface FunctionDefinitionJson {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchemaObject;
}

/** A function definition as OpenAI's chat completions take it. */
export interface OpenAIToolJson {
  readonly type: "function";
  readonly function: FunctionDefinitionJson;
}

/**
 * What a model is told of a tool. Immutable, and the same object for the same tool.
 *
 * It says what the tool says, as it is. `exportTools` fits tools to what a provider can express,
 * reports what it could not, and reads the calls that come back.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, FunctionDefinition } from "@plue/tools";
 *
 * const definition = FunctionDefinition.fromTool(
 *   defineTool({ name: "status", namespace: "chain", description: "Says where the chain stands." }),
 * );
 *
 * assert.equal(definition.name, "chain:status");
 * assert.equal(definition.canCallWithoutParameters, true);
 * assert.equal(definition.toOpenAIToolJson().function.name, "chain__status");
 * ```
 */
export class FunctionDefinition {
  static readonly #byTool: WeakMap<Tool, FunctionDefinition> = new WeakMap();

  /** The tool's id. */
  readonly name: string;
  /** What the tool does. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: JsonSchemaObject;

  private constructor({ id, description, parameters }: Tool) {
    this.name = id;
    this.description = description;
    this.parameters = parameters;
    Object.freeze(this);
  }

  /** The definition of a tool. */
  static fromTool(tool: Tool): FunctionDefinition {
    let definition = FunctionDefinition.#byTool.get(tool);
    if (definition === undefined) {
      definition = new FunctionDefinition(tool);
      FunctionDefinition.#byTool.set(tool, definition);
    }
    return definition;
  }

  /** The definition of a tool; `undefined` where the context does not permit the tool. */
  static fromToolWithContext(
    tool: Tool,
    context: ToolAvailabilityInput,
  ): FunctionDefinition | undefined {
    return buildToolset([tool], { context }).size === 1
      ? FunctionDefinition.fromTool(tool)
      : undefined;
  }

  /** The definitions for OpenAI. Names that would collide get a hash of their id at the end. */
  static toOpenAIToolsJson(definitions: Iterable<FunctionDefinition>): OpenAIToolJson[] {
    const list = [...definitions];
    const names = mapNames(list.map(({ name }) => name), OPENAI_NAME_RULE);
    return list.map((definition) => definition.#toOpenAI(names.get(definition.name) as string));
  }

  /** Whether `{}` is a call: nothing is required. `false` where that takes following a `$ref`. */
  get canCallWithoutParameters(): boolean {
    return acceptsEmptyObject(this.parameters) === true;
  }

  /** The definition as plain JSON. */
  toJson(): FunctionDefinitionJson {
    return { name: this.name, description: this.description, parameters: this.parameters };
  }

  /** The definition as JSON text, indented by two spaces. */
  toPrettyJson(): string {
    return JSON.stringify(this.toJson(), undefined, 2);
  }

  /** The definition for OpenAI, whose names have no `:` or `.` and at most 64 characters. */
  toOpenAIToolJson(): OpenAIToolJson {
    return this.#toOpenAI(legalName(this.name, OPENAI_NAME_RULE));
  }

  #toOpenAI(name: string): OpenAIToolJson {
    return { type: "function", function: { ...this.toJson(), name } };
  }
}

const lists = new WeakMap<readonly Tool[], readonly FunctionDefinition[]>();

/** The definitions of a frozen list of tools: the same array for the same list. */
export function functionDefinitions(tools: readonly Tool[]): readonly FunctionDefinition[] {
  let definitions = lists.get(tools);
  if (definitions === undefined) {
    definitions = Object.freeze(tools.map(FunctionDefinition.fromTool));
    lists.set(tools, definitions);
  }
  return definitions;
}

/** An answer that may not be known: only a reference knows. */
type Answer = boolean | undefined;

/** Whether a schema accepts `{}`. */
function acceptsEmptyObject(schema: unknown): Answer {
  if (!isObject(schema)) return schema === true;
  const { $ref, $dynamicRef, type, required, minProperties, ...rest } = schema;
  if ($ref !== undefined || $dynamicRef !== undefined) return undefined;
  const answers: Answer[] = [
    type === undefined || [type].flat().includes("object"),
    listOf(required).length === 0,
    !(typeof minProperties === "number" && minProperties > 0),
    !("const" in rest) || isEmptyObject(rest["const"]),
    !("enum" in rest) || listOf(rest["enum"]).some(isEmptyObject),
    ...listOf(rest["allOf"]).map(acceptsEmptyObject),
  ];
  const { anyOf, oneOf } = rest;
  if (Array.isArray(anyOf)) {
    answers.push(not(all(anyOf.map((part) => not(acceptsEmptyObject(part))))));
  }
  if (Array.isArray(oneOf)) answers.push(exactlyOne(oneOf.map(acceptsEmptyObject)));
  if ("not" in rest) answers.push(not(acceptsEmptyObject(rest["not"])));
  if ("if" in rest) {
    const holds = acceptsEmptyObject(rest["if"]);
    answers.push(
      holds === undefined ? holds : acceptsEmptyObject(rest[holds ? "then" : "else"] ?? true),
    );
  }
  return all(answers);
}

function all(answers: readonly Answer[]): Answer {
  return answers.includes(false) ? false : answers.includes(undefined) ? undefined : true;
}

function exactlyOne(answers: readonly Answer[]): Answer {
  const yes = answers.filter((answer) => answer === true).length;
  if (yes > 1) return false;
  return answers.includes(undefined) ? undefined : yes === 1;
}

function not(answer: Answer): Answer {
  return answer === undefined ? undefined : !answer;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isEmptyObject(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}
