/**
 * The parts of Standard Schema and Standard JSON Schema that plue reads, as structural types:
 * Zod 4, Valibot and ArkType satisfy them, and plue depends on none of them.
 *
 * @see https://standardschema.dev
 * @module
 */

/** One thing that a Standard Schema found wrong. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The result of a Standard Schema's `validate`. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** Gives the JSON Schema of a Standard Schema's input or output side. */
export interface StandardJsonSchemaConverter {
  readonly input: (options: { readonly target: string }) => Record<string, unknown>;
  readonly output: (options: { readonly target: string }) => Record<string, unknown>;
}

/** A schema of a library that follows Standard Schema, version 1, and can give its JSON Schema. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (
      value: unknown,
    ) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: StandardJsonSchemaConverter | undefined;
  };
}

/** Returns true for a Standard Schema. ArkType's are functions, so a typeof check is not enough. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return false;
  const standard: unknown = (value as { readonly "~standard"?: unknown })["~standard"];
  return typeof standard === "object" && standard !== null &&
    typeof (standard as { readonly validate?: unknown }).validate === "function";
}
