/**
 * `plue completion`: scripts for bash, zsh and fish, and the candidates for them. The scripts are
 * short, and no shell expands a candidate: the names of flags come from foreign schemas.
 *
 * @module
 */

import type { Command, Option } from "commander";
import { cleanText, RISK_LEVELS } from "../tool/mod.ts";
import { flagsOf } from "./arguments.ts";
import { targetNames } from "./export.ts";
import { toolsFrom } from "./selection.ts";
import { isHere } from "./sources/mod.ts";
import { type CommandIo, usageError } from "./terminal.ts";

/** The shells that have a script. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** A shell that has a script. */
export type Shell = (typeof SHELLS)[number];

const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `# plue completion for bash: source <(plue completion bash)
_plue() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("$line")
  done < <(plue complete bash -- "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -o default -F _plue plue`,
  zsh: `#compdef plue
# plue completion for zsh: source <(plue completion zsh)
_plue() {
  local line
  local -a found
  while IFS= read -r line; do
    found+=("$line")
  done < <(plue complete zsh -- "\${(j: :)words[1,CURRENT]}" 2>/dev/null)
  if (( \${#found} )); then _describe plue found; else _files; fi
}
if [[ "\${funcstack[1]}" = _plue ]]; then _plue; else compdef _plue plue; fi`,
  fish: `# plue completion for fish: plue completion fish | source
complete -c plue -a '(plue complete fish -- (commandline -cp) 2>/dev/null)'`,
};

/** The script of a shell. */
export function completionScript(shell: string): string {
  return SCRIPTS[shellOf(shell)];
}

function shellOf(name: string): Shell {
  const shell = SHELLS.find((one) => one === name);
  if (shell !== undefined) return shell;
  throw usageError(`Cannot complete for this shell: it must be one of ${SHELLS.join(", ")}`);
}

/** One candidate. */
interface Candidate {
  readonly value: string;
  readonly description?: string | undefined;
}

/** Subcommands that only programs call. */
const HIDDEN: ReadonlySet<string> = new Set(["complete", "probe"]);

/** The characters without a meaning in any shell. */
const SAFE = /^[\w.:@%+,/=-]+$/;

/**
 * The time within which the tools must load, in milliseconds: a person waits after pressing TAB.
 */
const LOAD_MS = 3_000;

/**
 * Returns the candidates for the next word of a command line.
 *
 * @param line The command line up to the cursor, with the name of the program.
 * @returns A line per candidate, in the form of the shell's script.
 */
export async function complete(
  program: Command,
  shell: string,
  line: string,
  io: CommandIo,
): Promise<readonly string[]> {
  const kind = shellOf(shell);
  const words = wordsOf(line).slice(1);
  const current = words.pop() ?? "";
  const patient = { ...io, signal: AbortSignal.any([io.signal, AbortSignal.timeout(LOAD_MS)]) };
  const found = await candidates(program, words, current, patient).catch(() => []);
  return found.filter(({ value }) => value.startsWith(current) && SAFE.test(value))
    .map((candidate) => written(kind, candidate, current));
}

function written(shell: Shell, { value, description = "" }: Candidate, current: string): string {
  const about = cleanText(description, 100).replaceAll(/\s+/g, " ");
  if (shell === "fish") return about === "" ? value : `${value}\t${about}`;
  if (shell === "zsh") return value.replaceAll(":", "\\:") + (about === "" ? "" : `:${about}`);
  // Bash completes what follows the last ":" or "=" of the word.
  return value.slice(Math.max(current.lastIndexOf(":"), current.lastIndexOf("=")) + 1);
}

async function candidates(
  program: Command,
  words: readonly string[],
  current: string,
  io: CommandIo,
): Promise<readonly Candidate[]> {
  const [name, ...rest] = words;
  const command = program.commands.find((one) => one.name() === name);
  if (command === undefined) {
    return name !== undefined ? [] : program.commands.filter((one) => !HIDDEN.has(one.name()))
      .map((one) => ({ value: one.name(), description: one.description() }));
  }
  const { from, positionals, awaiting, after } = readWords(command, rest);
  if (after !== undefined) return await argumentsOfCall(after, rest, from, current, io);
  const [option, before] = current.startsWith("--") && current.includes("=")
    ? [optionOf(command, current.split("=")[0] ?? ""), `${current.split("=")[0]}=`]
    : [awaiting, ""];
  if (option !== undefined) {
    return valuesOf(option).map((value) => ({ value: before + value }));
  }
  if (current.startsWith("-")) {
    return command.options.filter(({ long }) => long !== undefined)
      .map(({ long, description }) => ({ value: long ?? "", description }));
  }
  if (command.name() === "completion") return SHELLS.map((value) => ({ value }));
  const takesTool = command.registeredArguments[0]?.name() === "tool" && positionals === 0;
  if (!takesTool) return [];
  if (!isHarmless(from, io)) return [];
  await using loaded = await toolsFrom([], { from }, io);
  return loaded.registry.tools.map(({ id, title, description }) => ({
    value: id,
    description: title ?? description,
  }));
}

