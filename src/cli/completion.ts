/**
 * `plue completion`: scripts for bash, zsh and fish, and the candidates for them. No shell expands a
 * candidate: the names of flags come from foreign schemas.
 */

import type { Command } from "commander";
import { cleanText, RISK_LEVELS, type Tool } from "../tool/mod.ts";
import { flagsOf } from "./arguments.ts";
import { targetNames } from "./export.ts";
import { type Flags, toolsFrom } from "./show.ts";
import { isHere } from "./sources/mod.ts";
import { type CommandIo, usageError } from "./terminal.ts";

const SCRIPTS = {
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

type Shell = keyof typeof SCRIPTS;
const SHELLS = Object.keys(SCRIPTS) as Shell[];

export function completionScript(shell: string): string {
  return SCRIPTS[shellOf(shell)];
}

function shellOf(name: string): Shell {
  const shell = SHELLS.find((one) => one === name);
  if (shell !== undefined) return shell;
  throw usageError(`Cannot complete for this shell: it must be one of ${SHELLS.join(", ")}`);
}

interface Candidate {
  readonly value: string;
  readonly description?: string | undefined;
}

const HIDDEN: ReadonlySet<string> = new Set(["complete", "probe"]);

/** The characters without a meaning in any shell. */
const SAFE = /^[\w.:@%+,/=-]+$/;

/** The time limit for loading the tools, in milliseconds: a person waits after pressing TAB. */
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
  // Bash completes only the part after the last ":" or "=" of the word.
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
  // The value of a flag follows it, or "=".
  const before = current.slice(0, current.indexOf("=") + 1);
  const flag = before === "" ? rest.at(-1) : before.slice(0, -1);
  const option = command.options.find(({ long, short, required }) =>
    required && flag !== undefined && (flag === long || flag === short)
  );
  const isCut = option !== undefined && before === "";
  const { operands: [id] } = command.parseOptions(isCut ? rest.slice(0, -1) : rest);
  const flags = command.opts<Flags>();
  if (name === "call" && id !== undefined) {
    const tool = (await harmlessTools(flags, io)).find((one) => one.id === id);
    return tool === undefined ? [] : argumentsOf(tool, flag, before);
  }
  if (option !== undefined) {
    const values = option.long === "--max-risk"
      ? RISK_LEVELS
      : option.long === "--to"
      ? targetNames()
      : [];
    return values.map((value) => ({ value: before + value }));
  }
  if (current.startsWith("-")) {
    return command.options.map(({ long, description }) => ({ value: long ?? "", description }));
  }
  if (name === "completion") return SHELLS.map((value) => ({ value }));
  const [argument] = command.registeredArguments;
  if (id !== undefined) return [];
  if (argument?.argChoices) return argument.argChoices.map((value) => ({ value }));
  if (argument?.name() !== "tool") return [];
  return (await harmlessTools(flags, io)).map(({ id, title, description }) => ({
    value: id,
    description: title ?? description,
  }));
}

/** Loads tools for a half written line, unless that would start a command or reach another host. */
async function harmlessTools({ from }: Flags, io: CommandIo): Promise<readonly Tool[]> {
  const sources = from ?? [io.env["PLUE_TOOLS"] ?? ""];
  if (!sources.every(isHere)) return [];
  await using loaded = await toolsFrom([], { from: sources }, io);
  return loaded.registry.tools;
}

function argumentsOf(tool: Tool, flag: string | undefined, before: string): readonly Candidate[] {
  const flags = flagsOf(tool);
  const found = flags.find(({ name }) => `--${name}` === flag)?.argument;
  if (found?.isSwitch === false) return found.values.map((value) => ({ value: before + value }));
  return [
    ...flags.flatMap(({ name, argument: { isSwitch, description } }) => [
      { value: `--${name}`, description },
      ...(isSwitch ? [{ value: `--no-${name}`, description }] : []),
    ]),
    { value: "--help", description: "Show the tool and its flags" },
    { value: "--json", description: "The arguments as JSON" },
  ];
}

/** Splits a command line: quotes join words, and a backslash escapes the next character. */
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
