/**
 * OpenAPI 3.0, 3.1 and 3.2: each operation becomes a tool.
 *
 * @module
 */

import { clip } from "../../../schema/mod.ts";
import { copyJson, type JsonSchemaObject } from "../../../tool/mod.ts";
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
import type { Draft } from "../draft.ts";
import type { Intake } from "../intake.ts";
import type { OpenApiImportOptions } from "../types.ts";
import { type ReadBody, readBody } from "./body.ts";
import { OpenApiDocument } from "./document.ts";
import { type Caller, callOperation } from "./execute.ts";
import {
  BODILESS,
  findOperations,
  type Found,
  isSendable,
  METHODS,
  nameOperations,
  pathName,
} from "./find_operations.ts";
import { inputOf } from "./input.ts";
import { readTaughtHints } from "./taught_hints.ts";
import type { HttpOperation } from "./operation.ts";
import { type ParameterReader, type ReadParameter, readParameters } from "./parameters.ts";
import { readResponses } from "./responses.ts";
import { SchemaReader } from "./schemas.ts";
import { secretsOf } from "./secrets.ts";
import { baseOf, serverOf } from "./servers.ts";
import { pathProblem } from "./template.ts";

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

class OperationReader {
  readonly #intake: Intake;
  readonly #document: OpenApiDocument;
  readonly #schemas: SchemaReader;
  readonly #options: OpenApiImportOptions;
  readonly #base: string | undefined;
  readonly #secrets: ReadonlySet<string>;
  readonly #caller: Caller | undefined;
  /** The origins that get credentials, of which there was a warning. */
  readonly #warned = new Set<string>();

  constructor(
    intake: Intake,
    root: Members,
    options: OpenApiImportOptions,
    base: string | undefined,
  ) {
    const { fetch, authorize, maxResponseBytes = MAX_RESPONSE_BYTES } = options;
    this.#intake = intake;
    this.#document = new OpenApiDocument(root, (part) => intake.charge(part));
    this.#schemas = new SchemaReader(this.#document, (path, keyword, message) => {
      intake.warn(undefined, path, keyword, message);
    });
    this.#options = options;
    this.#base = base;
    this.#secrets = secretsOf(this.#document);
    this.#caller = fetch === undefined ? undefined : { fetch, authorize, maxResponseBytes };
  }

  run(): void {
    const found = findOperations(this.#intake, this.#document);
    const names = nameOperations(found);
    for (const one of found) {
      // Paths may share one object: what is read again is paid for again.
      this.#intake.charge(one.operation.value);
      this.#intake.charge(one.item.value["parameters"]);
      if (this.#intake.isFull) {
        this.#rejected(one, "", "maxValues", "the document unfolds to more values than the limit");
      } else this.#read(one, names.get(one) ?? pathName(one));
    }
  }

  #rejected(one: Found, step: string, rule: string, why: string): void {
    this.#intake.reject(
      one.operationId ?? `${one.method} ${one.path}`,
      one.operation.path + step,
      rule,
      `Cannot import ${one.method.toUpperCase()} "${clip(one.path, 100)}": ${why}`,
    );
  }

  #read(one: Found, wantedName: string): void {
    const { item, operation, operationId } = one;
    const { value } = operation;
    const deprecated = flagIn(value, "deprecated") === true;
    if (deprecated && this.#options.deprecated === false) {
      return this.#rejected(one, "/deprecated", "deprecated", "it is deprecated");
    }
    if (!isSendable(one.method)) {
      return this.#rejected(one, "", "method", "its method cannot be sent");
    }
    const draft: Draft = {
      sourceName: operationId ?? `${one.method.toUpperCase()} ${one.path}`,
      wantedName,
      path: operation.path,
      namespace: this.#options.namespace,
      hints: {},
      provider: {},
      deprecated,
    };
    const warn = (path: string, rule: string, message: string): void =>
      this.#intake.warn(draft, path, rule, message);
    if (operationId !== undefined && operationId !== wantedName) {
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
    const inPath = parameters.flatMap(({ binding }) => binding.in === "path" ? [binding.name] : []);
    const wrongPath = pathProblem(one.path, new Set(inPath));
    if (wrongPath !== undefined) return this.#rejected(one, "", "path", wrongPath);
    const body = this.#body(reader, one, parameters);
    if (body === null) {
      return this.#rejected(one, "/requestBody", "$ref", "its body leads nowhere in the document");
    }
    const { schema, refs } = inputOf(parameters, body);
    draft.parameters = this.#schemas.withDefinitions(schema, refs, "input") as JsonSchemaObject;
    // A document describes a HEAD as the GET that it stands for, but no body comes.
    if (this.#options.returns !== false && one.method !== "head") {
      draft.returns = readResponses(reader, operation);
    }
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

  /**
   * Where the calls of an operation go by the word of the document. Credentials follow the servers
   * of the whole document: no single operation takes them elsewhere.
   */
  #server(
    own: unknown,
    one: Found,
    warn: (path: string, rule: string, message: string) => void,
  ): string | undefined {
    const { serverVariables = {} } = this.#options;
    const common = serverOf(member(this.#document.root, "servers"), serverVariables);
    const server = own === undefined ? common : serverOf(own, serverVariables);
    if (this.#caller?.authorize === undefined || server === undefined) return server;
    const trusted = common === undefined ? undefined : new URL(common).origin;
    const { origin } = new URL(server);
    if (origin !== trusted) {
      warn(
        one.operation.path,
        "servers",
        `Its own server is at "${clip(origin)}", where credentials do not go: it is left out`,
      );
      return common;
    }
    if (!this.#warned.has(origin)) {
      this.#warned.add(origin);
      this.#intake.warn(
        undefined,
        "/servers",
        "authorize",
        `Credentials go to "${
          clip(origin)
        }", because the document says so: give baseUrl to decide it`,
      );
    }
    return server;
  }

  #bind(
    draft: Draft,
    one: Found,
    parameters: readonly ReadParameter[],
    body: ReadBody | undefined,
    warn: (path: string, rule: string, message: string) => void,
  ): void {
    const { operation: { value }, item } = one;
    const server = this.#base ??
      this.#server(member(value, "servers") ?? member(item.value, "servers"), one, warn);
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
        : { security: security.filter(isMembers) as NonNullable<HttpOperation["security"]> }),
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
