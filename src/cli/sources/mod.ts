/**
 * Sources of tools: a module, an MCP server, an OpenAPI document, a list of tools in a provider's
 * format, a plue service. Each is recognised by its form, or by a prefix: `mcp:my-server`.
 *
 * @module
 */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import process from "node:process";
import { isAlias, parseDocument as readYaml, visit } from "yaml";
import { importMcpServer, type McpServerSource } from "../../adapters/mcp/mod.ts";
import { importToolsModule, registryIn } from "../../adapters/native/tools_module.ts";
import { importOpenApi } from "../../adapters/openapi/mod.ts";
import { ToolRegistry } from "../../adapters/typebox/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import type { ToolDispatcherOptions } from "../../execute/mod.ts";
import { type ImportResult, importTools } from "../../formats/mod.ts";
import type { RegistryErrorReport } from "../../registry/mod.ts";
import type { Selection } from "../../select/mod.ts";
import {
  cleanText,
  describeThrown,
  isObject,
  isToolName,
  isWord,
  type Tool,
  type ToolReader,
} from "../../tool/mod.ts";
import { type CommandIo, usageError } from "../terminal.ts";
import { fetchText, readService, type ServiceAddress } from "./service.ts";

/** Options for {@linkcode loadTools}. */
export interface SourceOptions {
  /** Headers for the only source over HTTP. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The address of the API of an OpenAPI document, instead of the address in the document. */
  readonly baseUrl?: string | undefined;
  /** The reader of the descriptions. A service receives it, because it returns one text. */
  readonly reader?: ToolReader | undefined;
  /** True if no sources are allowed: the tools come another way. */
  readonly mayBeNone?: boolean | undefined;
}

/** Loaded tools, and the settings of their modules. */
export interface LoadedTools extends AsyncDisposable {
  /** The sources in their original form, without possible credentials in URLs. */
  readonly sources: readonly string[];
  readonly registry: Registry;
  /** The module's options for its dispatcher. */
  readonly dispatch: ToolDispatcherOptions;
  /** The tools that the module makes public. */
  readonly selection: Selection;
  /** The module's folder for persistent state. */
  readonly state: string | undefined;
  /** The files to watch for changes of the tools. */
  readonly files: readonly string[];
  /** The services among the sources. */
  readonly services: readonly ServiceAddress[];
  /** The warnings and rejections of imports. */
  readonly imports: readonly ImportResult[];
}

/** How each kind of source is loaded. */
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
  /** The namespace of imported tools. */
  readonly namespace: string | undefined;
  readonly kind: Kind | undefined;
  readonly place: string;
}

/** The tools and settings that are loaded so far. */
interface Loading {
  readonly io: CommandIo;
  readonly options: SourceOptions;
  registry: Registry | undefined;
  /** The settings of the modules, each with the module that exports it. */
  readonly settings: Map<ModuleSetting, { readonly value: unknown; readonly place: string }>;
  readonly tools: Tool[];
  readonly servers: ((registry: Registry) => Promise<AsyncDisposable>)[];
  readonly files: string[];
  readonly services: ServiceAddress[];
  readonly imports: ImportResult[];
}

/** The exports of a module besides its tools. */
const MODULE_SETTINGS = ["transactions", "dispatch", "selection", "state"] as const;
type ModuleSetting = (typeof MODULE_SETTINGS)[number];

/**
 * Loads the tools of sources into one registry.
 *
 * @throws {CommandError} If a source cannot be used.
 */
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
      "Cannot send --header to several sources: a credential is for one of them only",
    );
  }
  const state: Loading = {
    ...{ io, options, registry: undefined, settings: new Map() },
    ...{ tools: [], servers: [], files: [], services: [], imports: [] },
  };
  for (const source of named) {
    try {
      await load(readName(source), state);
    } catch (error) {
      io.signal.throwIfAborted();
      const message = describeThrown(error, 2_000);
      throw usageError(
        withoutCredentials(
          message.startsWith("Cannot ") ? message : `Cannot use "${source}": ${message}`,
        ),
        { cause: error },
      );
    }
  }
  const registry = state.registry ?? new ToolRegistry({ onError: warner(io) });
  const setting = (name: ModuleSetting): unknown => state.settings.get(name)?.value;
  const transactions = setting("transactions");
  const servers: AsyncDisposable[] = [];
  const close = async (): Promise<void> => {
    await Promise.allSettled(servers.map((server) => server[Symbol.asyncDispose]()));
    await registry.dispose();
  };
  try {
    registry.registerTools(state.tools);
    for (const connect of state.servers) servers.push(await connect(registry));
  } catch (error) {
    await close().catch(() => {});
    io.signal.throwIfAborted();
    throw usageError(`${describeThrown(error, 2_000)}${takenHint(error, state)}`, { cause: error });
  }
  return {
    sources: named.map(withoutCredentials),
    registry,
    files: state.files,
    services: state.services,
    imports: state.imports,
    dispatch: {
      ...(transactions === undefined ? {} : { transactions } as ToolDispatcherOptions),
      ...setting("dispatch") as ToolDispatcherOptions | undefined,
    },
    selection: setting("selection") as Selection | undefined ?? {},
    state: setting("state") as string | undefined,
    [Symbol.asyncDispose]: close,
  };
}

