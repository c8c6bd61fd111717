/**
 * What a model is told of a tool: name, description, parameters.
 *
 * @module
 */

import { buildToolset, type ToolAvailabilityInput } from "../select/mod.ts";
import type { JsonSchemaObject, Tool } from "../tool/mod.ts";
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

/** Whether a schema accepts `{}`; `undefined` if only a reference knows. */
function acceptsEmptyObject(schema: unknown): boolean | undefined {
  if (typeof schema !== "object" || schema === null) return schema === true;
  const { $ref, $dynamicRef, type, required, minProperties, allOf, anyOf, oneOf, ...rest } =
    schema as Readonly<Record<string, unknown>>;
  if ($ref !== undefined || $dynamicRef !== undefined) return undefined;
  if (type !== undefined && type !== "object" && !listOf(type)?.includes("object")) return false;
  if ((listOf(required)?.length ?? 0) > 0) return false;
  if (typeof minProperties === "number" && minProperties > 0) return false;
  if ("const" in rest && !isEmptyObject(rest["const"])) return false;
  if ("enum" in rest && listOf(rest["enum"])?.some(isEmptyObject) !== true) return false;
  const answers = (listOf(allOf) ?? []).map(acceptsEmptyObject);
  if ("not" in rest) answers.push(negate(acceptsEmptyObject(rest["not"])));
  if ("if" in rest) {
    const holds = acceptsEmptyObject(rest["if"]);
    answers.push(
      holds === undefined ? holds : acceptsEmptyObject(rest[holds ? "then" : "else"] ?? true),
    );
  }
  for (const [branches, fits] of [[anyOf, atLeastOne], [oneOf, exactlyOne]] as const) {
    const list = listOf(branches);
    if (list !== undefined) answers.push(fits(list.map(acceptsEmptyObject)));
  }
  if (answers.includes(false)) return false;
  return answers.includes(undefined) ? undefined : true;
}

function atLeastOne(answers: readonly (boolean | undefined)[]): boolean | undefined {
  if (answers.includes(true)) return true;
  return answers.includes(undefined) ? undefined : false;
}

function exactlyOne(answers: readonly (boolean | undefined)[]): boolean | undefined {
  const yes = answers.filter((answer) => answer === true).length;
  if (yes > 1) return false;
  return answers.includes(undefined) ? undefined : yes === 1;
}

function negate(answer: boolean | undefined): boolean | undefined {
  return answer === undefined ? undefined : !answer;
}

function listOf(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? value : undefined;
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    Object.keys(value).length === 0;
}
