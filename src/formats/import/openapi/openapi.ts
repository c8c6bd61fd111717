/**
 * OpenAPI 3.0, 3.1 and 3.2: each operation becomes a tool.
 *
 * @module
 */

import { clip } from "../../../schema/mod.ts";
import {
  copyJson,
  type JsonSchemaObject,
  pointerStep,
  setOwn,
  type ToolAnnotations,
} from "../../../tool/mod.ts";
import { readHints } from "../annotations.ts";
import {
  flagIn,
  isMembers,
  listIn,
  member,
  type Members,
  messageOf,
  objectIn,
  textIn,
  wordsIn,
} from "../fields.ts";
import type { Draft, Intake } from "../intake.ts";
import type { OpenApiImportOptions } from "../types.ts";
import { type ReadBody, readBody } from "./body.ts";
import { type Located, OpenApiDocument } from "./document.ts";
import { type Caller, callOperation } from "./execute.ts";
import { readTaughtHints } from "./taught_hints.ts";
import type { HttpOperation } from "./operation.ts";
import { type ParameterReader, type ReadParameter, readParameters } from "./parameters.ts";
import { splitTemplate } from "./request.ts";
import { readResponses } from "./responses.ts";
import { type ReadSchema, SchemaReader } from "./schemas.ts";
import { baseOf, serverOf } from "./servers.ts";

/** What each method promises, as HTTP has it. `fetch` sends no other but those of its owner. */
const METHODS: ReadonlyMap<string, ToolAnnotations> = new Map<string, ToolAnnotations>([
  ["get", { readOnlyHint: true, idempotentHint: true }],
  ["head", { readOnlyHint: true, idempotentHint: true }],
  ["options", { readOnlyHint: true, idempotentHint: true }],
  ["query", { readOnlyHint: true, idempotentHint: true }],
  ["put", { readOnlyHint: false, idempotentHint: true }],
  ["delete", { readOnlyHint: false, idempotentHint: true, destructiveHint: true }],
  ["post", { readOnlyHint: false }],
  ["patch", { readOnlyHint: false }],
]);

/** Methods that `fetch` refuses, and those whose request has no body. */
const REFUSED: ReadonlySet<string> = new Set(["trace", "connect", "track"]);
const BODILESS: ReadonlySet<string> = new Set(["get", "head"]);