/** Prints an error of a tool once, because the same function may fail at each listing. */
function warner({ stderr }: CommandIo): (report: RegistryErrorReport) => void {
  const told = new Set<string>();
  return ({ phase, toolId, error }) => {
    const what = `${phase} of "${toolId}"`;
    if (told.has(what)) return;
    told.add(what);
    stderr.write(`warning: ${what}: ${cleanText(describeThrown(error), 1_000)}\n`);
  };
}

/** Returns an instruction for two sources with equal tool names. */
function takenHint(error: unknown, { imports, servers }: Loading): string {
  const isTaken = /already|taken/.test(describeThrown(error));
  return isTaken && imports.length + servers.length > 0
    ? "; give an imported source a namespace of its own: other=…"
    : "";
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
  const { kind, place } = readName(source);
  if (isUrl(place)) return URL.canParse(place) && isLoopback(place);
  return kind !== "mcp" && (kind !== undefined || !/\s/.test(place) || existsSync(place));
}

async function load(name: SourceName, state: Loading): Promise<void> {
  const { place } = name;
  if (isUrl(place)) {
    const { username, password } = new URL(place);
    if (username !== "" || password !== "") {
      // The URL is not repeated: a password may have any character.
      throw usageError(
        'Cannot use a URL with a user and a password: they go into --header "authorization: Basic …"',
      );
    }
  }
  const kind = name.kind ?? await recognise(name, state);
  if (kind !== "loaded") await KINDS[kind](name, state);
}

