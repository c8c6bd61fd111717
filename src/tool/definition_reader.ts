/**
 * Reads the fields of a definition: each is checked, copied if it is data, and frozen. What is wrong
 * is thrown with the tool's id and the field.
 *
 * @module
 */

import { copyJson } from "./json_copy.ts";
import type { JsonSchema } from "./json.ts";
import { isStandardSchema, type StandardSchema } from "./standard_schema.ts";
import { isDefinitionField, type ToolDefinition } from "./tool_definition.ts";
import { isToolName, TOOL_NAME_RULE, toolId } from "./tool_id.ts";
import type { Tool } from "./tool.ts";

/** A schema of a definition, and the library schema that it came from. */
export interface SchemaPair {
  readonly json: JsonSchema | undefined;
  readonly standard: StandardSchema | undefined;
}

const NO_SCHEMA: SchemaPair = { json: undefined, standard: undefined };

/** Whether `value` is an object that is no list. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value in a message: a string in quotes, of anything else the type. */
export function quote(value: unknown): string {
  return typeof value === "string"
    ? JSON.stringify(value.slice(0, 100))
    : `of type ${typeof value}`;
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** A list of the items of `value`, holes as `undefined`; `undefined` if it is not a list. */
function itemsOf(value: unknown): readonly unknown[] | undefined {
  // `every` on the list itself would step over holes.
  return Array.isArray(value) ? [...value] : undefined;
}

/** Reads one definition. Its name, namespace and id are right, and it has no unknown field. */
export class DefinitionReader {
  readonly id: string;
  readonly #definition: ToolDefinition;

  /** @throws {TypeError} If the definition is no object, has no right name, or an unknown field. */
  constructor(definition: ToolDefinition) {
    if (!isPlainObject(definition)) {
      throw new TypeError("Cannot define a tool: the definition must be an object");
    }
    const { name, namespace } = definition;
    for (const [field, value] of [["name", name], ["namespace", namespace]] as const) {
      if (!isToolName(value) && !(field === "namespace" && value === undefined)) {
        throw new TypeError(
          `Cannot define tool ${quote(name)}: its ${field} must be ${TOOL_NAME_RULE}`,
        );
      }
    }
    this.#definition = definition;
    this.id = toolId(name, namespace);
    for (const field of Object.keys(definition)) {
      if (!isDefinitionField(field)) this.wrong(`${quote(field)} is not a field of a tool`);
    }
    const { id = this.id } = definition as Partial<Tool>;
    if (id !== this.id) {
      this.wrong(`its id must be what its namespace and its name make, not ${quote(id)}`);
    }
  }

  /** @throws {TypeError} Always, with what is wrong. */
  wrong(problem: string): never {
    throw new TypeError(`Cannot define tool ${quote(this.id)}: ${problem}`);
  }

  text(field: "title" | "description" | "version"): string | undefined {
    const value = this.#definition[field];
    if (value === undefined || typeof value === "string") return value;
    this.wrong(`its ${field} must be a string`);
  }

  flag(field: "requiresTransaction" | "requiresApproval" | "idempotent"): boolean {
    const { [field]: value = false } = this.#definition;
    if (typeof value === "boolean") return value;
    this.wrong(`its ${field} must be true or false`);
  }

  /** A function, bound to the definition, so that `this` is what its author expects. */
  method<Key extends "init" | "dispose" | "validate" | "execute">(field: Key): Tool[Key] {
    const value: unknown = this.#definition[field];
    if (value === undefined) return undefined as Tool[Key];
    if (typeof value === "function") return value.bind(this.#definition) as Tool[Key];
    this.wrong(`its ${field} must be a function`);
  }

  words(field: "tags" | "roles" | "scopes"): readonly string[] | undefined {
    const value: unknown = this.#definition[field];
    if (value === undefined) return undefined;
    const items = itemsOf(value);
    if (!items?.every((item): item is string => typeof item === "string" && item !== "")) {
      this.wrong(`its ${field} must be a list of strings that are not empty`);
    }
    return Object.freeze([...new Set(items)]);
  }

  /** A list of objects of which `isRight` says that they have what is `wanted`. */
  records<T>(
    field: "examples" | "icons",
    wanted: string,
    isRight: (item: Record<string, unknown>) => boolean,
  ): readonly T[] {
    const { [field]: value = [] } = this.#definition;
    const items = itemsOf(value);
    if (!items?.every((item) => isPlainObject(item) && isRight(item))) {
      this.wrong(`its ${field} must be a list of objects, each with ${wanted}`);
    }
    return this.data(field, items as readonly T[]);
  }

  /** A frozen copy of a field's value. */
  data<T>(field: keyof ToolDefinition, value: T): T {
    try {
      return copyJson(value, `its ${field}`);
    } catch (cause) {
      this.wrong(messageOf(cause).replace("Cannot copy ", ""));
    }
  }

  /** A schema; of a library's schema the side that callers see: what goes in, or what comes out. */
  schema(field: "parameters" | "returns" | "config", side: "input" | "output"): SchemaPair {
    const value: unknown = this.#definition[field];
    if (value === undefined) return NO_SCHEMA;
    if (isStandardSchema(value)) {
      return { json: this.data(field, this.#standardJson(value, field, side)), standard: value };
    }
    if (typeof value !== "boolean" && !isPlainObject(value)) {
      this.wrong(`its ${field} must be a JSON Schema or a Standard Schema`);
    }
    // A tool that another copy of plue made carries its library schema beside the JSON Schema.
    const carried: unknown = (this.#definition as Partial<Tool>)[`${field}Standard` as never];
    return {
      json: this.data<JsonSchema>(field, value),
      standard: isStandardSchema(carried) ? carried : undefined,
    };
  }

  #standardJson(schema: StandardSchema, field: string, side: "input" | "output"): JsonSchema {
    const { vendor, jsonSchema } = schema["~standard"];
    if (jsonSchema === undefined) {
      this.wrong(
        `its ${field} schema, made with ${vendor}, cannot give its JSON Schema: it needs ` +
          '"~standard".jsonSchema (Zod 4.2, ArkType 2.1.28, Valibot through toStandardJsonSchema)',
      );
    }
    try {
      return jsonSchema[side]({ target: "draft-2020-12" });
    } catch (cause) {
      this.wrong(`${vendor} cannot give the JSON Schema of its ${field}: ${messageOf(cause)}`);
    }
  }
}
