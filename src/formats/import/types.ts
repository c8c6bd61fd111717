/**
 * The words of an import: sources, options, and what `importTools` answers.
 *
 * @module
 */

import type { RiskLevel, Tool, ToolAnnotations, ToolContext, ToolOutput } from "../../tool/mod.ts";
import type { HttpFetch } from "./openapi/http_fetch.ts";
import type { Authorize } from "./openapi/operation.ts";

/** What a document is: whose way of writing tools down. */
export type ImportSource = "mcp" | "openapi" | "openai" | "anthropic" | "gemini" | "bedrock";

/** Something to know about what was imported. */
export interface ImportWarning {
  /** The id of the tool; absent if it concerns the document. */
  readonly tool?: string;
  /** Where, as a JSON Pointer into the document. */
  readonly path: string;
  /** What it is about, in one word: a field, a keyword, or a rule. */
  readonly rule: string;
  /** The whole sentence. */
  readonly message: string;
}

/** Something that did not become a tool. The rest did. */
export interface RejectedImport {
  /** The name in the document, if it has one. */
  readonly name: string | undefined;
  /** Where, as a JSON Pointer into the document. */
  readonly path: string;
  /** The rule that it broke, in one word. */
  readonly rule: string;
  /** The whole sentence. */
  readonly message: string;
}

/** What an import answers. */
export interface ImportResult {
  /** What the document was taken for; `undefined` if `auto` recognised nothing. */
  readonly source: ImportSource | undefined;
  /** The tools, in the order of the document. */
  readonly tools: readonly Tool[];
  /** What to know about them. At most 1,000. */
  readonly warnings: readonly ImportWarning[];
  readonly rejected: readonly RejectedImport[];
  /** How long an MCP server allows its list to be kept, and for whom. */
  readonly cache?: { readonly ttlMs?: number; readonly scope?: "public" | "private" };
}

/** What is known of a tool when its risk is decided. */
export interface RiskQuestion {
  /** The id that the tool will have. */
  readonly id: string;
  /** The name that the source knows it by. */
  readonly sourceName: string;
  /** What the source says of it. Hints: a server may lie. */
  readonly annotations: ToolAnnotations;
  /** The risk that the hints lead to. */
  readonly suggested: RiskLevel;
}

/** Runs a call of an imported tool. */
export type ImportExecute = (
  /** The name that the source knows the tool by. */
  name: string,
  args: { readonly [key: string]: unknown },
  context: ToolContext,
) => ToolOutput<unknown>;

/** Bounds of an import, against documents made to exhaust the machine. */
export interface ImportLimits {
  /**
   * How many entries of the document are looked at.
   *
   * @default {5_000}
   */
  readonly maxTools?: number;
  /**
   * How many values the tools may have together. What an OpenAPI document shares counts once for
   * every operation that uses it.
   *
   * @default {2_000_000}
   */
  readonly maxValues?: number;
}

/** Options for `importTools`, for every source. */
export interface ImportOptions {
  /** The namespace of the tools. Names are unique within one document only, so give one. */
  readonly namespace?: string;
  /**
   * The risk of the tools, or how to decide it. By default it follows the hints that the source
   * gives: `low` if the tool only reads, `high` if it may destroy, `medium` if nothing is known.
   *
   * Hints are the source's word, no proof: for a source that you do not trust, give the risk.
   */
  readonly risk?: RiskLevel | ((question: RiskQuestion) => RiskLevel);
  /** Tags for all tools, beside those of the document. */
  readonly tags?: readonly string[];
  /** Runs the calls. Absent: the tools are definitions only. */
  readonly execute?: ImportExecute;
  readonly limits?: ImportLimits;
}

/** Options for a list of an MCP server. */
export interface McpImportOptions extends ImportOptions {
  /**
   * How the server is reached. Over HTTP a tool with a wrong `x-mcp-header` must not be used, so
   * it is rejected; elsewhere it is a warning.
   *
   * @default {"http"}
   */
  readonly transport?: "http" | "stdio";
  /**
   * Take a result schema of exactly `{ result: … }` for the wrapping that servers before
   * 2026-07-28 put around results that are no objects, and undo it, in results too.
   *
   * @default {false}
   */
  readonly unwrapResults?: boolean;
}

/** Options for OpenAI's tools. */
export interface OpenAiImportOptions extends ImportOptions {
  /**
   * In tools with `strict: true`, take required properties that accept `null` for optional ones.
   * Strict mode writes optional properties so, but also those that really accept `null`. What
   * `execute` is given has the nulls put back.
   *
   * @default {false}
   */
  readonly unstrict?: boolean;
}

/** Options for an OpenAPI document. */
export interface OpenApiImportOptions extends ImportOptions {
  /** Performs the HTTP requests. Absent: the tools are definitions only, unless `execute` is given. */
  readonly fetch?: HttpFetch;
  /**
   * Where the API is, such as `https://api.example.com/v1`, in place of the document's `servers`.
   * For a document that you do not trust, give it: else the document says where calls go.
   */
  readonly baseUrl?: string;
  /** Values for the variables in the URLs of `servers`, in place of their defaults. */
  readonly serverVariables?: { readonly [name: string]: string };
  /**
   * Gives the credentials of a request. They win over what the arguments say.
   *
   * They go to `baseUrl`. Without it they go where the document's `servers` say, and a warning names
   * the host; the `servers` of a single path or operation are then heard only if they are of the
   * same origin.
   */
  readonly authorize?: Authorize;
  /**
   * How large a response may be, in bytes.
   *
   * @default {1_048_576}
   */
  readonly maxResponseBytes?: number;
  /**
   * Import operations that are marked as deprecated.
   *
   * @default {true}
   */
  readonly deprecated?: boolean;
  /**
   * Check results against the schemas of the responses. Turn it off for a server that does not
   * keep to its document.
   *
   * @default {true}
   */
  readonly returns?: boolean;
}

/** The options of each source. */
export interface ImportOptionsOf {
  readonly mcp: McpImportOptions;
  readonly openapi: OpenApiImportOptions;
  readonly openai: OpenAiImportOptions;
  readonly anthropic: ImportOptions;
  readonly gemini: ImportOptions;
  readonly bedrock: ImportOptions;
  readonly auto: McpImportOptions & OpenApiImportOptions & OpenAiImportOptions;
}
