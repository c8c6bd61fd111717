/**
 * Sources of tools: a module, an MCP server, an OpenAPI document, a list of tools in a provider's
 * format, a plue service. Each is recognised by its form, or by a prefix: `mcp:my-server`.
 */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import process from "node:process";
import { isAlias, LineCounter, parseDocument as readYaml, visit } from "yaml";
import type { OAuthCallback } from "../../adapters/credentials/mod.ts";
import {
  type ImportedMcpServer,
  importMcpServer,
  type McpServerSource,
} from "../../adapters/mcp/mod.ts";
import { fetchOnce } from "../../adapters/http/runtime.ts";
import { importToolsModule, registryIn } from "../../adapters/native/tools_module.ts";
import { importOpenApi } from "../../adapters/openapi/mod.ts";
import { ToolRegistry } from "../../adapters/typebox/mod.ts";
import type { Registry, RegistryErrorReport } from "../../registry/mod.ts";
import type { ToolDispatcherOptions, TransactionManager } from "../../execute/mod.ts";
import {
  type ImportOptions,
  type ImportPins,
  type ImportResult,
  importTools,
  type ImportWarning,
  type PinnedImport,
} from "../../formats/mod.ts";
import type { Selection } from "../../select/mod.ts";
import {
  cleanText,
  describeThrown,
  isFunction,
  isObject,
  isText,
  isToolName,
  type Tool,
  type ToolReader,
} from "../../tool/mod.ts";
import { type CommandIo, readInput, usageError } from "../terminal.ts";
import { fetchText, readService } from "./service.ts";

interface SourceOptions {
  /** Headers for the only source over HTTP. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The address of the API of an OpenAPI document, instead of the address in the document. */
  readonly baseUrl?: string | undefined;
  /** The reader of the descriptions, for a service. */
  readonly reader?: ToolReader | undefined;
  /** True if there may be no sources, because the tools come over NATS. */
  readonly mayBeNone?: boolean | undefined;
  readonly importing?: DocumentOptions | undefined;
  readonly pins?: ImportPins | undefined;
}

export type DocumentOptions = Pick<
  ImportOptions,
  "include" | "exclude" | "risk" | "roles" | "scopes" | "beside"
>;

export interface LoadedTools extends AsyncDisposable {
  /** The sources in their original form, without possible credentials in URLs. */
  readonly sources: readonly string[];
  readonly registry: Registry;
  readonly dispatch: ToolDispatcherOptions;
  /** The tools that the module makes public. */
  readonly selection: Selection;
  /** The module's routes for the browsers of callers that give permission. */
  readonly callbacks: readonly OAuthCallback[];
  readonly files: readonly string[];
  readonly imports: readonly ImportResult[];
  readonly pinned: readonly PinnedImport[];
  readonly servers: readonly ImportedMcpServer[];
  /** The place of the module, if there is one. */
  readonly module: string | undefined;
}

const KINDS = {
  module: loadModule,
  mcp: loadMcp,
  openapi: loadDocument,
  tools: loadDocument,
  plue: loadService,
} as const satisfies Record<string, (name: SourceName, state: Loading) => unknown>;
type Kind = keyof typeof KINDS;

/** A source in its written form: `files=mcp:npx -y some-server`. */
interface SourceName {
  readonly namespace: string | undefined;
  readonly kind: Kind | undefined;
  readonly place: string;
}

interface Loading {
  readonly io: CommandIo;
  readonly options: SourceOptions;
  registry?: Registry | undefined;
  module?: string;
  readonly settings: {
    transactions?: TransactionManager;
    dispatch?: ToolDispatcherOptions;
    selection?: Selection;
    callback?: OAuthCallback | readonly OAuthCallback[];
  };
  readonly origins: Map<string, string>;
  readonly tools: Tool[];
  readonly servers: ((registry: Registry) => Promise<ImportedMcpServer>)[];
  readonly files: string[];
  readonly imports: ImportResult[];
  readonly pinned: PinnedImport[];
  /** The sources in the file of pins. */
  readonly pinKeys: Set<string>;
}

