/** The flags that select tools, and the toolset of their selection. */

import { type Command, InvalidArgumentError, Option } from "commander";
import {
  READER_FIELDS,
  type Selection,
  selectionFrom,
  type Toolset,
  valueKind,
  VOCABULARY,
  type VocabularyName,
} from "../select/mod.ts";
import { RISK_LEVELS, type ToolReader } from "../tool/mod.ts";
import { type LoadedTools, loadTools } from "./sources/mod.ts";
import { type CommandIo, usageError } from "./terminal.ts";

/**
 * The sources, the criteria of a selection and the reader of the descriptions (see `VOCABULARY`), as
 * flags. Commands have further ones, which `program.ts` describes.
 */
export interface Flags extends ToolReader {
  readonly from?: readonly string[];
  readonly header?: readonly string[];
  readonly baseUrl?: string;
  readonly [flag: string]: unknown;
}

export function repeated(flags: string, description: string): Option {
  return new Option(flags, description)
    .argParser((value: string, before: readonly string[] = []) => [...before, value]);
}

export function withSources(command: Command): Command {
  return command
    .addOption(repeated("-f, --from <source>", "where the tools are; PLUE_TOOLS if it is absent"))
    .addOption(repeated("--header <name: value>", "a header for the source, such as a token"))
    .addOption(new Option("--base-url <url>", "where the API of an OpenAPI document is"));
}

const OPTIONS = Object.entries(VOCABULARY) as [VocabularyName, { flag: string; text: string }][];

export function withSelection(command: Command): Command {
  for (const [name, { flag, text }] of OPTIONS) {
    const { shape, check } = valueKind(name);
    const option = shape === "list" ? repeated(flag, text) : new Option(flag, text);
    const isReader = (READER_FIELDS as readonly string[]).includes(name);
    option.helpGroup(isReader ? "Reader of the descriptions:" : "Selection:");
    if (name === "maxRisk") option.description += ` (${RISK_LEVELS.join(", ")})`;
    if (shape === "text") {
      option.argParser((value: string) => {
        try {
          return check("use it", value, "it");
        } catch (error) {
          throw new InvalidArgumentError(
            (error as Error).message.replace("Cannot use it: it", "It"),
          );
        }
      });
    }
    command.addOption(option);
  }
  return command;
}

export function selectionOf(flags: Flags): Selection {
  const values = OPTIONS.map(([name, { flag }]) => [name, flags[new Option(flag).attributeName()]]);
  return selectionFrom(Object.fromEntries(values)) ?? {};
}

/**
 * Loads the sources that flags and words name.
 *
 * @returns The tools, and the toolset that the caller of the flags sees.
 */
export async function toolsFrom(
  words: readonly string[],
  flags: Flags,
  io: CommandIo,
  mayBeNone = false,
): Promise<LoadedTools & { readonly toolset: Toolset }> {
  const { from = [], header, baseUrl, model, provider, locale } = flags;
  const headers = header && Object.fromEntries(header.map(readHeader));
  const loaded = await loadTools([...words, ...from], io, {
    ...{ headers, baseUrl, mayBeNone },
    reader: { model, provider, locale },
  });
  const { registry, selection } = loaded;
  return {
    ...loaded,
    get toolset() {
      return registry.select(selection).narrow(selectionOf(flags));
    },
  };
}

function readHeader(text: string): readonly [string, string] {
  const [, name = "", value = ""] = /^([\w!#$%&'*+.^`|~-]+): *(.*)$/.exec(text) ?? [];
  // The message does not repeat the text: it may be a token.
  if (name === "") throw usageError('Cannot read --header: it must be "name: value"');
  return [name.toLowerCase(), value];
}
