/**
 * Importers: tools that were written down elsewhere. The folder's table of contents.
 *
 * @module
 */

export { IMPORT_SOURCES, importTools } from "./import_tools.ts";
export type { HttpFetch, HttpRequest, HttpResponse } from "./openapi/http_fetch.ts";
export type {
  Authorize,
  BodyBinding,
  Credentials,
  HttpOperation,
  ParameterBinding,
  ParameterPlace,
  ParameterStyle,
  ValueStyle,
} from "./openapi/operation.ts";
export type {
  ImportExecute,
  ImportLimits,
  ImportOptions,
  ImportOptionsOf,
  ImportResult,
  ImportSource,
  ImportWarning,
  McpImportOptions,
  OpenAiImportOptions,
  OpenApiImportOptions,
  RejectedImport,
  RiskQuestion,
} from "./types.ts";
