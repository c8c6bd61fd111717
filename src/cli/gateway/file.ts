/** The file `plue.json`: its type, its variables, and the checks with line and column. */

import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Caller, JwtAuthOptions } from "../../adapters/hono/mod.ts";
import type { McpCommand } from "../../adapters/mcp/mod.ts";
import type { ViewOptions } from "../../finding/mod.ts";
import { explainWithoutEngine } from "../../schema/mod.ts";
import type { JournalOptions } from "../../adapters/journal/mod.ts";
import type { RuleDocument } from "../../adapters/rules/mod.ts";
import type { SelectionCriteria } from "../../select/mod.ts";
import {
  attemptOr,
  defined,
  describeThrown,
  isObject,
  type Issue,
  pointerStep,
  type ToolLabels,
} from "../../tool/mod.ts";
import { type DocumentOptions, sourceIn } from "../sources/mod.ts";
import { isStoreAddress, STORE_FORMS } from "../store.ts";
import { usageError } from "../terminal.ts";
import { SettingsDocument } from "./document.ts";
import schema from "./plue.schema.json" with { type: "json" };

export interface SourceSettings
  extends Partial<Omit<McpCommand, "stderr">>, Pick<DocumentOptions, "risk" | "roles" | "scopes"> {
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly url?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly from?: string;
  readonly baseUrl?: string;
  readonly disabled?: boolean;
  readonly namespace?: string;
  readonly labels?: ToolLabels;
  readonly pins?: string;
  readonly views?: readonly (ViewOptions & { readonly tool: string })[];
}

/** A source in the form of a desktop client, with the names of Windsurf and Zed for some fields. */
interface ClientSettings extends SourceSettings {
  readonly serverUrl?: string;
  readonly disabledTools?: readonly string[];
  readonly enabled?: boolean;
}

export interface CallerSettings
  extends Pick<Caller, "role" | "scopes" | "maxRisk" | "explain" | "tenant"> {
  readonly operator?: boolean;
}

export interface IssuerSettings
  extends CallerSettings, Pick<JwtAuthOptions, "jwksUrl" | "secret" | "requiredScopes"> {
  readonly issuer: string;
  readonly audience: string;
}

/** The settings of a file, as `plue.schema.json` describes them, with the values of variables. */
export interface PlueSettings {
  readonly sources?: { readonly [name: string]: SourceSettings };
  readonly mcpServers?: { readonly [name: string]: ClientSettings };
  readonly callers?: {
    readonly tokens?: { readonly [name: string]: CallerSettings & { readonly token: string } };
    readonly jwt?: readonly IssuerSettings[];
  };
  readonly selection?: SelectionCriteria;
  readonly rules?: readonly RuleDocument[];
  readonly limits?: {
    readonly requestsPerMinute?: number;
    readonly callsAtOnce?: number;
    readonly callsAtOncePerTool?: number;
    readonly timeoutMs?: number;
    readonly maxOutputBytes?: number;
  };
  readonly journal?: Pick<JournalOptions, "arguments" | "key" | "secrets"> & {
    readonly file: string;
  };
  /** The own sources of each tenant, and the sources of the file that the tenant shares. */
  readonly tenants?: {
    readonly [name: string]: Pick<PlueSettings, "sources" | "selection"> & {
      readonly use?: readonly string[];
    };
  };
  readonly host?: string;
  readonly port?: number;
  readonly store?: string;
  readonly bridge?: boolean;
  readonly code?: boolean;
  readonly explorer?: boolean;
}

export interface NamedSource {
  readonly name: string;
  /** The tenant of the source; `undefined` for a source of the file. */
  readonly tenant: string | undefined;
  readonly pointer: string;
  readonly settings: SourceSettings;
  /** The place of its module, document or service, in the form of `loadTools`. */
  readonly from: string | undefined;
  /** Two sources with the same key have the same name, tenant and settings. */
  readonly key: string;
}

