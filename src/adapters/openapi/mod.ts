/**
 * Imports OpenAPI documents as tools, and describes the HTTP service of tools as an OpenAPI
 * document (`@plue/tools/openapi`).
 *
 * @module
 */

export type { CredentialSource, HttpFetch } from "./http.ts";
export { importOpenApi, type OpenApiImportOptions } from "./import_openapi.ts";
export type { BodyBinding, Credentials, HttpOperation, ParameterBinding } from "./build_request.ts";
export type { ServerOptions } from "./document.ts";
export type { ParameterPlace, ParameterStyle, ValueStyle } from "./serialize.ts";
