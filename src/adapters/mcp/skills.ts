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
  /** The first part of the URIs: with `acme`, `skill://acme/refunds/SKILL.md`. */
  readonly prefix?: string;
  /** Names in `allowed-tools` that are tools of the clients, such as `Bash`. @default {[]} */
  readonly hostTools?: readonly string[];
  /** Receives problems of files, and skills with an unknown tool. By default, `console.warn`. */
  onWarning?(warning: SkillWarning): void;
}

const ACTION = "make a catalog of skills";

const CHECKS = {
  prefix: check.checkWord,
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
  const { memorySkillFiles } = await import("@modelcontextprotocol/server/ext/skills");
  const own = isAdapter(files) ? files : memorySkillFiles(files);
  const catalog = new SkillCatalog(own, checked);
  await catalog.reload();
  return catalog;
}

function isAdapter(files: Parameters<typeof skillCatalog>[0]): files is SkillFiles {
  return isFunction(files["list"]);
}

type Contents = Readonly<Record<string, string | Uint8Array>>;

/** The skills that were read at one time, with the contents of their files. */
interface Snapshot {
  readonly files: Contents;
  /** The namespaces of the servers whose skills are among them. */
  readonly imported: ReadonlySet<string>;
  readonly catalog: SdkCatalog;
  /** A tool for each skill, so that the search for tools finds skills. */
  readonly index: Toolset;
  readonly byTool: ReadonlyMap<string, Skill>;
  /** The catalogs for callers that see only some of the skills, by the hidden folders. */
  readonly parts: BoundedMap<string, Promise<SdkCatalog>>;
  /** The skills whose unknown tool was reported. */
  readonly reported: Set<string>;
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
  readonly #own: SkillFiles;
  readonly #base: string;
  readonly #prefix: { readonly prefix?: string };
  readonly #hostTools: ReadonlySet<string>;
  readonly #warn: (warning: SkillWarning) => void;
  readonly #imports = new Map<string, Contents>();
  readonly #extended = new WeakMap<Toolset, Toolset>();
  #snapshot: Snapshot | undefined;
  readonly #reloads = new Mutex();