/** Returns the name of a source for operators, such as `acme/crm` for a source of a tenant. */
export function fullName(
  { name, tenant }: { readonly name: string; readonly tenant?: string | undefined },
): string {
  return tenant === undefined ? name : `${tenant}/${name}`;
}

export interface PlueFile {
  readonly json: SettingsDocument;
  /** The folder of the file. Relative paths in the file start there. */
  readonly folder: string;
  readonly settings: PlueSettings;
  /** The sources of the file and of all tenants. */
  readonly sources: readonly NamedSource[];
  /** The sources that each tenant uses; for `undefined`, the sources of the file. */
  readonly scopes: ReadonlyMap<string | undefined, readonly NamedSource[]>;
}

/** @throws {CommandError} If the file is missing or invalid, with the line, column and valid values. */
export async function readPlueFile(
  path: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<PlueFile> {
  const text = await readFile(path, "utf8").catch((cause) => {
    throw usageError(`Cannot read "${path}": ${describeThrown(cause)}`, { cause });
  });
  const json = new SettingsDocument(path, text);
  const value = withVariables(json, json.value, "", env);
  const [issue] = explainWithoutEngine(schema)(value);
  if (issue !== undefined) json.reject(pointerOf(issue), sentenceOf(issue));
  const settings = value as PlueSettings;
  const { store, tenants = {} } = settings;
  if (store !== undefined && !isStoreAddress(store)) {
    json.reject("/store", `it must be ${STORE_FORMS}`);
  }
  const folder = dirname(resolve(path));
  const shared = [
    ...sourcesIn(json, folder, settings.sources, "/sources"),
    ...sourcesIn(json, folder, fromClients(settings.mcpServers), "/mcpServers"),
  ];
  const scopes = new Map<string | undefined, readonly NamedSource[]>([[undefined, shared]]);
  for (const [tenant, { sources, use = [] }] of Object.entries(tenants)) {
    const pointer = `/tenants/${tenant}`;
    const used = use.map((name, index) =>
      // A disabled source may have the name of another one.
      shared.find((source) => source.name === name && source.settings.disabled !== true) ??
        shared.find((source) => source.name === name) ??
        json.reject(`${pointer}/use/${index}`, `there is no source "${name}" in the file`)
    );
    const own = sourcesIn(json, folder, sources, `${pointer}/sources`, tenant);
    scopes.set(tenant, [...used, ...own]);
  }
  // A source that is switched off for a while must not make the file invalid.
  rejectUnused({ json, settings, sources: [...scopes.values()].flat() });
  for (const [tenant, sources] of scopes) {
    const enabled = sources.filter(({ settings }) => settings.disabled !== true);
    rejectSameNames(json, enabled);
    scopes.set(tenant, enabled);
  }
  const all = [...new Set([...scopes.values()].flat())];
  const file = { json, settings, folder, scopes, sources: all };
  rejectUnknownTenants(file);
  return file;
}

function rejectSameNames(json: SettingsDocument, sources: readonly NamedSource[]): void {
  const names = new Set<string>();
  const labelled = new Set<string>();
  for (const { name, pointer, settings: { labels, namespace = name } } of sources) {
    if (names.has(name)) json.reject(pointer, "another source has this name; rename one");
    names.add(name);
    if (labels === undefined) continue;
    if (labelled.has(namespace)) {
      const why = `another source has labels for "${namespace}:*"; merge them`;
      json.reject(`${pointer}/labels`, why);
    }
    labelled.add(namespace);
  }
}

function callersIn({ callers }: PlueSettings): readonly (readonly [string, CallerSettings])[] {
  return [
    ...Object.entries(callers?.tokens ?? {})
      .map(([name, one]) => [`/callers/tokens/${name}`, one] as const),
    ...(callers?.jwt ?? []).map((one, index) => [`/callers/jwt/${index}`, one] as const),
  ];
}

function rejectUnknownTenants({ json, settings, scopes }: PlueFile): void {
  const all = callersIn(settings);
  for (const [pointer, { tenant }] of all) {
    if (scopes.has(tenant)) continue;
    json.reject(`${pointer}/tenant`, `there is no tenant "${tenant}" in the file`);
  }
  if (all.length > 0) return;
  if (scopes.size > 1) json.reject("/tenants", "tenants need callers, each with its tenant");
  if (settings.callers === undefined) return;
  // Otherwise, the removal of the last caller would admit everybody.
  json.reject("/callers", 'it has no caller; add one, or remove "callers"');
}

/** Rejects settings that have an effect only if another part of the file has a setting. */
function rejectUnused(
  { json, settings, sources }: Pick<PlueFile, "json" | "settings" | "sources">,
): void {
  const labelled = sources.find(({ settings: { labels, disabled } }) => labels && !disabled);
  if (labelled !== undefined && (settings.rules ?? []).length === 0) {
    json.reject(`${labelled.pointer}/labels`, '"labels" has no effect without "rules"; remove it');
  }
  const operator = callersIn(settings).find(([, caller]) => caller.operator === true);
  if (operator !== undefined && sources.every((one) => one.settings.pins === undefined)) {
    const why = '"operator" has no effect without "pins" of a source; remove it';
    json.reject(`${operator[0]}/operator`, why);
  }
  if (settings.bridge === true && settings.code === true) {
    json.reject("/bridge", '"bridge" has no effect with "code"; remove one of them');
  }
}

/** The fields of sources that have an effect only with another field. */
const BESIDE = {
  args: ["command"],
  env: ["command"],
  cwd: ["command"],
  headers: ["url", "from"],
  baseUrl: ["from"],
} as const satisfies { readonly [Field in keyof SourceSettings]?: readonly string[] };

/** Returns the sources in an object of the file. Only the names of disabled ones are checked. */
function sourcesIn(
  json: SettingsDocument,
  folder: string,
  sources: PlueSettings["sources"] = {},
  pointer: string,
  tenant?: string,
): readonly NamedSource[] {
  return Object.entries(sources).map(([name, settings]) => {
    const own = pointer + pointerStep(name);
    if (settings.disabled === true) {
      return { name, tenant, pointer: own, settings, from: undefined, key: own };
    }
    const has = (field: string): boolean => Object.hasOwn(settings, field);
    for (const [field, needed] of Object.entries(BESIDE)) {
      if (!has(field) || needed.some(has)) continue;
      const why = `"${field}" has no effect without "${needed.join('" or "')}"; remove it`;
      json.reject(own + pointerStep(field), why);
    }
    for (const [header, text] of Object.entries(settings.headers ?? {})) {
      // The message of a runtime would contain the value, which may be a secret.
      if (attemptOr<unknown>(undefined, () => new Headers({ [header]: text }))) continue;
      const why = "it is not a valid header; write its name and its value in ASCII on one line";
      json.reject(`${own}/headers${pointerStep(header)}`, why);
    }
    const { url, from, namespace = name } = settings;
    if (url !== undefined && !(URL.canParse(url) && /^https?:/i.test(url))) {
      json.reject(`${own}/url`, "it must be a URL that begins with https:// or http://");
    }
    const place = json.attempt(`${own}/from`, () => from && sourceIn(folder, from, namespace));
    const key = JSON.stringify([tenant ?? null, name, settings]);
    return { name, tenant, pointer: own, settings, from: place, key };
  });
}

/** Returns sources with the fields of `sources`. */
function fromClients(servers: PlueSettings["mcpServers"] = {}): PlueSettings["sources"] {
  return Object.fromEntries(
    Object.entries(servers).map(([name, { serverUrl, disabledTools, enabled, ...settings }]) => {
      const { url = serverUrl } = settings;
      const disabled = settings.disabled === true || enabled === false;
      const exclude = disabledTools?.concat(settings.exclude ?? []) ?? settings.exclude;
      return [name, { ...settings, ...defined({ url, exclude }), disabled }];
    }),
  );
}

/** The fields of desktop clients that plue cannot apply, and their replacements. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ["auth", 'plue does not sign in; write a token into "headers"'],
  ["oauth", 'plue does not sign in; write a token into "headers"'],
  ["headersHelper", 'plue does not run it; write its result into "headers"'],
  ["envFile", 'plue does not read it; write its variables into "env"'],
]);

/** The issues of unknown members, and of names with characters that are not allowed. */
const UNKNOWN = /^not have the property ("(?:[^"\\]|\\.)*")/;
const PATTERN = /match the pattern "\^\[A-Za-z0-9(_\.)?-\]\{1,(\d+)\}\$"/;