const METHOD = /^[A-Za-z]{1,32}$/;
/** What would end a path, or be read as something else in it. */
const PATH_END = /[?#\\\s\p{Cc}]/u;
const MAX_RESPONSE_BYTES = 1_048_576;

/** Whether a document is OpenAPI's. */
export function looksLikeOpenApi(document: unknown): boolean {
  return textIn(document, "openapi") !== undefined || textIn(document, "swagger") !== undefined;
}

/** Reads the operations of a document. */
export function readOpenApi(
  intake: Intake,
  document: unknown,
  options: OpenApiImportOptions,
): void {
  const base = checkOptions(options);
  const version = textIn(document, "openapi");
  if (!isMembers(document) || version === undefined || !/^3\.[0-2](\.|$)/.test(version)) {
    return intake.reject(
      undefined,
      "",
      "openapi",
      'Cannot read the document: its "openapi" must be a version from "3.0" to "3.2"',
    );
  }
  let root: Members;
  try {
    root = copyJson(document, "the document");
  } catch (cause) {
    return intake.reject(
      undefined,
      "",
      "document",
      messageOf(cause).replace("Cannot copy", "Cannot read"),
    );
  }
  new OperationReader(intake, root, options, base).run();
}

/** @throws {TypeError | RangeError} If an option is wrong. */
function checkOptions(options: OpenApiImportOptions): string | undefined {
  const { fetch, execute, baseUrl, maxResponseBytes = MAX_RESPONSE_BYTES } = options;
  if (fetch !== undefined && execute !== undefined) {
    throw new TypeError("Cannot import tools: give fetch or execute, not both");
  }
  if (fetch !== undefined && typeof fetch !== "function") {
    throw new TypeError("Cannot import tools: fetch must be a function");
  }
  if (!Number.isInteger(maxResponseBytes) || maxResponseBytes < 1) {
    throw new RangeError(
      `Cannot import tools: maxResponseBytes must be a whole number above 0, not "${maxResponseBytes}"`,
    );
  }
  if (baseUrl === undefined) return undefined;
  const base = typeof baseUrl === "string" ? baseOf(baseUrl) : undefined;
  if (base === undefined) {
    throw new TypeError(
      `Cannot import tools: baseUrl must be an address with "https:" or "http:", without credentials, query or fragment, not "${
        clip(String(baseUrl))
      }"`,
    );
  }
  return base;
}

/** An operation of the document, before it is read. */
interface Found {
  readonly method: string;
  readonly path: string;
  readonly item: Located;
  readonly operation: Located;
  readonly operationId: string | undefined;
}

class OperationReader {
  readonly #intake: Intake;
  readonly #document: OpenApiDocument;
  readonly #schemas: SchemaReader;
  readonly #options: OpenApiImportOptions;
  readonly #base: string | undefined;
  readonly #secrets: ReadonlySet<string>;
  readonly #caller: Caller | undefined;

  constructor(
    intake: Intake,
    root: Members,
    options: OpenApiImportOptions,
    base: string | undefined,
  ) {
    const { fetch, authorize, maxResponseBytes = MAX_RESPONSE_BYTES } = options;
    this.#intake = intake;
    this.#document = new OpenApiDocument(root);
    this.#schemas = new SchemaReader(this.#document, (path, keyword, message) => {
      intake.warn(undefined, path, keyword, message);
    });
    this.#options = options;
    this.#base = base;
    this.#secrets = secretsOf(this.#document);
    this.#caller = fetch === undefined ? undefined : { fetch, authorize, maxResponseBytes };
  }

  run(): void {
    const found = this.#find();
    const uses = new Map<string, number>();
    for (const { operationId = "" } of found) {
      uses.set(operationId, (uses.get(operationId) ?? 0) + 1);
    }
    for (const one of found) {
      if (this.#intake.isFull) {
        this.#rejected(one, "", "maxValues", "the schemas have reached their limit");
      } else this.#read(one, uses.get(one.operationId ?? "") === 1);
    }
  }

  #find(): readonly Found[] {
    const found: Found[] = [];
    const paths = objectIn(this.#document.root, "paths") ?? {};
    for (const path of Object.keys(paths)) {
      if (path.startsWith("x-")) continue;
      const at = `/paths${pointerStep(path)}`;
      const item = this.#document.resolve(paths[path], at);
      if (item === undefined) {
        this.#intake.reject(
          path,
          at,
          "$ref",
          `Cannot import "${
            clip(path)
          }": it must be an object of operations, and a reference must stay in the document`,
        );
        continue;
      }
      for (const [method, operation] of operationsOf(item)) {
        if (!this.#intake.count(operation.path)) return found;
        const operationId = wordsIn(operation.value, "operationId");
        found.push({ method, path, item, operation, operationId });
      }
    }
    return found;
  }

  #rejected(one: Found, step: string, rule: string, why: string): void {
    this.#intake.reject(
      one.operationId ?? `${one.method} ${one.path}`,
      one.operation.path + step,
      rule,
      `Cannot import ${one.method.toUpperCase()} "${clip(one.path, 100)}": ${why}`,
    );
  }

  #read(one: Found, hasOwnId: boolean): void {
    const { item, operation, operationId } = one;
    const { value } = operation;
    const deprecated = flagIn(value, "deprecated") === true;
    if (deprecated && this.#options.deprecated === false) {
      return this.#rejected(one, "/deprecated", "deprecated", "it is deprecated");
    }
    if (!METHOD.test(one.method) || REFUSED.has(one.method.toLowerCase())) {
      return this.#rejected(one, "", "method", "its method cannot be sent");
    }
    const draft: Draft = {
      sourceName: operationId ?? `${one.method.toUpperCase()} ${one.path}`,
      wantedName: hasOwnId && operationId !== undefined ? operationId : pathName(one),
      path: operation.path,
      namespace: this.#options.namespace,
      hints: {},
      provider: {},
      deprecated,
    };
    const warn = (path: string, rule: string, message: string): void =>
      this.#intake.warn(draft, path, rule, message);
    if (!hasOwnId && operationId !== undefined) {
      warn(
        `${operation.path}/operationId`,
        "operationId",
        `"${clip(operationId)}" is the id of several operations; each is named after its path`,
      );
    }
    const reader: ParameterReader = {
      document: this.#document,
      schemas: this.#schemas,
      secrets: this.#secrets,
      warn,
    };
    const parameters = readParameters(reader, item, operation);
    if ("message" in parameters) {
      return this.#rejected(one, "/parameters", "parameters", parameters.message);
    }
    const wrongPath = this.#pathProblem(one.path, parameters);
    if (wrongPath !== undefined) return this.#rejected(one, "", "path", wrongPath);
    const body = this.#body(reader, one, parameters);
    if (body === null) {
      return this.#rejected(one, "/requestBody", "$ref", "its body leads nowhere in the document");
    }
    const { schema, refs } = inputOf(parameters, body);
    draft.parameters = this.#schemas.withDefinitions(schema, refs, "input") as JsonSchemaObject;
    if (this.#options.returns !== false) draft.returns = readResponses(reader, operation);
    if (body !== undefined && body.examples.length > 0) draft.examples = body.examples;
    this.#describe(draft, one, operationId);
    this.#bind(draft, one, parameters, body, warn);
    this.#intake.add(draft);
  }

  #body(
    reader: ParameterReader,
    one: Found,
    parameters: readonly ReadParameter[],
  ): ReadBody | undefined | null {
    const raw = one.operation.value["requestBody"];
    if (raw === undefined) return undefined;
    const path = `${one.operation.path}/requestBody`;
    const located = this.#document.resolve(raw, path);
    if (located === undefined) return null;
    if (BODILESS.has(one.method.toLowerCase())) {
      reader.warn(path, "requestBody", `A ${one.method.toUpperCase()} has no body; it is left out`);
      return undefined;
    }
    return readBody(reader, located, new Set(parameters.map(({ binding }) => binding.key)));
  }

  #pathProblem(path: string, parameters: readonly ReadParameter[]): string | undefined {
    if (!path.startsWith("/")) return 'its path must begin with "/"';
    const inPath = parameters.flatMap(({ binding }) => binding.in === "path" ? [binding.name] : []);
    const names: string[] = [];
    for (const { text, name } of splitTemplate(path)) {
      if (name !== undefined) names.push(name);
      else if (PATH_END.test(text)) return "its path has a character that does not belong in one";
    }
    if (path.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))) {
      return 'its path has a segment "." or ".."';
    }
    const missing = names.find((name) => !inPath.includes(name));
    if (missing !== undefined) {
      return `its path names "${clip(missing)}", which is no parameter of it`;
    }
    const extra = inPath.find((name) => !names.includes(name));
    return extra === undefined ? undefined : `its parameter "${clip(extra)}" is not in its path`;
  }

  #describe(draft: Draft, one: Found, operationId: string | undefined): void {
    const { item, operation: { value } } = one;
    const summary = wordsIn(value, "summary") ?? wordsIn(item.value, "summary");
    draft.title = summary;
    draft.description = wordsIn(value, "description") ?? wordsIn(item.value, "description");
    if (summary === undefined && draft.description === undefined && operationId !== undefined) {
      draft.title = `${one.method.toUpperCase()} ${one.path}`;
      draft.provider.title = null;
    }
    draft.tags = (listIn(value, "tags") ?? []).filter((tag): tag is string =>
      typeof tag === "string" && tag !== ""
    );
    Object.assign(draft.provider, readTaughtHints(value));
    // What the tool's source said comes before what plue made of it.
    const { annotations: given = objectIn(value, "x-tool-annotations") } = draft.provider;
    draft.hints = { ...METHODS.get(one.method.toLowerCase()), ...readHints(given) };
    if (given !== undefined) draft.provider.annotations = given;
    const meta = objectIn(value, "x-tool-meta");
    if (meta !== undefined && !Object.hasOwn(meta, "provider")) draft.meta = meta;
  }

  #bind(
    draft: Draft,
    one: Found,
    parameters: readonly ReadParameter[],
    body: ReadBody | undefined,
    warn: (path: string, rule: string, message: string) => void,
  ): void {
    const { operation: { value }, item } = one;
    const servers = member(value, "servers") ?? member(item.value, "servers") ??
      member(this.#document.root, "servers");
    const server = this.#base ?? serverOf(servers, this.#options.serverVariables ?? {});
    const security = listIn(value, "security") ?? listIn(this.#document.root, "security");
    const operation: HttpOperation = {
      ...(one.operationId === undefined ? {} : { operationId: one.operationId }),
      method: one.method.toUpperCase(),
      path: one.path,
      ...(server === undefined ? {} : { server }),
      parameters: parameters.map(({ binding }) => binding),
      ...(body?.binding === undefined ? {} : { body: body.binding }),
      ...(security === undefined
        ? {}
        : { security: security as NonNullable<HttpOperation["security"]> }),
      ...(draft.provider.annotations === undefined ? { inferred: true } : {}),
    };
    draft.provider.operation = { ...operation };
    const caller = this.#caller;
    if (caller === undefined) return;
    if (server === undefined) {
      return warn(
        one.operation.path,
        "servers",
        "No server has an address that calls may go to: give baseUrl; the tool is a definition only",
      );
    }
    if (body !== undefined && body.binding === undefined) {
      return warn(
        one.operation.path,
        "requestBody",
        "The body cannot be written: the tool is a definition only",
      );
    }
    draft.execute = (args, context) => callOperation(operation, server, caller, args, context);
  }
}

/** The operations of a path, with the methods that OpenAPI 3.2 adds. */
function* operationsOf(item: Located): Generator<[string, Located]> {
  for (const key of Object.keys(item.value)) {
    const value = item.value[key];
    if (key === "additionalOperations" && isMembers(value)) {
      for (const method of Object.keys(value)) {
        const operation = value[method];
        const path = `${item.path}/${key}${pointerStep(method)}`;
        if (isMembers(operation)) yield [method, { value: operation, path }];
      }
    } else if ((METHODS.has(key) || REFUSED.has(key)) && isMembers(value)) {
      yield [key, { value, path: `${item.path}/${key}` }];
    }
  }
}

/** `get /pets/{petId}` as `get_pets_petId`. */
function pathName({ method, path }: Found): string {
  const words = path.split(/[{}/]/).filter((word) => word !== "");
  return [method.toLowerCase(), ...words].join("_");
}

/** One object schema for all arguments. Nothing else has a place to go, so it is closed. */
function inputOf(
  parameters: readonly ReadParameter[],
  body: ReadBody | undefined,
): ReadSchema & { readonly schema: JsonSchemaObject } {
  if (body?.whole !== undefined) return body.whole;
  const properties: Record<string, unknown> = {};
  const required: string[] = [];
  const refs = new Set<string>(body?.refs);
  for (const { binding: { key }, required: isRequired, read } of parameters) {
    setOwn(properties, key, read.schema);
    if (isRequired) required.push(key);
    for (const ref of read.refs) refs.add(ref);
  }
  for (const [name, schema] of body?.properties ?? []) setOwn(properties, name, schema);
  required.push(...body?.required ?? []);
  return {
    schema: {
      type: "object",
      properties,
      ...(required.length === 0 ? {} : { required }),
      additionalProperties: false,
    },
    refs,
  };
}

/** The keys that the API wants as credentials: a model has none, and must not be asked for one. */
function secretsOf(document: OpenApiDocument): ReadonlySet<string> {
  const schemes = objectIn(objectIn(document.root, "components"), "securitySchemes") ?? {};
  const secrets = new Set<string>();
  for (const name of Object.keys(schemes)) {
    const scheme = document.resolve(schemes[name], "")?.value;
    const key = textIn(scheme, "name");
    const place = textIn(scheme, "in");
    if (textIn(scheme, "type") !== "apiKey" || key === undefined || place === undefined) continue;
    secrets.add(`${place} ${place === "header" ? key.toLowerCase() : key}`);
  }
  return secrets;
}