export async function loadTools(
  sources: readonly string[],
  io: CommandIo,
  options: SourceOptions = {},
): Promise<LoadedTools> {
  const named = sources.length > 0 ? sources : [io.env["PLUE_TOOLS"] ?? ""].filter(Boolean);
  if (named.length === 0 && options.mayBeNone !== true) {
    throw usageError(
      "Cannot find any tools: name a module, a URL, a document or a command with --from, or in " +
        "PLUE_TOOLS",
    );
  }
  if (options.headers !== undefined && named.length > 1) {
    throw usageError(
      "Cannot send --header to several sources: a credential is for one of them only; write the " +
        "sources into a plue.json, each with its headers",
    );
  }
  const state: Loading = {
    ...{ io, options, settings: {}, origins: new Map() },
    ...{ tools: [], servers: [], files: [], imports: [], pinned: [], pinKeys: new Set() },
  };
  for (const source of named) {
    try {
      await load(readName(source), state);
    } catch (cause) {
      io.signal.throwIfAborted();
      const why = describeThrown(cause, 2_000);
      const message = why.startsWith("Cannot ") ? why : `Cannot use "${source}": ${why}`;
      throw usageError(withoutCredentials(message), { cause });
    }
  }
  if (options.pins !== undefined && state.pinKeys.size === 0) {
    throw usageError('Cannot use "pins" for a module: it applies to servers and documents only');
  }
  if (options.baseUrl !== undefined && !state.imports.some(({ source }) => source === "openapi")) {
    throw usageError('Cannot use "baseUrl" without a document: it is the address of its API');
  }
  const { files, imports, pinned, settings } = state;
  const { transactions, dispatch, selection = {}, callback = [] } = settings;
  const registry = state.registry ?? new ToolRegistry({ onError: warner(io) });
  const servers: ImportedMcpServer[] = [];
  const close = async (): Promise<void> => {
    await Promise.allSettled(servers.map((server) => server[Symbol.asyncDispose]()));
    await registry.dispose({ signal: AbortSignal.timeout(END_MS) });
  };
  try {
    registry.registerTools(state.tools);
    for (const connect of state.servers) servers.push(await connect(registry));
  } catch (cause) {
    await close().catch(() => {});
    io.signal.throwIfAborted();
    const why = describeThrown(cause, 2_000);
    const isImported = imports.length + state.servers.length > 0;
    const hint = isImported && /already|taken/.test(why)
      ? '; put a namespace in front of an imported source, such as "other=<source>"'
      : "";
    throw usageError(why + hint, { cause });
  }
  return {
    sources: named.map(withoutCredentials),
    ...{ registry, files, imports, pinned, servers, selection, callbacks: [callback].flat() },
    module: state.module,
    dispatch: { ...(transactions && { transactions }), ...dispatch },
    [Symbol.asyncDispose]: close,
  };
}

/** The time in which running calls can end at the end of plue, in milliseconds. */
export const END_MS = 2_000;

/** Prints each error of a tool only once, because the same function may fail at each listing. */
function warner({ stderr }: CommandIo): (report: RegistryErrorReport) => void {
  const printed = new Set<string>();
  return ({ phase, toolId, error }) => {
    const what = `${phase} of "${toolId}"`;
    if (printed.has(what)) return;
    printed.add(what);
    stderr.write(`warning: ${what}: ${cleanText(describeThrown(error), 1_000)}\n`);
  };
}