/** Returns the position of an issue: for an unknown member, the position of its name. */
function pointerOf({ path, expected }: Issue): string {
  const [, name] = UNKNOWN.exec(expected) ?? [];
  return name === undefined ? path : path + pointerStep(JSON.parse(name));
}

function sentenceOf({ path, keyword, expected, message }: Issue): string {
  if (keyword === "oneOf") return 'it must have exactly one of "command", "url" and "from"';
  const [property, name = ""] = UNKNOWN.exec(expected) ?? [];
  const instead = INSTEAD.get(name.slice(1, -1));
  if (instead !== undefined && SOURCE.test(path)) {
    return `it must ${property}: ${instead}`;
  }
  return `it${message.slice((path || "The value").length)}`.replace(
    PATTERN,
    (_, more, most) => `be 1 to ${most} letters, digits${more ? ', "_", "."' : ""} or "-"`,
  );
}

/** The texts in which `${NAME}` is replaced by a variable, by their JSON Pointers. */
const WITH_VARIABLES = [
  /^(?:\/tenants\/[^/]+)?\/(sources|mcpServers)\/[^/]+\/(command|args|env|cwd|url|serverUrl|headers|from|baseUrl)(\/|$)/,
  /^\/callers\/(tokens\/[^/]+\/token|jwt\/\d+\/(secret|jwksUrl|issuer|audience))$/,
  /^\/(store|journal\/key)$/,
];

