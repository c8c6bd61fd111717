/**
 * Skills (SEP-2640): folders with instructions for models, which a server offers next to its tools.
 * The official SDK reads and serves them. This file decides which of them a caller sees.
 */

import type { McpServer } from "@modelcontextprotocol/server";
import type {
  Skill,
  SkillCatalog as SdkCatalog,
  SkillFiles,
  SkillWarning,
} from "@modelcontextprotocol/server/ext/skills";
import type { BridgeSkills } from "../../finding/mod.ts";
import { CallContext } from "../../execute/mod.ts";
import { searchToolset } from "../../registry/mod.ts";
import { buildToolset, type Toolset } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import {
  attemptOr,
  BoundedMap,
  callHook,
  cleanText,
  fail,
  isFunction,
  isObject,
  makeTool,
  Mutex,
  noop,
  once,
  type Tool,
  type ToolContext,
  type ToolDefinition,
} from "../../tool/mod.ts";

/** Options for {@linkcode skillCatalog}. */
export interface SkillCatalogOptions {
  /** Names in `allowed-tools` that are tools of the clients, such as `Bash`. @default {[]} */
  readonly hostTools?: readonly string[];
  /** Receives problems of files, and skills with an unknown tool. By default, `console.warn`. */
  onWarning?(warning: SkillWarning): void;
}

const ACTION = "make a catalog of skills";

const CHECKS = {
  hostTools: check.checkTexts,
  onWarning: check.checkFunction as check.Check<(warning: SkillWarning) => void>,
} satisfies { readonly [Name in keyof SkillCatalogOptions]-?: check.Check };

/**
 * Reads skills: folders that contain a `SKILL.md`. Pass the catalog to `createMcpEndpoint` as
 * `skills`, and to `createToolBridge` if a function makes the bridge.
 *
 * The header `allowed-tools` of a skill names the tools that it needs, by id or by name in MCP. A
 * caller sees the skill only if all of them are in the caller's toolset, or in `hostTools`. A skill
 * that names no tools is visible to every caller of the endpoint.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { createMcpEndpoint, skillCatalog } from "@plue/tools/mcp";
 *
 * const skills = await skillCatalog({
 *   "refunds/SKILL.md":
 *     "---\nname: refunds\ndescription: How to refund.\nallowed-tools: pay\n---\nAsk first.",
 * });
 * assert.equal(skills.skills[0]?.uri, "skill://refunds/SKILL.md");
 *
 * const registry = new ToolRegistry({ tools: [{ name: "pay", description: "Pays." }] });
 * createMcpEndpoint(registry, { name: "shop", skills, openExecution: true });
 * ```
 *
 * @param files The contents of the files by their paths, or an adapter such as
 * `nodeSkillFiles("./skills")` of `@modelcontextprotocol/server/ext/skills/node`.
 * @throws {TypeError} If an argument is invalid.
 * @throws {Error} If the files cannot be read.
 */
export async function skillCatalog(
  files: SkillFiles | Record<string, string | Uint8Array>,
  options: SkillCatalogOptions = {},
): Promise<SkillCatalog> {
  const checked = check.readFields(ACTION, options, CHECKS);
  if (!isObject(files)) fail(ACTION, "the files must be an object of paths, or have list and read");
  const { memorySkillFiles } = await loadLibrary();
  const own = isAdapter(files) ? files : memorySkillFiles(files);
  const catalog = new SkillCatalog(own, checked);
  await catalog.reload();
  return catalog;
}

function isAdapter(files: Parameters<typeof skillCatalog>[0]): files is SkillFiles {
  return isFunction(files["list"]);
}

function loadLibrary() {
  return import("@modelcontextprotocol/server/ext/skills");
}

/** Finds the skills that fit a query, best first. */
function findSkills({ index }: Skills, query: string) {
  return searchToolset(index, query.slice(0, MAX_QUERY), { limit: MAX_FOUND })
    .map(({ meta, name, description }) => ({ uri: meta?.["uri"], name, description }));
}

type Contents = Record<string, string | Uint8Array>;

/** Skills, with the contents of their files by path. */
interface Skills {
  readonly files: Contents;
  readonly catalog: SdkCatalog;
  /** A tool for each skill, so that the search for tools finds skills. */
  readonly index: Toolset;
}

const MAX_PARTS = 64;
const MAX_FOUND = 5;
const MAX_ALLOWED = 8_192;
const MAX_QUERY = 8_192;

