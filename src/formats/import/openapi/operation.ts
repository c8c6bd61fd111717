/**
 * An operation of an API, as far as a call of it needs to know: data, made once at import.
 *
 * @module
 */

import type { ToolContext } from "../../../tool/mod.ts";

/** Where a parameter goes. */
export type ParameterPlace = "path" | "query" | "header" | "cookie";

/** How a value that is no single text is written. */
export type ParameterStyle =
  | "simple"
  | "label"
  | "matrix"
  | "form"
  | "spaceDelimited"
  | "pipeDelimited"
  | "deepObject";

/** How a value is written into a URL, a header or a form. */
export interface ValueStyle {
  readonly style: ParameterStyle;
  readonly explode: boolean;
  /** Characters that have a meaning in URLs are sent as they are, where that is harmless. */
  readonly allowReserved?: boolean;
  /** The value is written as JSON. */
  readonly json?: boolean;
}

/** A parameter, and the argument that it takes its value from. */
export interface ParameterBinding extends ValueStyle {
  /** The property of the arguments. */
  readonly key: string;
  readonly name: string;
  readonly in: ParameterPlace;
}

/** The body, and the arguments that it is made of. */
export interface BodyBinding {
  /** What is sent as the content type. */
  readonly mediaType: string;
  readonly kind: "json" | "form" | "multipart" | "text";
  /**
   * `all`: the arguments are the body; `rest`: those that are no parameters; `one`: the argument
   * `key`.
   */
  readonly from: "all" | "rest" | "one";
  readonly key?: string;
  /** How the members of a form are written, where that is not the usual way. */
  readonly encoding?: { readonly [member: string]: ValueStyle };
}

/** One operation of an API. */
export interface HttpOperation {
  readonly operationId?: string;
  /** In capitals. */
  readonly method: string;
  /** The path, with its parameters in braces. */
  readonly path: string;
  /** Where the API is, without a `/` at the end; absent if nobody said. */
  readonly server?: string;
  readonly parameters: readonly ParameterBinding[];
  readonly body?: BodyBinding;
  /** What the document says about credentials, unchecked: schemes with their scopes, in alternatives. */
  readonly security?: readonly { readonly [scheme: string]: readonly string[] }[];
  /** The behaviour hints follow from the method; nobody gave them. */
  readonly inferred?: boolean;
}

/** What proves to the API who is asking. */
export interface Credentials {
  readonly headers?: { readonly [name: string]: string };
  readonly query?: { readonly [name: string]: string };
}

/** Gives the credentials for one request. */
export type Authorize = (
  operation: HttpOperation,
  context: ToolContext,
) => Credentials | Promise<Credentials>;