  /** @ignore Use {@linkcode skillCatalog}. */
  constructor(files: SkillFiles, { prefix, hostTools = [], onWarning }: SkillCatalogOptions) {
    this.#own = files;
    this.#base = prefix === undefined ? "skill://" : `skill://${prefix}/`;
    this.#prefix = prefix === undefined ? {} : { prefix };
    this.#hostTools = new Set(hostTools);
    const warn = onWarning ?? (({ path, message }) => console.warn(`[skills] ${path}: ${message}`));
    // The texts may come from an imported server.
    this.#warn = ({ path, message }) => {
      const warning = { path: cleanText(path, 500), message: cleanText(message, 500) };
      callHook(() => warn(warning), noop);
    };
  }

  /** All skills, in order of their URIs. */
  get skills(): readonly Skill[] {
    return this.#snapshot?.catalog.entries ?? [];
  }

  /**
   * Reads all files again. Call `notify.resourcesChanged()` of the endpoint afterwards.
   *
   * @throws {Error} If the files cannot be read. The previous skills stay.
   */
  reload(): Promise<void> {
    return this.#reloads.run(async () => {
      this.#snapshot = await this.#read();
    });
  }

  /**
   * Replaces the skills of a source, which have the first part `namespace` in their paths. Their
   * `allowed-tools` mean tools of this namespace. `importMcpServer` calls this.
   *
   * @param files The contents by path, or `undefined` to remove the source.
   */
  async import(namespace: string, files?: Readonly<Record<string, Uint8Array>>): Promise<void> {
    // Contents that cannot be loaded must not stop the skills of others.
    if (files !== undefined) await this.#load(files);
    if (files === undefined) this.#imports.delete(namespace);
    else this.#imports.set(namespace, files);
    await this.reload();
  }

  /** Serves the skills that the caller of a toolset sees, on a server of the SDK. */
  async attach(server: McpServer, toolset: Toolset): Promise<void> {
    const { files, catalog, parts } = this.#current();
    const hidden = this.skills.filter((skill) => !this.#isVisible(skill, toolset))
      .map((skill) => this.#folderOf(skill));
    const part = hidden.length === 0
      ? catalog
      : await once(parts, hidden.join("\n"), () => this.#load(without(files, hidden)));
    part.attach(server);
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
        const texts = names.flatMap((uri) => {
          const text = this.#readText(uri, toolset);
          return text === undefined ? [] : [{ uri, text }];
        });
        const others = names.filter((uri) => texts.every((skill) => skill.uri !== uri));
        const result = await execute(query === "" ? { names: others } : params, context);
        const skills = query === "" ? texts : this.#find(query, toolset);
        const { message: _, ...found } = result as { readonly message?: string };
        return skills.length === 0 ? result : { ...found, skills };
      },
    } as ToolDefinition);
  };

  /** Finds the skills that fit a query and that the caller of a toolset sees, best first. */
  #find(query: string, toolset: Toolset): readonly object[] {
    const { index, byTool } = this.#current();
    return searchToolset(index, query.slice(0, MAX_QUERY), { limit: index.size })
      .flatMap(({ id }) => byTool.get(id) ?? [])
      .filter((skill) => this.#isVisible(skill, toolset))
      .slice(0, MAX_FOUND)
      .map(({ uri, frontmatter: { name, description } }) => ({ uri, name, description }));
  }

  /** Reads a text file of a skill; returns `undefined` if the caller of a toolset sees none. */
  #readText(uri: string, toolset: Toolset): string | undefined {
    // A folder of a skill may be below the folder of another one, which then has its files, too.
    const skills = this.skills.filter(({ resources }) =>
      resources !== "dynamic" && resources.some((file) => file.uri === uri)
    );
    const isVisible = skills.every((skill) => this.#isVisible(skill, toolset));
    if (skills.length === 0 || !isVisible) return undefined;
    const content = this.#current().files[this.#pathOf(uri)];
    return typeof content === "string"
      ? content
      : attemptOr(undefined, () => new TextDecoder("utf-8", { fatal: true }).decode(content));
  }

  #current(): Snapshot {
    return this.#snapshot ?? fail("serve skills", "the catalog is not loaded; use skillCatalog()");
  }

  async #read(): Promise<Snapshot> {
    const { SkillsExtension } = await import("@modelcontextprotocol/server/ext/skills");
    // Stores the contents, so that all catalogs have the same, even if a file changes.
    const files: Record<string, string | Uint8Array> = {};
    await SkillsExtension.load({
      list: (folder) => this.#own.list(folder),
      read: async (path) => files[path] = await this.#own.read(path),
    }, { onWarning: this.#warn });
    const imported = new Set(this.#imports.keys());
    for (const [namespace, contents] of this.#imports) {
      for (const path of Object.keys(contents)) {
        files[`${namespace}/${path}`] = contents[path] ?? "";
      }
    }
    const catalog = await this.#load(files);
    const byTool = new Map<string, Skill>();
    const tools: Tool[] = catalog.entries.map((skill, number) => {
      const { name, description } = skill.frontmatter;
      const tool = makeTool({ namespace: `skill-${number}`, name, description });
      byTool.set(tool.id, skill);
      return tool;
    });
    const parts: Snapshot["parts"] = new BoundedMap({ maxEntries: MAX_PARTS });
    const index = buildToolset(tools);
    return { files, imported, catalog, index, byTool, parts, reported: new Set() };
  }

  async #load(files: Contents): Promise<SdkCatalog> {
    const { memorySkillFiles, SkillsExtension } = await import(
      "@modelcontextprotocol/server/ext/skills"
    );
    return await SkillsExtension.load(memorySkillFiles({ ...files }), {
      ...this.#prefix,
      onWarning: noop,
    });
  }

  #isVisible(skill: Skill, toolset: Toolset): boolean {
    const tools = toolset.bridge?.behind ?? toolset;
    const [namespace = ""] = this.#folderOf(skill).split("/");
    const isImported = this.#current().imported.has(namespace);
    const names = toolNamesIn(skill).filter((name) => !this.#hostTools.has(name));
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
  #report({ uri }: Skill, ids: readonly string[], { source }: Toolset): void {
    const { reported } = this.#current();
    const isIn = (tool: Tool): boolean => [tool.id, ...tool.aliases].some((id) => ids.includes(id));
    if (reported.has(uri) || source.tools.some(isIn)) return;
    reported.add(uri);
    const message =
      `is hidden, because its tool "${ids[0]}" is not registered; add it to hostTools if ` +
      "it is a tool of the clients";
    this.#warn({ path: uri, message });
  }

  #pathOf(uri: string): string {
    return decodeURIComponent(uri).slice(this.#base.length);
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