/** Whether a half written line may be loaded: it must start no command, and reach no other host. */
function isHarmless(from: readonly string[], { env }: CommandIo): boolean {
  const sources = from.length > 0 ? from : [env["PLUE_TOOLS"] ?? ""];
  return sources.every(isHere);
}

/** The words of a subcommand, as far as completion needs them. */
interface ReadWords {
  readonly from: readonly string[];
  readonly positionals: number;
  /** The option whose value comes next. */
  readonly awaiting: Option | undefined;
  /** The tool's id, and where its arguments begin. */
  readonly after: { readonly id: string; readonly at: number } | undefined;
}

function readWords(command: Command, words: readonly string[]): ReadWords {
  const from: string[] = [];
  let positionals = 0;
  let awaiting: Option | undefined;
  for (const [at, word] of words.entries()) {
    if (awaiting !== undefined) {
      if (awaiting.long === "--from") from.push(word);
      awaiting = undefined;
      continue;
    }
    const [flag = "", ...value] = word.split("=");
    const option = word.startsWith("-") ? optionOf(command, flag) : undefined;
    if (option === undefined && !word.startsWith("-")) {
      positionals++;
      if (command.name() === "call") {
        return { from, positionals, awaiting: undefined, after: { id: word, at: at + 1 } };
      }
    } else if (option?.required === true) {
      if (value.length === 0) awaiting = option;
      else if (option.long === "--from") from.push(value.join("="));
    }
  }
  return { from, positionals, awaiting, after: undefined };
}

function optionOf(command: Command, flag: string): Option | undefined {
  return command.options.find(({ long, short }) => flag === long || flag === short);
}

/** The values of an option that are known. */
function valuesOf({ long }: Option): readonly string[] {
  if (long === "--max-risk") return RISK_LEVELS;
  return long === "--to" ? targetNames() : [];
}

/** The flags of a tool, and their values. */
async function argumentsOfCall(
  { id, at }: { readonly id: string; readonly at: number },
  words: readonly string[],
  from: readonly string[],
  current: string,
  io: CommandIo,
): Promise<readonly Candidate[]> {
  if (!isHarmless(from, io)) return [];
  await using loaded = await toolsFrom([], { from }, io);
  const tool = loaded.registry.select().resolve(id);
  if (tool === undefined) return [];
  const flags = flagsOf(tool);
  const last = words.length > at ? words.at(-1) : undefined;
  const [written, before] = current.includes("=")
    ? [current.split("=")[0], `${current.split("=")[0]}=`]
    : [last, ""];
  const flag = flags.find(({ name, isSwitch }) => `--${name}` === written && !isSwitch);
  if (flag !== undefined) return flag.values.map((value) => ({ value: before + value }));
  return [
    ...flags.flatMap(({ name, isSwitch, description }) => [
      { value: `--${name}`, description },
      ...(isSwitch ? [{ value: `--no-${name}`, description }] : []),
    ]),
    { value: "--help", description: "Show the tool and its flags" },
    { value: "--json", description: "The arguments as JSON" },
  ];
}

/** Takes a command line apart: quotes hold words together, and a backslash keeps what follows. */
function wordsOf(line: string): string[] {
  const words = [""];
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const letter = line[at] ?? "";
    if (letter === "\\" && quote !== "'") words[words.length - 1] += line[++at] ?? "";
    else if (quote !== "" ? letter === quote : /["']/.test(letter)) {
      quote = quote === "" ? letter : "";
    } else if (quote === "" && /\s/.test(letter)) {
      if (words.at(-1) !== "") words.push("");
    } else words[words.length - 1] += letter;
  }
  return words;
}