const SOURCE = /\/(sources|mcpServers)\/[^/]+$/;

/** `${NAME}` and `${env:NAME}`, and `${NAME:-otherwise}` with a value for a missing variable. */
const VARIABLE = /\$\{(?:env:)?([A-Za-z_]\w*)(?::-((?:(?!\$\{)[^}])*))?\}/g;
/** The arguments and the environment of a program may have variables of a shell. */
const FOR_PROGRAMS = /\/(command|args|env)(\/|$)/;
/** Variables that only desktop clients can replace. */
const OF_CLIENTS = /\$\{(input|file|config|command):/;

function withVariables(
  json: SettingsDocument,
  value: unknown,
  pointer: string,
  env: Readonly<Record<string, string | undefined>>,
): unknown {
  if (typeof value === "string") {
    if (!WITH_VARIABLES.some((pattern) => pattern.test(pointer))) return value;
    const rest = value.replaceAll(VARIABLE, "");
    if (FOR_PROGRAMS.test(pointer) ? OF_CLIENTS.test(rest) : rest.includes("${")) {
      const why = 'its "${" must begin ${NAME} or ${NAME:-value}, a variable of the environment';
      json.reject(pointer, why);
    }
    return value.replaceAll(VARIABLE, (_, name: string, otherwise?: string) => {
      const found = env[name] || otherwise;
      if (found !== undefined) return found;
      json.reject(pointer, `the environment variable ${name} is missing; set it`);
    });
  }
  if (!isObject(value) && !Array.isArray(value)) return value;
  const isDisabled = isObject(value) && (value["disabled"] === true || value["enabled"] === false);
  if (isDisabled && SOURCE.test(pointer)) return value;
  const members = Object.entries(value).map(([name, member]) =>
    [name, withVariables(json, member, pointer + pointerStep(name), env)] as const
  );
  return Array.isArray(value) ? members.map(([, member]) => member) : Object.fromEntries(members);
}