/** The additions to the descriptions of the bridge's tools. */
const ADDITIONS: Readonly<Record<string, string>> = {
  search_tools: " Also finds skills, which are instructions: pass the uri of a skill to " +
    "describe_tools.",
  describe_tools: " Also reads the files of skills: pass their uris as names.",
};

/** The skills of an endpoint. Made by {@linkcode skillCatalog}. */
export class SkillCatalog implements BridgeSkills {
  readonly #source: SkillFiles;
  readonly #options: SkillCatalogOptions;
  readonly #warn: (warning: SkillWarning) => void;
  readonly #extended = new WeakMap<Toolset, Toolset>();
  readonly #reported = new WeakSet<Skill>();
  readonly #changes = new Mutex();
  /** The files of each imported server, by its namespace, and the catalog's own files. */
  #sources: ReadonlyMap<string | undefined, Contents> = new Map();
  #all: Skills | undefined;
  /** The skills that callers see, by the hidden folders. */
  #parts = new BoundedMap<string, Promise<Skills>>({ maxEntries: MAX_PARTS });
  /** The same by the tools of the callers: a server's skills can name a million tools together. */
  #seen = new WeakMap<readonly Tool[], Promise<Skills>>();

  /** @ignore Use {@linkcode skillCatalog}. */
  constructor(source: SkillFiles, options: SkillCatalogOptions) {
    this.#source = source;
    this.#options = options;
    const warn = options.onWarning ??
      (({ path, message }) => console.warn(`[skills] ${path}: ${message}`));
    // The texts may come from an imported server.
    this.#warn = ({ path, message }) =>
      callHook(() => warn({ path: cleanText(path, 500), message: cleanText(message, 500) }), noop);
  }

  /** All skills, in order of their URIs. */
  get skills(): readonly Skill[] {
    return this.#all?.catalog.entries ?? [];
  }

  /**
   * Reads all files again. Call `notify.resourcesChanged()` of the endpoint afterwards.
   *
   * @throws {Error} If the files cannot be read. The previous skills stay.
   */
  reload(): Promise<void> {
    return this.#changes.run(async () => {
      const { SkillsExtension } = await loadLibrary();
      // Stores the contents, so that all catalogs have the same, even if a file changes.
      const files: Contents = {};
      await SkillsExtension.load({
        list: (folder) => this.#source.list(folder),
        read: async (path) => files[path] = await this.#source.read(path),
      }, { onWarning: this.#warn });
      await this.#replace(undefined, files);
    });
  }

  /**
   * Replaces the skills of a source, which have the first part `namespace` in their paths. Their
   * `allowed-tools` mean tools of this namespace. `importMcpServer` calls this.
   *
   * @param files The contents by path, or `undefined` to remove the source.
   */
  import(namespace: string, files?: Readonly<Record<string, Uint8Array>>): Promise<void> {
    const own = Object.entries(files ?? {})
      .map(([path, content]) => [`${namespace}/${path}`, content] as const);
    return this.#changes.run(() => this.#replace(namespace, files && Object.fromEntries(own)));
  }

