/**
 * The flags that say whose eyes a command looks through, and the toolset that follows.
 *
 * @module
 */

import { type Command, InvalidArgumentError, Option } from "commander";
import type { Selection, Toolset } from "../select/mod.ts";
import { isRiskLevel, RISK_LEVELS, type RiskLevel, type ToolReader } from "../tool/mod.ts";
import { type LoadedTools, loadTools } from "./sources/mod.ts";
import { type CommandIo, usageError } from "./terminal.ts";

/** Where tools come from, as flags. */
export interface SourceFlags {
  readonly from?: readonly string[];
  readonly header?: readonly string[];
  readonly baseUrl?: string;
}

/** What a caller is and has, and who reads the descriptions, as flags. */
export interface SelectionFlags extends ToolReader {
  readonly role?: string;
  readonly scope?: readonly string[];
  readonly maxRisk?: RiskLevel;
  readonly category?: readonly string[];
  readonly notCategory?: readonly string[];
  readonly tag?: readonly string[];
  readonly namespace?: readonly string[];
  readonly only?: readonly string[];
  readonly without?: readonly string[];
  readonly workspace: boolean;
  readonly terminal: boolean;
  readonly editor: boolean;
  readonly git: boolean;
}

/** An option that may be given several times. */
export function repeated(flags: string, description: string): Option {
  return new Option(flags, description)
    .argParser((value: string, before: readonly string[] = []) => [...before, value]);
}

/** Adds the flags that name sources. */
export function withSources(command: Command): Command {
  return command
    .addOption(repeated("-f, --from <source>", "where the tools are; PLUE_TOOLS if it is absent"))
    .addOption(repeated("--header <name: value>", "a header for the source, such as a token"))
    .addOption(new Option("--base-url <url>", "where the API of an OpenAPI document is"));
}

/** Adds the flags that narrow what is seen. */
export function withSelection(command: Command): Command {
  return command
    .addOption(new Option("--role <role>", "as a caller of this role").helpGroup("Selection:"))
    .addOption(grouped(repeated("--scope <scope>", "as a caller who holds this scope")))
    .addOption(riskOption("tools of this risk or less").helpGroup("Selection:"))
    .addOption(grouped(repeated("--category <name>", "only tools of this category")))
    .addOption(grouped(repeated("--not-category <name>", "no tools of this category")))
    .addOption(grouped(repeated("--tag <tag>", "only tools with this tag")))
    .addOption(grouped(repeated("--namespace <name>", "only tools of this namespace")))
    .addOption(grouped(repeated("--only <id>", "only this tool")))
    .addOption(grouped(repeated("--without <id>", "not this tool")))
    .addOption(grouped(new Option("--no-workspace", "as where there is no workspace")))
    .addOption(grouped(new Option("--no-terminal", "as where there is no terminal")))
    .addOption(grouped(new Option("--no-editor", "as where there is no editor")))
    .addOption(grouped(new Option("--no-git", "as where there is no git repository")))
    .addOption(readerOption("--model <name>", "the model, such as claude-opus-4-5"))
    .addOption(readerOption("--provider <name>", "its provider, such as anthropic"))
    .addOption(readerOption("--locale <tag>", "the language, such as de or pt-BR"));
}

/** Who reads descriptions that are functions of that. */
function readerOption(flags: string, description: string): Option {
  return new Option(flags, description).helpGroup("Who reads the descriptions:")
    .argParser((value: string) => {
      if (/^[!-~]{1,128}$/.test(value)) return value;
      throw new InvalidArgumentError("It must be 1 to 128 letters, digits or signs of ASCII.");
    });
}

function grouped(option: Option): Option {
  return option.helpGroup("Selection:");
}

/** `--max-risk`, which takes a level only. */
export function riskOption(description: string): Option {
  return new Option("--max-risk <level>", `${description} (${RISK_LEVELS.join(", ")})`)
    .argParser((value: string) => {
      if (isRiskLevel(value)) return value;
      throw new InvalidArgumentError(`It must be one of ${RISK_LEVELS.join(", ")}.`);
    });
}

/** The selection that flags say. */
export function selectionOf(flags: SelectionFlags): Selection {
  return {
    role: flags.role,
    scopes: flags.scope,
    maxRisk: flags.maxRisk,
    categories: flags.category,
    excludeCategories: flags.notCategory,
    tagsAll: flags.tag,
    namespace: flags.namespace,
    allowIds: flags.only,
    denyIds: flags.without,
    context: {
      hasWorkspace: flags.workspace,
      hasTerminal: flags.terminal,
      hasEditor: flags.editor,
      hasGitRepository: flags.git,
      ...readerOf(flags),
    },
  };
}

function readerOf({ model, provider, locale }: ToolReader): ToolReader {
  return { model, provider, locale };
}

/** Loads the sources that flags and words name. */
export async function toolsFrom(
  words: readonly string[],
  flags: SourceFlags & ToolReader,
  io: CommandIo,
  mayBeNone = false,
): Promise<LoadedTools> {
  const { from = [], header, baseUrl } = flags;
  const headers = header && Object.fromEntries(header.map(readHeader));
  const reader = readerOf(flags);
  return await loadTools([...words, ...from], io, { headers, baseUrl, reader, mayBeNone });
}

function readHeader(text: string): readonly [string, string] {
  const [, name = "", value = ""] = /^([\w!#$%&'*+.^`|~-]+): *(.*)$/.exec(text) ?? [];
  // The message does not repeat the text: it may be a token.
  if (name === "") throw usageError('Cannot read --header: it must be "name: value"');
  return [name.toLowerCase(), value];
}

/** What the flags' caller sees of the tools. */
export function toolsetOf({ registry, selection }: LoadedTools, flags: SelectionFlags): Toolset {
  return registry.select(selection).narrow(selectionOf(flags));
}
