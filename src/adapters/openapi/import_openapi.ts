/** Imports documents of OpenAPI 3.0, 3.1 and 3.2: each operation becomes a tool. */

import * as kit from "../../formats/provider_kit.ts";
import { type ImportedTool, ImportSession, member, wordsIn } from "../../formats/provider_kit.ts";
import type { ProviderHints } from "../../formats/mod.ts";
import { checkWithoutEngine } from "../../schema/mod.ts";
import * as check from "../../tool/mod.ts";
import {
  clip,
  copyJson,
  defined,
  describeThrown,
  fail,
  isListOf,
  isObject,
  isText,
  isWord,
  jsonEqual,
  type JsonSchema,
  type JsonSchemaObject,
  type ToolResult,
} from "../../tool/mod.ts";
import { type HttpOperation, pathProblem } from "./build_request.ts";
import * as documents from "./document.ts";
import type { FoundOperation } from "./document.ts";
import { callOperation, type CredentialSource, type HttpClient, type HttpFetch } from "./http.ts";
import { inputOf, type ReadParameter, readParameters } from "./parameters.ts";
import { type ReadBody, readBody, readReturns } from "./request_body.ts";
import { type ReadContext, SchemaReader } from "./schemas.ts";

/** Options for {@linkcode importOpenApi}. */
export interface OpenApiImportOptions extends kit.ImportOptions, documents.ServerOptions {
  /** Performs the HTTP requests. Without it and `execute`, the tools are definitions only. */
  readonly fetch?: HttpFetch;
  /**
   * Returns the credentials of a request, which override arguments. They are sent to `baseUrl`.
   * Without `baseUrl`, they are sent to the document's `servers`, and a warning names the host. The
   * `servers` of a path or an operation are then used only if their origin is the same.
   */
  readonly authorize?: CredentialSource;
  /** The maximum size of a response, in bytes. @default {1_048_576} */
  readonly maxResponseBytes?: number;
  /**
   * Checks results against the schemas of the responses. Use `false` for a server that does not
   * follow its document. With `"reads"`, an invalid result fails only operations that change
   * nothing (GET, HEAD, OPTIONS, QUERY), because a model would repeat a write that seems to have
   * failed. Other operations return invalid results unchanged, with a warning by
   * `context.metadata`, and their tools have no `returns`. Without `fetch`, it means `true`.
   *
   * @default {true}
   */
  readonly returns?: boolean | "reads";
}

const MAX_RESPONSE_BYTES = 1_048_576;

/**
 * Imports tools, and holds back tools that have changed since they were approved (option `pins`).
 *
 * @returns A promise of the import, with the tools that are held back.
 */
export function importOpenApi(
  document: unknown,
  options: kit.WithPins<OpenApiImportOptions>,
): Promise<kit.PinnedImport>;
/**
 * Makes a tool of each operation of an OpenAPI document, version 3.0 to 3.2. With `fetch` the tools
 * call the API.
 *
 * You need not trust the document. Its size is limited, nothing is fetched to read it, and its
 * errors are part of the result: an invalid operation does not affect other operations. A document
 * may claim that its operations are harmless: set `risk` if you do not trust these claims.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { importOpenApi } from "@plue/tools/openapi";
 *
 * const { tools } = importOpenApi({
 *   openapi: "3.1.0",
 *   servers: [{ url: "https://api.example.com" }],
 *   paths: {
 *     "/pets/{id}": {
 *       get: {
 *         operationId: "getPet",
 *         parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
 *         responses: { "200": { description: "The pet." } },
 *       },
 *     },
 *   },
 * }, { namespace: "pets", fetch: globalThis.fetch });
 *
 * assert.equal(tools[0]?.id, "pets:getPet");
 * assert.deepEqual(tools[0]?.parameters["required"], ["id"]);
 * ```
 *
 * @param document The document, as `JSON.parse` returns it.
 * @param options Namespace, risk, tags and limits; the address and the credentials of calls.
 * @throws {TypeError | RangeError} If an option is invalid. Errors of the document are not thrown.
 */
export function importOpenApi(document: unknown, options?: OpenApiImportOptions): kit.ImportResult;
export function importOpenApi(
  document: unknown,
  settings: OpenApiImportOptions | kit.WithPins<OpenApiImportOptions> = {},
): kit.ImportResult | Promise<kit.PinnedImport> {
  const { pins, ...options } = settings;
  const session = new ImportSession("openapi", options);
  checkOptions(options);
  const root = readRoot(session, document);
  if (root !== undefined) importOperations(session, root, options);
  const imported = session.finish();
  const { namespace = "" } = options;
  return pins === undefined ? imported : pins.check(imported, namespace);
}

