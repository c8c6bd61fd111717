/**
 * `terminal-execute`: runs a command, and streams what it prints.
 *
 * The folder is only the working directory. A command can do everything that the user of this
 * process can, so the tool is of high risk and can be switched off.
 *
 * @module
 */

import { lstat } from "node:fs/promises";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext, type ToolFailure } from "../../../mod.ts";
import { minimalEnvironment, runProcess } from "../run_process.ts";
import { resolveInside } from "../paths.ts";
import { failureOf, Refusal } from "../refusal.ts";
import { HeadAndTail } from "../clip.ts";
import { workspaceOf } from "../workspace.ts";

/**
 * How many characters of each stream the result keeps. Both streams stay below the dispatcher's
 * default limit of 1 MiB, even if JSON escapes every character.
 */
const MAX_OUTPUT_LENGTH = 64_000;
/** How long a command may run, in milliseconds. */
const MAX_TIMEOUT_MS = 600_000;

const Parameters = Type.Object({
  command: Type.String({
    description: "The program: a name that is looked up in PATH, or a path.",
    minLength: 1,
    maxLength: 4_096,
  }),
  args: Type.Optional(
    Type.Array(Type.String({ maxLength: 131_072 }), {
      description: "Its arguments, handed over as they are. No shell reads them.",
      maxItems: 1_000,
      default: [],
    }),
  ),
  shell: Type.Optional(Type.Boolean({
    description: "Run command as a shell script (sh -c), with args as $1, $2 and so on.",
    default: false,
  })),
  cwd: Type.Optional(
    Type.String({ description: "The folder to begin in.", default: ".", minLength: 1 }),
  ),
  env: Type.Optional(
    Type.Record(Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,127}$" }), Type.String(), {
      description: "Variables to set, beside PATH, HOME and LANG.",
      maxProperties: 50,
      additionalProperties: false,
    }),
  ),
  input: Type.Optional(
    Type.String({ description: "What the program reads on its standard input." }),
  ),
  timeoutMs: Type.Optional(
    Type.Integer({
      description: "How long it may run, in milliseconds.",
      minimum: 1,
      maximum: MAX_TIMEOUT_MS,
      default: 120_000,
    }),
  ),
}, { additionalProperties: false });

const Returns = Type.Object({
  exitCode: Type.Union([Type.Integer(), Type.Null()], { description: "Null: ended by a signal." }),
  signal: Type.Union([Type.String(), Type.Null()], { description: "The signal that ended it." }),
  timedOut: Type.Boolean({ description: "It was stopped because timeoutMs was over." }),
  stdout: Type.String(),
  stderr: Type.String(),
  truncated: Type.Boolean({ description: "The middle of a long output was left out." }),
  durationMs: Type.Number(),
});

const Config = Type.Object({
  maxOutputLength: Type.Optional(Type.Integer({
    description: "How many characters of each stream the result keeps.",
    minimum: 100,
    maximum: 1_000_000,
  })),
  killGraceMs: Type.Optional(Type.Integer({
    description: "How long a command has to stop after SIGTERM, in milliseconds.",
    minimum: 0,
    maximum: 10_000,
  })),
}, { additionalProperties: false });

type Params = Static<typeof Parameters>;
type Result = Static<typeof Returns>;

/** A piece of output, as it is streamed. */
interface OutputPiece {
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

/** The tool `terminal-execute`. */
export const terminalExecute: Tool = defineTool({
  name: "terminal-execute",
  title: "Run a command",
  description:
    "Runs a program in the workspace, without a shell unless shell is set, and streams " +
    "what it prints. A program that fails is a result with its exit code. Nothing that it started " +
    "is left running.",
  parameters: Parameters,
  returns: Returns,
  config: Config,
  category: "terminal",
  risk: "high",
  tags: ["execute", "write"],
  // The parameter timeoutMs decides; this is only what no call may exceed.
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
  context: ToolContext<Static<typeof Config> | undefined>,
): AsyncGenerator<OutputPiece, Result | ToolFailure, void> {
  const { command, args = [], shell = false, input, timeoutMs = 120_000 } = params;
  const { maxOutputLength = MAX_OUTPUT_LENGTH, killGraceMs } = context.config ?? {};
  const started = performance.now();
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(DEADLINE), timeoutMs);
  const kept = {
    stdout: new HeadAndTail(maxOutputLength),
    stderr: new HeadAndTail(maxOutputLength),
  };
  const result = (exitCode: number | null, signal: string | null, timedOut: boolean): Result => ({
    exitCode,
    signal,
    timedOut,
    stdout: kept.stdout.toString(),
    stderr: kept.stderr.toString(),
    truncated: kept.stdout.isCut || kept.stderr.isCut,
    durationMs: performance.now() - started,
  });
  try {
    const output = runProcess({
      command: shell ? "sh" : command,
      args: shell ? ["-c", command, "sh", ...args] : args,
      cwd: await folderOf(params, context),
      env: minimalEnvironment(params.env),
      input,
      signal: AbortSignal.any([context.signal, deadline.signal]),
      killGraceMs,
    });
    const end = yield* decoded(output, kept);
    return result(end.exitCode, end.signal, false);
  } catch (error) {
    if (error === DEADLINE && !context.signal.aborted) return result(null, null, true);
    return failureOf(error);
  } finally {
    clearTimeout(timer);
  }
}

/** The reason to stop a command after its `timeoutMs`: a part of the result, and no error. */
const DEADLINE: unique symbol = Symbol("the command's own deadline");

async function folderOf(params: Params, context: ToolContext<unknown>): Promise<string> {
  const folder = await resolveInside(workspaceOf(context.services).root, params.cwd ?? ".");
  if (folder.exists && (await lstat(folder.absolute)).isDirectory()) return folder.absolute;
  throw new Refusal("invalid_arguments", `Cannot run in "${folder.shown}": it is not a folder`, {
    pointer: "/cwd",
  });
}

/** Decodes the output piece by piece. Characters that are split over two pieces stay whole. */
async function* decoded(
  output: ReturnType<typeof runProcess>,
  kept: Readonly<Record<OutputPiece["stream"], HeadAndTail>>,
): AsyncGenerator<OutputPiece, { exitCode: number | null; signal: string | null }, void> {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  try {
    for (;;) {
      const step = await output.next();
      if (step.done === true) {
        for (const stream of ["stdout", "stderr"] as const) {
          const text = decoders[stream].decode();
          kept[stream].add(text);
          if (text !== "") yield { stream, text };
        }
        return step.value;
      }
      const { stream, data } = step.value;
      const text = decoders[stream].decode(data, { stream: true });
      kept[stream].add(text);
      if (text !== "") yield { stream, text };
    }
  } finally {
    // Stop the command if the consumer stops early.
    await output.return({ exitCode: null, signal: null });
  }
}