  /** Serves the skills that the caller of a toolset sees, on a server of the SDK. */
  async attach(server: McpServer, toolset: Toolset): Promise<void> {
    (await this.#visible(toolset)).catalog.attach(server);
  }

  /** Returns the tools of a bridge, of which `search_tools` and `describe_tools` have skills. */
  extend(tools: Toolset): Toolset {
    return once(this.#extended, tools, () => buildToolset(tools.tools.map(this.#addTo)));
  }

  readonly #addTo = (tool: Tool): Tool => {
    const { name, execute } = tool;
    if (execute === undefined || !Object.hasOwn(ADDITIONS, name)) return tool;
    return makeTool({
      ...tool,
      description: tool.description + ADDITIONS[name],
      execute: async (params: unknown, context: ToolContext<never, never, never>) => {
        const toolset = CallContext.callOf(context)?.toolset;
        if (toolset === undefined) return await execute(params, context);
        const { query = "", names = [] } = params as { query?: string; names?: readonly string[] };
        const visible = await this.#visible(toolset);
        const skills = query === "" ? this.#readTexts(visible, names) : findSkills(visible, query);
        const others = names.filter((name) => skills.every(({ uri }) => uri !== name));
        const result = await execute(query === "" ? { names: others } : params, context);
        const { message: _, ...found } = result as { readonly message?: string };
        return skills.length === 0 ? result : { ...found, skills };
      },
    } as ToolDefinition);
  };

  #readTexts({ files, catalog }: Skills, uris: readonly string[]) {
    const known = new Set(
      catalog.entries.flatMap(({ resources }) => resources === "dynamic" ? [] : resources)
        .map(({ uri }) => uri),
    );
    return uris.filter((uri) => known.has(uri)).flatMap((uri) => {
      const content = files[this.#pathOf(uri)];
      const text = typeof content === "string"
        ? content
        : attemptOr(undefined, () => new TextDecoder("utf-8", { fatal: true }).decode(content));
      return text === undefined ? [] : [{ uri, text }];
    });
  }

  /** Returns the skills that a caller sees. Chooses them again only if the caller's tools change. */
  #visible(toolset: Toolset): Promise<Skills> {
    return once(this.#seen, (toolset.bridge?.target ?? toolset).available(), () => {
      const hidden = this.skills.filter((skill) => !this.#isVisible(skill, toolset))
        .map((skill) => this.#folderOf(skill));
      return once(
        this.#parts,
        hidden.join("\n"),
        () => this.#load(without(this.#all?.files ?? {}, hidden)),
      );
    });
  }

  async #replace(source: string | undefined, files: Contents | undefined): Promise<void> {
    const sources = new Map(this.#sources);
    if (files === undefined) sources.delete(source);
    else sources.set(source, files);
    // First, because contents that cannot be loaded must not stop the skills of others.
    const all = await this.#load(Object.assign({}, ...sources.values()));
    this.#sources = sources;
    this.#all = all;
    this.#parts = new BoundedMap({ maxEntries: MAX_PARTS });
    this.#parts.set("", Promise.resolve(all));
    this.#seen = new WeakMap();
  }

  async #load(files: Contents): Promise<Skills> {
    const { memorySkillFiles, SkillsExtension } = await loadLibrary();
    const catalog = await SkillsExtension.load(memorySkillFiles(files), { onWarning: noop });
    const tools = catalog.entries.map(({ uri, frontmatter: { name, description } }, number) =>
      makeTool({ namespace: `skill-${number}`, name, description, meta: { uri } })
    );
    return { files, catalog, index: buildToolset(tools) };
  }

  #isVisible(skill: Skill, toolset: Toolset): boolean {
    const { hostTools = [] } = this.#options;
    const tools = toolset.bridge?.target ?? toolset;
    const [namespace = ""] = this.#folderOf(skill).split("/");
    const isImported = this.#sources.has(namespace);
    const names = toolNamesIn(skill).filter((name) => !hostTools.includes(name));
    // Skills of a server are hidden from callers that see no tool of the server.
    if (isImported && names.length === 0) {
      return tools.available().some((tool) => tool.namespace === namespace);
    }
    return names.every((name) => {
      const ids = isImported ? [`${namespace}:${name}`] : [name, name.replace(".", ":")];
      const tool = ids.map((id) => tools.resolve(id)).find((found) => found !== undefined);
      if (tool === undefined) this.#report(skill, ids, tools);
      return tool !== undefined && tools.isAvailable(tool);
    });
  }

  /** Reports once that a tool of a skill is not in the registry, so that no caller sees the skill. */
  #report(skill: Skill, ids: readonly string[], { source }: Toolset): void {
    const isIn = (tool: Tool): boolean => [tool.id, ...tool.aliases].some((id) => ids.includes(id));
    if (this.#reported.has(skill) || source.tools.some(isIn)) return;
    this.#reported.add(skill);
    const message =
      `is hidden, because its tool "${ids[0]}" is not registered; add it to hostTools if ` +
      "it is a tool of the clients";
    this.#warn({ path: skill.uri, message });
  }

  #pathOf(uri: string): string {
    return decodeURIComponent(uri).slice("skill://".length);
  }

  #folderOf({ uri }: Skill): string {
    return this.#pathOf(uri).slice(0, -"/SKILL.md".length);
  }
}

/** Returns the names in `allowed-tools`, without the patterns of `Bash(git:*)`. */
function toolNamesIn({ frontmatter }: Skill): readonly string[] {
  const allowed: unknown = frontmatter["allowed-tools"];
  const text = Array.isArray(allowed) ? allowed.join(" ") : String(allowed ?? "");
  // No tool has this name, so the skill is hidden.
  if (text.length > MAX_ALLOWED) return ["allowed-tools is too long"];
  return [...text.matchAll(/([^\s,()]+)(?:\([^()]*\))?/g)].map(([, name = ""]) => name);
}

function without(files: Contents, hidden: readonly string[]): Contents {
  return Object.fromEntries(
    Object.entries(files).filter(([path]) =>
      !hidden.some((folder) => path.startsWith(`${folder}/`))
    ),
  );
}