/** The names of sources that are documents. */
const DOCUMENT = /\.(?:json|ya?ml)(?:[?#].*)?$/i;

function isLoopback(place: string): boolean {
  const { hostname } = new URL(place);
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/**
 * Determines the kind of a source. A service has to be loaded, because only its tools identify it.
 */
async function recognise(name: SourceName, state: Loading): Promise<Kind | "loaded"> {
  const { place } = name;
  if (place === "-" || DOCUMENT.test(place)) return "tools";
  if (isUrl(place)) {
    const { pathname, search } = new URL(place);
    // The address of a service has no query. The risks and tags of a service are trusted, so a
    // service on another host must be declared: plue:https://…
    if (/\/mcp\/?$/.test(pathname) || search !== "" || !isLoopback(place)) return "mcp";
    return await addService(place, state) ? "loaded" : "mcp";
  }
  return /\s/.test(place) && !existsSync(place) ? "mcp" : "module";
}

async function loadModule({ namespace, place }: SourceName, state: Loading): Promise<void> {
  if (namespace !== undefined) {
    throw usageError(`Cannot give the module "${place}" a namespace: its tools have their own`);
  }
  const exports = await importToolsModule(place).catch((error: Error) => {
    const { code } = (error.cause ?? {}) as { readonly code?: unknown };
    if (code !== "ERR_UNKNOWN_FILE_EXTENSION") throw error;
    throw usageError(
      `Cannot load "${place}": this Node does not read TypeScript; use Node 22.18 or later, Bun or ` +
        "Deno, or compile it",
      { cause: error },
    );
  });
  if (!URL.canParse(place)) state.files.push(resolve(place));
  readSettings(place, exports, state);
  const registry = registryIn(exports);
  if (registry === undefined) {
    const tools = Object.values(exports).flat().filter(isToolLike);
    if (tools.length === 0) {
      throw usageError(
        `Cannot use the tools of "${place}": it must export a ToolRegistry, as "registry" or by ` +
          "default, or tools",
      );
    }
    // A tool that is exported by name and by default is one tool.
    state.tools.push(...new Set(tools));
    return;
  }
  if (state.registry !== undefined) {
    throw usageError(
      `Cannot use "${place}" beside another module with a registry: export its tools as a list`,
    );
  }
  state.registry = registry;
}

/**
 * Reads the settings of a module. They apply to the tools of all sources, so only one module may
 * have each.
 */
function readSettings(
  place: string,
  exports: Readonly<Record<string, unknown>>,
  { settings }: Loading,
): void {
  for (const name of MODULE_SETTINGS) {
    const value = exports[name];
    if (value === undefined || isToolLike(value)) continue;
    const isRight = name === "state" ? isWord(value) : isObject(value);
    if (!isRight) {
      const wanted = name === "state" ? "a folder" : "an object";
      throw usageError(`Cannot use "${place}": its export ${name} must be ${wanted}`);
    }
    const other = settings.get(name);
    if (other !== undefined) {
      throw usageError(
        `Cannot use "${place}" and "${other.place}": both export ${name}, which applies to all tools`,
      );
    }
    settings.set(name, { value, place });
  }
}

/**
 * Checks by shape: the module may use another copy of plue, or none and define its tools as data.
 */
function isToolLike(value: unknown): value is Tool {
  return isObject(value) && typeof value["name"] === "string" &&
    (typeof value["description"] === "string" || typeof value["description"] === "function");
}

function loadMcp(
  { namespace = "mcp", place }: SourceName,
  { io, options, servers }: Loading,
): void {
  const { headers } = options;
  servers.push(async (registry) => {
    try {
      return await importMcpServer(isUrl(place) ? place : shellCommand(place), {
        namespace,
        registry,
        signal: io.signal,
        ...(headers === undefined ? {} : { http: { requestInit: { headers } } }),
        onError: (error) =>
          io.stderr.write(`warning: ${cleanText(describeThrown(error), 1_000)}\n`),
      });
    } catch (cause) {
      // The program is started by a shell. The rest of the line may be secret.
      const [program = ""] = place.trim().split(/[\s=]/, 1);
      const why = describeThrown(cause, 2_000).replace(/ "(?:sh|cmd)":/, ` "${program}":`);
      throw new Error(why, { cause });
    }
  });
}

/** Returns the program of a command line, which the user's shell parses. */
function shellCommand(line: string): McpServerSource {
  return process.platform === "win32"
    ? { command: "cmd", args: ["/d", "/s", "/c", line] }
    : { command: "sh", args: ["-c", `exec ${line}`] };
}

async function loadService({ place }: SourceName, state: Loading): Promise<void> {
  if (/[?#]/.test(place)) {
    throw usageError(`Cannot use "${place}": the address of a plue service has no query`);
  }
  if (!await addService(place, state)) {
    throw usageError(`Cannot use "${place}": the server there is not a plue service`);
  }
}

async function addService(place: string, state: Loading): Promise<boolean> {
  const service = { url: place.replace(/\/$/, ""), headers: state.options.headers ?? {} };
  const tools = await readService(service, state.io.signal, state.options.reader);
  if (tools === undefined) return false;
  state.tools.push(...tools);
  state.services.push(service);
  return true;
}

async function loadDocument({ namespace, place, kind }: SourceName, state: Loading): Promise<void> {
  const document = parseDocument(place, await readPlace(place, state));
  if (!isUrl(place) && place !== "-") state.files.push(resolve(place));
  const isOpenApi = kind === "openapi" ||
    isObject(document) && (document["openapi"] ?? document["swagger"]) !== undefined;
  const { headers, baseUrl } = state.options;
  const named = baseUrl ?? (isUrl(place) ? place : undefined);
  const imported = isOpenApi
    ? importOpenApi(document, {
      namespace: namespace ?? "api",
      fetch: (url, request) => fetch(url, request),
      ...(isUrl(place) ? { documentUrl: place } : {}),
      ...(baseUrl === undefined ? {} : { baseUrl }),
      ...(headers === undefined ? {} : {
        authorize({ server = "" }) {
          if (originOf(server) === originOf(named)) return { headers };
          throw usageError(
            `Cannot send --header to "${originOf(server)}", which the document names: give it in ` +
              "--base-url",
          );
        },
      }),
    })
    : importTools("auto", document, namespace === undefined ? {} : { namespace });
  if (imported.source === undefined && !isOpenApi) {
    throw usageError(
      `Cannot use "${place}": it is neither an OpenAPI document nor a list of tools in the shape of ` +
        "one provider",
    );
  }
  const [rejected] = imported.rejected;
  if (imported.tools.length === 0 && rejected !== undefined) throw usageError(rejected.message);
  state.imports.push(imported);
  state.tools.push(...imported.tools);
}

function originOf(address: string | undefined): string | undefined {
  return address !== undefined && URL.canParse(address) ? new URL(address).origin : undefined;
}

async function readPlace(place: string, { io, options }: Loading): Promise<string> {
  if (place === "-") return await text(io.stdin);
  if (!isUrl(place)) return await readFile(place, "utf8");
  const { response, text: read } = await fetchText(place, {
    headers: options.headers ?? {},
    signal: io.signal,
  });
  if (!response.ok) throw usageError(`Cannot read ${place}: it answered ${response.status}`);
  return read;
}

/** Parses JSON or YAML. JSON first: it is faster, and its errors are about JSON. */
function parseDocument(place: string, text: string): unknown {
  const isJson = /^\s*[[{]/.test(text);
  try {
    return isJson ? JSON.parse(text) : parseYaml(text);
  } catch (cause) {
    const why = describeThrown(cause);
    throw usageError(`Cannot read ${place} as ${isJson ? "JSON" : "YAML"}: ${why}`, { cause });
  }
}

/** The maximum number of anchors and aliases: the parser compares each alias with all anchors. */
const MAX_ANCHORS = 10_000;

/**
 * Parses YAML, without the parser's warnings, which quote the document. The parser detects duplicate
 * keys in quadratic time, so the last one is used, as in JSON.
 */
function parseYaml(text: string): unknown {
  const document = readYaml(text, { uniqueKeys: false, logLevel: "error" });
  for (const error of document.errors) throw error;
  let count = 0;
  visit(document, {
    Node(_key, node) {
      if (!isAlias(node) && node.anchor === undefined || ++count <= MAX_ANCHORS) return;
      throw new RangeError(`it has more than ${MAX_ANCHORS} anchors and aliases`);
    },
  });
  return document.toJS();
}
