/** Reads the skills of an imported MCP server, each file checked against its digest. */

import type { Client } from "@modelcontextprotocol/client";
import type { Skill } from "@modelcontextprotocol/client/ext/skills";
import { isToolName, makeTool, type Tool } from "../../tool/mod.ts";
import { loadSkillsClient } from "./client_library.ts";

/** A skill of a server, with its files below the folder of the skill. */
export interface ImportedSkill {
  /** Represents the skill in the pins: its description is the text of the skill. */
  readonly tool: Tool;
  readonly files: Readonly<Record<string, Uint8Array>>;
}

const MANIFEST = "SKILL.md";
const MAX_SKILLS = 256;
const MAX_FILES = 512;
/** The size that each file counts in addition to its bytes, because reading it takes a request. */
const FILE_BYTES = 16_384;
/** The maximum depth of a path: the time to load a catalog grows with its square. */
const MAX_STEPS = 16;

/** Returns the namespace of the tools that represent an import's skills in the pins. */
export function skillNamespace(namespace: string): string {
  return `${namespace}.skills`;
}

/** Lists the skills of a server; empty if the server has none. Invalid entries are omitted. */
export async function listSkills(client: Client): Promise<readonly Skill[]> {
  const { SkillsClient } = await loadSkillsClient();
  const reader = new SkillsClient(client, { skipInvalid: true });
  return reader.supported ? (await reader.list()).skills.slice(0, MAX_SKILLS) : [];
}

/**
 * Reads listed skills. A skill is omitted if its files change while they are read, if it has no
 * digests, or if the skills before it have reached the limit.
 *
 * @param maxBytes The maximum size of all files.
 * @param onError Receives the reason for each omitted skill.
 */
export async function readSkills(
  client: Client,
  skills: readonly Skill[],
  { namespace, maxBytes, onError }: {
    readonly namespace: string;
    readonly maxBytes: number;
    onError(error: unknown): void;
  },
): Promise<readonly ImportedSkill[]> {
  const { SkillsClient } = await loadSkillsClient();
  const reader = new SkillsClient(client);
  const read: ImportedSkill[] = [];
  let size = 0;
  for (const skill of skills) {
    const { uri, resources } = skill;
    const files: Record<string, Uint8Array> = {};
    try {
      const manifest = decodeURIComponent(uri).replace(/^[a-z][\w+.-]*:\/\//i, "");
      const path = manifest.slice(0, -MANIFEST.length);
      const name = path.slice(0, -1).replaceAll("/", ".");
      if (resources === "dynamic") throw new TypeError("it has no digests of its files");
      size += resources.reduce((sum, file) => sum + file.size + FILE_BYTES, 0);
      if (size > maxBytes || resources.length > MAX_FILES) throw new TypeError("it is too large");
      // The pins know a skill by its name, in which "/" is ".".
      if (read.some(({ tool }) => tool.name === name)) throw new TypeError("its path is taken");
      if (!isToolName(name)) throw new TypeError("its path is too long, or not [\\w./-]+");
      for (const file of resources) {
        const place = path + decodeURIComponent(file.uri.slice(uri.length - MANIFEST.length));
        const steps = place.split("/");
        // The SDK resolves such URIs, but a catalog with such a path cannot be loaded.
        if (steps.includes("..")) throw new TypeError('its path contains ".."');
        if (steps.length > MAX_STEPS) throw new TypeError("it has too many folders");
        files[place] = (await reader.read(skill, file.uri)).bytes;
      }
      const description = new TextDecoder().decode(files[path + MANIFEST]);
      const meta = { skill: { uri, resources } };
      read.push({
        tool: makeTool({ namespace: skillNamespace(namespace), name, description, meta }),
        files,
      });
    } catch (cause) {
      onError(new Error(`Cannot import the skill ${JSON.stringify(uri.slice(0, 200))}`, { cause }));
    }
  }
  return read;
}