/** The session checks the options that all sources share. */
const CHECKS = {
  fetch: check.checkFunction,
  // The message does not repeat the address, which may contain a password.
  baseUrl: (action: string, value: unknown, name: string) =>
    typeof value === "string" && documents.baseAddress(value) !== undefined ? value : fail(
      action,
      `${name} must be an address with "https:" or "http:", without credentials, query or fragment`,
    ),
  documentUrl: check.createCheck('an address with "https:" or "http:"', isHttpUrl),
  allowedHosts: check.createCheck(
    'a list of hosts such as "api.example.com" or "localhost:8080"',
    (value): value is readonly string[] => isListOf(value, isHost),
  ),
  authorize: check.checkFunction,
  maxResponseBytes: check.wholeFrom(1),
  returns: check.createCheck(
    'true, false or "reads"',
    (value): value is boolean | "reads" => typeof value === "boolean" || value === "reads",
  ),
} satisfies { readonly [Option in keyof OpenApiImportOptions]: check.Check };

function isHttpUrl(value: unknown): value is string {
  return typeof value === "string" && /^https?:/i.test(value) && URL.canParse(value);
}

function isHost(value: unknown): value is string {
  return isWord(value) && /^[^\s/?#@\\]+$/.test(value);
}

function checkOptions(options: OpenApiImportOptions): void {
  for (const [name, checkField] of Object.entries(CHECKS)) {
    const value = options[name as keyof typeof CHECKS];
    if (value !== undefined) checkField("import tools", value, name);
  }
  if (options.fetch !== undefined && options.execute !== undefined) {
    fail("import tools", "set either fetch or execute, not both");
  }
}

function readRoot(session: ImportSession, document: unknown): kit.JsonRecord | undefined {
  const version = kit.textIn(document, "openapi");
  if (!isObject(document) || version === undefined || !/^3\.[0-2](\.|$)/.test(version)) {
    session.reject(undefined, "", "openapi", `Cannot read the document: ${wantedForm(document)}`);
    return undefined;
  }
  try {
    return copyJson(document, "the document");
  } catch (cause) {
    const message = describeThrown(cause).replace("Cannot copy", "Cannot read");
    session.reject(undefined, "", "document", message);
    return undefined;
  }
}

function wantedForm(document: unknown): string {
  if (typeof document === "string") {
    return 'it is text; parse it first, with JSON.parse() or the npm package "yaml"';
  }
  if (kit.textIn(document, "swagger") !== undefined) {
    return 'it is Swagger 2.0; convert it first, with the npm package "swagger2openapi"';
  }
  return 'its "openapi" must be a version from "3.0" to "3.2"';
}

interface OpenApiImport extends Omit<ReadContext, "warn"> {
  readonly session: ImportSession;
  readonly options: OpenApiImportOptions;
  readonly client: HttpClient | undefined;
  /** The origins that a warning has named as receivers of credentials. */
  readonly warned: Set<string>;
}

function importOperations(
  session: ImportSession,
  root: kit.JsonRecord,
  options: OpenApiImportOptions,
): void {
  const { fetch, maxResponseBytes = MAX_RESPONSE_BYTES } = options;
  const document = new documents.ApiDocument(root, (part) => session.charge(part));
  const api: OpenApiImport = {
    session,
    options,
    document,
    schemas: new SchemaReader(document, (...note) => session.warn(undefined, ...note)),
    credentials: documents.credentialKeys(document),
    client: fetch && { ...options, fetch, maxResponseBytes },
    warned: new Set(),
  };
  for (const [one, name] of documents.nameOperations(documents.findOperations(session, document))) {
    // Several paths may share one object. Each use counts against the limit.
    session.charge(one.operation.value);
    session.charge(one.item.value["parameters"]);
    if (session.isFull) {
      reject(session, one, "", "maxValues", "the document has more values than the limit");
    } else importOperation(api, one, name);
  }
}

function reject(
  session: ImportSession,
  { method, path, operation, operationId = `${method} ${path}` }: FoundOperation,
  step: string,
  rule: string,
  reason: string,
): void {
  const message = `Cannot import ${method.toUpperCase()} "${clip(path, 100)}": ${reason}`;
  session.reject(operationId, operation.path + step, rule, message);
}

function importOperation(api: OpenApiImport, one: FoundOperation, wantedName: string): void {
  const { session, options, schemas } = api;
  const { item, operation, operationId } = one;
  const fail = (step: string, rule: string, reason: string): void =>
    reject(session, one, step, rule, reason);
  if (!documents.isSendable(one.method)) return fail("", "method", "its method cannot be sent");
  const draft: ImportedTool = {
    sourceName: operationId ?? `${one.method.toUpperCase()} ${one.path}`,
    wantedName,
    path: operation.path,
    namespace: options.namespace,
    hints: {},
    provider: {},
    deprecated: kit.flagIn(operation.value, "deprecated") === true,
  };
  const context: ReadContext = { ...api, warn: (...note) => session.warn(draft, ...note) };
  if (operationId !== undefined && operationId !== wantedName) {
    const message = "is the id of several operations; each is named after its path";
    const path = `${operation.path}/operationId`;
    context.warn(path, "operationId", `"${clip(operationId)}" ${message}`);
  }
  const parameters = readParameters(context, item, operation);
  if (typeof parameters === "string") return fail("/parameters", "parameters", parameters);
  const inPath = parameters.flatMap(({ binding }) => binding.in === "path" ? [binding.name] : []);
  const wrongPath = pathProblem(one.path, new Set(inPath));
  if (wrongPath !== undefined) return fail("", "path", wrongPath);
  const body = bodyOf(context, one, parameters);
  if (body === null) {
    return fail("/requestBody", "$ref", "the document has no target for the reference to the body");
  }
  const { schema, refs } = inputOf(parameters, body);
  draft.parameters = schemas.withDefinitions(schema, refs, "input") as JsonSchemaObject;
  // The responses of a HEAD have descriptions as for a GET, but no body.
  const returns = options.returns === false || one.method === "head"
    ? undefined
    : readReturns(context, operation);
  const onlyReads = documents.METHOD_HINTS.get(one.method.toLowerCase())?.readOnlyHint === true;
  const isWarning = options.returns === "reads" && !onlyReads && api.client !== undefined;
  if (!isWarning) draft.returns = returns;
  if (body !== undefined && body.examples.length > 0) draft.examples = body.examples;
  readDescription(context, draft, one);
  bindTool(api, context, draft, one, parameters, body);
  if (isWarning && returns !== undefined) warnOfMisfits(draft, returns);
  session.add(draft);
}

/** Replaces the failure of an invalid result by a warning. */
function warnOfMisfits(draft: ImportedTool, returns: JsonSchema): void {
  const { execute, sourceName } = draft;
  if (execute === undefined) return;
  let fits: ((value: unknown) => boolean) | undefined;
  draft.execute = async (args, context) => {
    const result = await execute(args, context) as ToolResult;
    if (!result.ok) return result;
    fits ??= checkWithoutEngine(returns);
    if (!fits(result.content)) {
      const message = `The response to ${sourceName} does not match its schema; the call was made`;
      context.metadata({ type: "warning", message });
    }
    return result;
  };
}

const BODILESS: ReadonlySet<string> = new Set(["get", "head"]);

/** The body of an operation; `null` if its reference has no target. */
function bodyOf(
  context: ReadContext,
  one: FoundOperation,
  parameters: readonly ReadParameter[],
): ReadBody | undefined | null {
  const raw = one.operation.value["requestBody"];
  if (raw === undefined) return undefined;
  const path = `${one.operation.path}/requestBody`;
  const located = context.document.resolve(raw, path);
  if (located === undefined) return null;
  if (BODILESS.has(one.method.toLowerCase())) {
    context.warn(path, "requestBody", `A ${one.method.toUpperCase()} has no body; it is omitted`);
    return undefined;
  }
  return readBody(context, located, new Set(parameters.map(({ binding }) => binding.key)));
}

function readDescription(
  context: ReadContext,
  draft: ImportedTool,
  { item, operation: { value, path }, operationId, method, path: template }: FoundOperation,
): void {
  const summary = wordsIn(value, "summary") ?? wordsIn(item.value, "summary");
  draft.title = summary;
  draft.description = wordsIn(value, "description") ?? wordsIn(item.value, "description");
  if (summary === undefined && draft.description === undefined && operationId !== undefined) {
    draft.title = `${method.toUpperCase()} ${template}`;
    draft.provider.title = null;
  }
  const tags = (kit.listIn(value, "tags") ?? []).filter(isWord);
  // Selections trust this tag, so a document cannot set it.
  draft.tags = tags.filter((tag) => tag !== "read-only");
  if (draft.tags.length < tags.length) {
    const message = 'The tag "read-only" is omitted: only the option tags can set it';
    context.warn(`${path}/tags`, "tags", message);
  }
  Object.assign(draft.provider, readToolHints(value));
  // Annotations of the source take precedence over annotations that plue has derived on export.
  const { annotations: hints = kit.objectIn(value, "x-tool-annotations") } = draft.provider;
  draft.hints = { ...documents.METHOD_HINTS.get(method.toLowerCase()), ...kit.readHints(hints) };
  if (hints !== undefined) draft.provider.annotations = hints;
  const meta = kit.objectIn(value, "x-tool-meta");
  if (meta !== undefined && !Object.hasOwn(meta, "provider")) draft.meta = meta;
}

/** Stores the request of a call in the tool's `meta`, and makes its `execute` function. */
function bindTool(
  api: OpenApiImport,
  { warn }: ReadContext,
  draft: ImportedTool,
  { operation: { value, path }, item, operationId, method, path: template }: FoundOperation,
  parameters: readonly ReadParameter[],
  body: ReadBody | undefined,
): void {
  const { document: { root }, options: { baseUrl }, client } = api;
  const { address: server, problem } = baseUrl === undefined
    ? serverOf(api, member(value, "servers") ?? member(item.value, "servers"), path, warn)
    : { address: documents.baseAddress(baseUrl), problem: "" };
  const security = kit.listIn(value, "security") ?? kit.listIn(root, "security");
  const operation: HttpOperation = {
    method: method.toUpperCase(),
    path: template,
    parameters: parameters.map(({ binding }) => binding),
    ...defined({
      operationId,
      server,
      body: body?.binding,
      security: security?.filter(isObject) as HttpOperation["security"],
    }),
  };
  draft.provider.operation = { ...operation };
  if (client === undefined) return;
  if (server === undefined) {
    return warn(path, "servers", `${problem}; the tool is a definition only`);
  }
  if (body !== undefined && body.binding === undefined) {
    return warn(path, "requestBody", "The body cannot be written: the tool is a definition only");
  }
  draft.execute = (args, context) => callOperation(operation, server, client, args, context);
}

/** Returns the address for calls. With credentials, this is one of the document's own servers. */
function serverOf(
  { session, document, options, client, warned }: OpenApiImport,
  own: unknown,
  path: string,
  warn: ReadContext["warn"],
): documents.FoundServer {
  const common = documents.findServer(member(document.root, "servers"), options);
  const server = own === undefined ? common : documents.findServer(own, options);
  if (client?.authorize === undefined || server.address === undefined) return server;
  const trusted = common.address && new URL(common.address).origin;
  const { origin } = new URL(server.address);
  if (origin !== trusted) {
    const why = "is ignored: credentials go to the document's server only";
    warn(path, "servers", `The operation's own server "${clip(origin)}" ${why}`);
    return common;
  }
  if (!warned.has(origin)) {
    warned.add(origin);
    const why = "which the document names: set baseUrl to choose the host";
    session.warn(undefined, "/servers", "authorize", `Credentials go to "${clip(origin)}", ${why}`);
  }
  return server;
}

const isFlag = (value: unknown): boolean => typeof value === "boolean";
const isOneOf = (...values: readonly unknown[]) => (value: unknown): boolean =>
  values.some((one) => jsonEqual(one, value));

/** The valid members of `x-tool-hints`, which plue's own export to OpenAPI writes. */
const TOOL_HINTS: { readonly [Hint in keyof ProviderHints]: (value: unknown) => boolean } = {
  strict: isFlag,
  deferLoading: isFlag,
  async: isFlag,
  eagerInputStreaming: isFlag,
  namespaceDescription: isText,
  annotations: (value) => value === null || isObject(value),
  allowedCallers: (value) => isListOf(value, isText),
  taskSupport: isOneOf("forbidden", "optional", "required"),
  cacheControl: isOneOf(
    ...[{ type: "ephemeral" }, { type: "ephemeral", ttl: "5m" }, { type: "ephemeral", ttl: "1h" }],
  ),
};

function readToolHints(operation: unknown): ProviderHints {
  const declared = kit.objectIn(operation, "x-tool-hints");
  const hints = Object.entries(TOOL_HINTS).filter(([hint, isValid]) =>
    isValid(member(declared, hint))
  );
  return Object.fromEntries(hints.map(([hint]) => [hint, member(declared, hint)]));
}
