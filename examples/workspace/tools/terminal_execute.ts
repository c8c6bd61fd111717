/**
 * `terminal-execute`: runs a command and streams its output.
 *
 * The folder is only the working directory. A command can do everything that the user of this
 * process can, so the tool is of high risk and can be switched off.
 */

import { lstat } from "node:fs/promises";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext, type ToolFailure } from "../../../mod.ts";
import { resolveInside } from "../paths.ts";
import { failureOf, Refusal } from "../refusal.ts";
import { minimalEnvironment, type ProcessEnd, runProcess } from "../run_process.ts";
import { workspaceOf } from "../workspace.ts";

/**
 * The number of characters of each stream's beginning, and of its end, in the result. Both streams
 * stay below the dispatcher's default limit of 1 MiB, even if JSON escapes every character.
 */
const HALF_LENGTH = 32_000;
/** The maximum time of a command, in milliseconds. */
const MAX_TIMEOUT_MS = 600_000;

const Parameters = Type.Object({
  command: Type.String({
    description: "The program: a name in PATH, or a path.",
    minLength: 1,
    maxLength: 4_096,
  }),
  args: Type.Optional(
    Type.Array(Type.String({ maxLength: 131_072 }), {
      description: "Its arguments. No shell reads them.",
      maxItems: 1_000,
      default: [],
    }),
  ),
  shell: Type.Optional(Type.Boolean({
    description: "Run command as a shell script (sh -c), with args as $1, $2 and so on.",
    default: false,
  })),
  cwd: Type.Optional(
    Type.String({ description: "The working directory.", default: ".", minLength: 1 }),
  ),
  input: Type.Optional(Type.String({ description: "The text on the standard input." })),
  timeoutMs: Type.Optional(
    Type.Integer({
      description: "The maximum time, in milliseconds.",
      minimum: 1,
      maximum: MAX_TIMEOUT_MS,
      default: 120_000,
    }),
  ),
}, { additionalProperties: false });

const Returns = Type.Object({
  exitCode: Type.Union([Type.Integer(), Type.Null()], { description: "Null: ended by a signal." }),
  signal: Type.Union([Type.String(), Type.Null()], { description: "The signal that ended it." }),
  timedOut: Type.Boolean({ description: "True if it was stopped after timeoutMs." }),
  stdout: Type.String(),
  stderr: Type.String(),
  truncated: Type.Boolean({ description: "True if the middle of a long output was omitted." }),
});

type Params = Static<typeof Parameters>;

/** A streamed piece of output. */
interface OutputPiece {
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

/** The tool `terminal-execute`. */
export const terminalExecute: Tool = defineTool({
  name: "terminal-execute",
  title: "Run a command",
  description:
    "Runs a program in the workspace, without a shell unless shell is set, and streams its " +
    "output. A program that fails is a result with its exit code. Its background processes are " +
    "killed when it ends.",
  parameters: Parameters,
  returns: Returns,
  category: "terminal",
  risk: "high",
  tags: ["execute", "write"],
  // Longer than every `timeoutMs`, so that the command is stopped first.
  timeoutMs: MAX_TIMEOUT_MS + 5_000,
  examples: [
    { description: "Without a shell", input: { command: "ls", args: ["-la", "src"] } },
    { description: "With one", input: { command: "ls *.ts | wc -l", shell: true } },
  ],
  isAvailable: ({ services }) => workspaceOf(services).hasTerminal,
  execute: (params, context) => run(params, context),
});

async function* run(
  params: Params,
  context: ToolContext,
): AsyncGenerator<OutputPiece, Static<typeof Returns> | ToolFailure, void> {
  const { command, args = [], shell = false, input, timeoutMs = 120_000 } = params;
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), timeoutMs);
  const stdout = new HeadAndTail();
  const stderr = new HeadAndTail();
  const result = (end: ProcessEnd, timedOut: boolean): Static<typeof Returns> => ({
    ...end,
    timedOut,
    stdout: stdout.toString(),
    stderr: stderr.toString(),
    truncated: stdout.isCut || stderr.isCut,
  });
  try {
    const output = runProcess({
      command: shell ? "sh" : command,
      args: shell ? ["-c", command, "sh", ...args] : args,
      cwd: await workingDirectory(params, context),
      env: minimalEnvironment(),
      input,
      signal: AbortSignal.any([context.signal, deadline.signal]),
    });
    return result(yield* decoded(output, { stdout, stderr }), false);
  } catch (error) {
    if (error === deadline.signal.reason && !context.signal.aborted) {
      return result({ exitCode: null, signal: null }, true);
    }
    return failureOf(error);
  } finally {
    clearTimeout(timer);
  }
}

async function workingDirectory(params: Params, context: ToolContext): Promise<string> {
  const folder = await resolveInside(workspaceOf(context.services).root, params.cwd ?? ".");
  const stats = await lstat(folder.absolute).catch(() => undefined);
  if (stats?.isDirectory() === true) return folder.absolute;
  throw new Refusal("invalid_arguments", `Cannot run in "${folder.shown}": it is not a folder`, {
    pointer: "/cwd",
  });
}

/** Decodes the output piece by piece. A character that is split over two pieces stays whole. */
async function* decoded(
  output: ReturnType<typeof runProcess>,
  kept: Readonly<Record<OutputPiece["stream"], HeadAndTail>>,
): AsyncGenerator<OutputPiece, ProcessEnd, void> {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  const piece = (stream: OutputPiece["stream"], data?: Uint8Array): readonly OutputPiece[] => {
    const text = decoders[stream].decode(data, { stream: data !== undefined });
    kept[stream].add(text);
    return text === "" ? [] : [{ stream, text }];
  };
  try {
    for (;;) {
      const { done, value } = await output.next();
      if (done !== true) yield* piece(value.stream, value.data);
      else {
        yield* [...piece("stdout"), ...piece("stderr")];
        return value;
      }
    }
  } finally {
    // Stops the command if the consumer stops early.
    await output.return({ exitCode: null, signal: null });
  }
}

/**
 * Keeps the beginning and the end of a long text: the first lines of a command's output say what
 * it did, the last ones why it failed.
 */
class HeadAndTail {
  #head = "";
  #tail = "";
  #length = 0;

  add(text: string): void {
    const free = HALF_LENGTH - this.#head.length;
    this.#length += text.length;
    this.#head += text.slice(0, free);
    if (text.length > free) this.#tail = (this.#tail + text.slice(free)).slice(-HALF_LENGTH);
  }

  /** True if text was omitted. */
  get isCut(): boolean {
    return this.#length > this.#head.length + this.#tail.length;
  }

  toString(): string {
    if (!this.isCut) return this.#head + this.#tail;
    const missing = this.#length - this.#head.length - this.#tail.length;
    // A cut may split a surrogate pair.
    return `${this.#head}\n… [${missing} characters omitted] …\n${this.#tail}`.toWellFormed();
  }
}