/** Removes possible credentials from the URLs in a text: user, password, query and fragment. */
function withoutCredentials(text: string): string {
  return text.replaceAll(
    /(https?:\/\/)(?:[^\s"'/?#@]*@)?([^\s"'?#]*)(?:[?#](?:[^\s"']*[^\s"':;,.])?)?/gi,
    (_, scheme: string, rest: string) => scheme + rest,
  );
}

/** Parses `namespace=kind:location`; only the location is required. */
function readName(source: string): SourceName {
  const [, namespace, rest = source] = /^([\w.-]+)=(.+)$/s.exec(source) ?? [];
  if (namespace !== undefined && !isToolName(namespace)) {
    throw usageError(`Cannot use "${source}": "${namespace}" is not a valid namespace`);
  }
  const kind = (Object.keys(KINDS) as Kind[]).find((name) => rest.startsWith(`${name}:`));
  return { namespace, kind, place: kind === undefined ? rest : rest.slice(kind.length + 1) };
}

function isUrl(place: string): boolean {
  return /^https?:/i.test(place);
}

/** Returns true if a source is a module, a document or a service on this machine. */
export function isHere(source: string): boolean {
  const name = readName(source);
  const { place } = name;
  return isUrl(place) ? URL.canParse(place) && isLoopback(place) : recognise(name) !== "mcp";
}

/** Returns a source in a form that means the same in any folder: the path of a file is absolute. */
export function absoluteSource(source: string): string {
  const name = readName(source);
  const kind = isUrl(name.place) ? undefined : recognise(name);
  if (kind === undefined || kind === "mcp") return source;
  const path = resolve(name.place);
  if (!existsSync(path)) throw usageError(`Cannot use "${source}": there is no such file`);
  return source.slice(0, source.length - name.place.length) + path;
}

/**
 * Writes a source of `plue.json` in the form of `loadTools`: its path begins at the folder of the file.
 *
 * @param namespace The namespace of the tools of a document.
 */
export function sourceIn(folder: string, source: string, namespace: string): string {
  const name = { ...readName(source), namespace: undefined };
  const kind = recognise(name);
  const wrong = (why: string) => usageError(withoutCredentials(`Cannot use "${source}": ${why}`));
  if (kind === "mcp") throw wrong('it is an MCP server; name it with "command" or "url"');
  const place = isUrl(name.place) ? name.place : resolve(folder, name.place);
  if (!isUrl(place) && !existsSync(place)) throw wrong("there is no such file");
  const isDocument = kind === "tools" || kind === "openapi";
  return `${isDocument ? `${namespace}=` : ""}${kind === undefined ? "" : `${kind}:`}${place}`;
}

/** Returns a source in the form of a `plue.json`: its name, and its settings. */
export function sourceSettings(source: string): readonly [name: string, settings: object] {
  const name = readName(source);
  const { namespace = "first", kind, place } = name;
  if (recognise(name) !== "mcp") {
    const from = absoluteSource(kind === undefined ? place : `${kind}:${place}`);
    return [namespace, { from }];
  }
  if (isUrl(place)) return [namespace, { url: place }];
  const words = [...place.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)];
  const [command, ...args] = words.map(([, ...found]) => found.find((word) => word !== undefined));
  return [namespace, { command, args }];
}

async function load(name: SourceName, state: Loading): Promise<void> {
  const { place } = name;
  const { username = "", password = "" } = isUrl(place) ? new URL(place) : {};
  if (username + password !== "") {
    // The message does not repeat the URL, because a password may contain any character.
    throw usageError(
      'Cannot use a URL with a user and a password: pass them with --header "authorization: Basic …"',
    );
  }
  const kind = recognise(name) ?? (await addService(place, state) ? undefined : "mcp");
  if (kind !== undefined) await KINDS[kind](name, state);
}

const DOCUMENT = /\.(?:json|ya?ml)(?:[?#].*)?$/i;

function isLoopback(place: string): boolean {
  const { hostname } = new URL(place);
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** Returns the kind of a source by its form; `undefined` for a URL that may be a service. */
function recognise({ kind, place }: SourceName): Kind | undefined {
  if (kind !== undefined) return kind;
  if (place === "-" || DOCUMENT.test(place)) return "tools";
  if (!isUrl(place)) return /\s/.test(place) && !existsSync(place) ? "mcp" : "module";
  const { pathname, search } = new URL(place);
  // A URL with a query is not a service. A service's risks and tags are trusted, so one on another
  // host must be declared: plue:https://…
  return /\/mcp\/?$/.test(pathname) || search !== "" || !isLoopback(place) ? "mcp" : undefined;
}

/** Rejects the options of an import for tools of which no import is made. */
function rejectImporting(what: string, options: SourceOptions): void {
  const { pins, headers, importing: { beside: _, ...importing } = {} } = options;
  const own = { ...importing, pins, headers };
  const [field] = Object.entries(own).flatMap(([name, value]) => value === undefined ? [] : [name]);
  if (field !== undefined) {
    throw usageError(`Cannot use "${field}" for ${what}: it applies to servers and documents only`);
  }
}

/** Returns the pins of a source. @param key The name of the source in the file of pins. */
function pinsOf(key: string, { options: { pins }, pinKeys }: Loading): ImportPins | undefined {
  if (pins !== undefined && pinKeys.has(key)) {
    const why = `two sources have the namespace "${key}"`;
    throw usageError(`Cannot use "pins": ${why}; rename one, such as "other=<source>"`);
  }
  pinKeys.add(key);
  return pins;
}

async function loadModule({ namespace, place }: SourceName, state: Loading): Promise<void> {
  // Pins may be for other sources.
  rejectImporting(`the module "${place}"`, { ...state.options, pins: undefined });
  if (namespace !== undefined) {
    throw usageError(`Cannot set a namespace for the module "${place}": its tools have namespaces`);
  }
  const exports = await importToolsModule(place);
  state.module = place;
  if (!URL.canParse(place)) state.files.push(resolve(place));
  readSettings(place, exports, state);
  const registry = registryIn(exports);
  if (registry !== undefined && state.registry !== undefined) {
    throw usageError(
      `Cannot use "${place}" and another module with a registry: export its tools as a list`,
    );
  }
  state.registry ??= registry;
  if (registry !== undefined) return;
  const tools = Object.values(exports).flat().filter(isToolLike);
  if (tools.length === 0) {
    const wanted = 'it must export a ToolRegistry, as "registry" or by default, or tools';
    throw usageError(`Cannot use the tools of "${place}": ${wanted}`);
  }
  // A tool that is exported both by name and by default is added once.
  state.tools.push(...new Set(tools));
}

/** Reads the settings of a module. They apply to all tools, so only one module has each. */
function readSettings(
  place: string,
  exports: Readonly<Record<string, unknown>>,
  { settings, origins }: Loading,
): void {
  for (const name of ["transactions", "dispatch", "selection", "callback"] as const) {
    const value = exports[name];
    if (value === undefined || isToolLike(value)) continue;
    const isCallback = name === "callback";
    const all = [value].flat();
    const paths = new Set(all.map((one) => isFunction(one) && Object(one).path).filter(isText));
    if (isCallback ? paths.size !== all.length : !isObject(value)) {
      const wanted = isCallback ? "made by oauthCallback(), each with its own path" : "an object";
      throw usageError(`Cannot use "${place}": its export ${name} must be ${wanted}`);
    }
    const other = origins.get(name);
    if (other !== undefined) {
      throw usageError(
        `Cannot use "${place}" and "${other}": both export ${name}, which applies to all tools`,
      );
    }
    origins.set(name, place);
    Object.assign(settings, { [name]: value });
  }
}

/** Checks the fields: the module may use another copy of plue, or define tools as data. */
function isToolLike(value: unknown): value is Tool {
  return isObject(value) && typeof value["name"] === "string" &&
    (typeof value["description"] === "string" || typeof value["description"] === "function");
}

function loadMcp({ namespace = "mcp", place }: SourceName, state: Loading): void {
  const { io, options: { headers } } = state;
  const pins = pinsOf(namespace, state);
  state.servers.push(async (registry) => {
    try {
      return await importMcpServer(isUrl(place) ? place : shellCommand(place, io.env), {
        ...{ namespace, registry, pins },
        signal: io.signal,
        ...(headers === undefined ? {} : { http: { requestInit: { headers } } }),
        onError: (error) =>
          io.stderr.write(`warning: ${cleanText(describeThrown(error), 1_000)}\n`),
      });
    } catch (cause) {
      // A shell starts the program. The rest of the line may contain secrets.
      const [program = ""] = place.trim().split(/[\s=]/, 1);
      const why = describeThrown(cause, 2_000).replace(/ "(?:sh|cmd)":/, ` "${program}":`);
      throw new Error(why, { cause });
    }
  });
}

function shellCommand(line: string, variables: CommandIo["env"]): McpServerSource {
  const names = variables["PLUE_SOURCE_ENV"]?.split(",").filter((name) => variables[name]) ?? [];
  const env = Object.fromEntries(names.map((name) => [name, variables[name] ?? ""]));
  return process.platform === "win32"
    ? { command: "cmd", args: ["/d", "/s", "/c", line], env }
    : { command: "sh", args: ["-c", `exec ${line}`], env };
}

async function loadService({ place }: SourceName, state: Loading): Promise<void> {
  const why = /[?#]/.test(place)
    ? "the address of a plue service has no query"
    : await addService(place, state)
    ? undefined
    : "the server there is not a plue service";
  if (why !== undefined) throw usageError(`Cannot use "${place}": ${why}`);
}

async function addService(place: string, state: Loading): Promise<boolean> {
  const service = { url: place.replace(/\/$/, ""), headers: state.options.headers ?? {} };
  const tools = await readService(service, state.io.signal, state.options.reader);
  if (tools === undefined) return false;
  rejectImporting(`the plue service "${place}"`, { ...state.options, headers: undefined });
  state.tools.push(...tools);
  return true;
}

async function loadDocument({ namespace, place, kind }: SourceName, state: Loading): Promise<void> {
  const document = parseDocument(place, await readPlace(place, state));
  if (!isUrl(place) && place !== "-") state.files.push(resolve(place));
  const isOpenApi = kind === "openapi" ||
    isObject(document) && (document["openapi"] ?? document["swagger"]) !== undefined;
  const { headers, baseUrl, importing } = state.options;
  const named = baseUrl ?? (isUrl(place) ? place : undefined);
  const imported = isOpenApi
    ? importOpenApi(document, {
      ...importing,
      namespace: namespace ?? "api",
      fetch: fetchOnce,
      ...(isUrl(place) && { documentUrl: place }),
      ...(baseUrl !== undefined && { baseUrl }),
      ...(headers && {
        authorize({ server = "" }) {
          const [origin, wanted] = [server, named ?? ""].map((address) =>
            URL.canParse(address) ? new URL(address).origin : undefined
          );
          if (origin === wanted) return { headers };
          const why = "which the document names: give it in --base-url";
          throw usageError(`Cannot send --header to "${origin}", ${why}`);
        },
      }),
    })
    : importTools("auto", document, {
      ...importing,
      ...(namespace !== undefined && { namespace }),
    });
  if (imported.source === undefined && !isOpenApi) {
    const wanted = "an OpenAPI document nor a list of tools in the shape of one provider";
    const why = isPlueFile(document)
      ? `it is a file of sources; serve it with "plue serve -c ${place}"`
      : `it is neither ${wanted}`;
    throw usageError(`Cannot use "${place}": ${why}`);
  }
  if (headers !== undefined && !isOpenApi && !isUrl(place)) {
    throw usageError(`Cannot use "headers" for "${place}": a list of tools sends no requests`);
  }
  const [rejected] = imported.rejected;
  if (imported.tools.length === 0 && rejected !== undefined) throw usageError(rejected.message);
  state.imports.push(imported);
  const [unsent] = unsentCalls([imported]);
  // A file has the setting `baseUrl`, which the message names.
  if (unsent !== undefined && importing === undefined) {
    const why = unsent.message.split(": ")[0] ?? "";
    state.io.stderr.write(
      `warning: ${withoutCredentials(place)}: ${cleanText(why, 200)}. ${BASE_URL_ADVICE}\n`,
    );
  }
  const key = namespace ?? (isOpenApi ? "api" : "");
  const pinned = await pinsOf(key, state)?.check(imported, key);
  if (pinned !== undefined) state.pinned.push(pinned);
  const { tools, held = [] } = pinned ?? { ...imported, held: undefined };
  state.tools.push(...tools, ...held.map(({ tool }) => tool));
}

/** Returns true for a document that is a `plue.json`, and not a list of tools. */
export function isPlueFile(document: unknown): boolean {
  return isObject(document) && ["sources", "mcpServers"].some((name) => isObject(document[name]));
}

/** Advice for a document whose servers calls may not go to. */
export const BASE_URL_ADVICE = "Give the address of the API in --base-url";

/** Returns the warnings of tools that are definitions only, because they have no allowed server. */
export function unsentCalls(imports: readonly ImportResult[]): readonly ImportWarning[] {
  return imports.flatMap(({ warnings }) => warnings)
    .filter(({ rule, message }) => rule === "servers" && message.endsWith("a definition only"));
}

async function readPlace(place: string, { io, options }: Loading): Promise<string> {
  if (!isUrl(place)) return await readInput(place, io);
  const { response, text: read } = await fetchText(place, options.headers ?? {}, io.signal);
  if (!response.ok) throw usageError(`Cannot read ${place}: it responded with ${response.status}`);
  return read;
}

/** Parses JSON or YAML. JSON first: it is faster, and its errors are about JSON. */
function parseDocument(place: string, text: string): unknown {
  const isJson = /^\s*[[{]/.test(text);
  try {
    rejectManySigns(text, isJson ? JSON_SIGNS : YAML_SIGNS);
    return isJson ? JSON.parse(text) : parseYaml(text);
  } catch (cause) {
    const why = describeThrown(cause);
    throw usageError(`Cannot read ${place} as ${isJson ? "JSON" : "YAML"}: ${why}`, { cause });
  }
}

/** The characters that may begin a value, and their maximum number. */
const JSON_SIGNS = [/[\n,[\]{}]/g, 6_000_000] as const;
const YAML_SIGNS = [/[\n,[\]{}!"']|:(?=\s)|(?<=\s)[&*?:-]/g, 1_000_000] as const;

/** Rejects a text with too many values before it is parsed: its parser cannot be interrupted. */
function rejectManySigns(text: string, [signs, most]: readonly [RegExp, number]): void {
  let count = 0;
  for (const _ of text.matchAll(signs)) {
    if (++count > most) {
      throw new RangeError(`it has more than ${most} lines, commas, brackets and other signs`);
    }
  }
}

/** The maximum number of anchors and aliases: the parser compares each alias with all anchors. */
const MAX_ANCHORS = 10_000;

/**
 * Parses YAML without warnings, which quote the document. The parser detects duplicate keys in
 * quadratic time, so the last one is used, as in JSON.
 */
function parseYaml(text: string): unknown {
  const lineCounter = new LineCounter();
  // The parser's own positions of errors take quadratic time.
  const options = { uniqueKeys: false, logLevel: "error", prettyErrors: false } as const;
  const document = readYaml(text, { ...options, lineCounter });
  for (const { message, pos: [start] } of document.errors) {
    const { line, col } = lineCounter.linePos(start);
    throw new SyntaxError(`${message} at line ${line}, column ${col}`);
  }
  let count = 0;
  visit(document, {
    Node(_key, node) {
      if (!isAlias(node) && node.anchor === undefined || ++count <= MAX_ANCHORS) return;
      throw new RangeError(`it has more than ${MAX_ANCHORS} anchors and aliases`);
    },
  });
  return document.toJS();
}
