/**
 * The input and output of the command: results on standard output, everything else on standard
 * error, colours and widths on terminals only.
 */

import Table from "cli-table3";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import process from "node:process";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { styleText } from "node:util";
import { attemptOr, cleanText, type FailureCode } from "../tool/mod.ts";

export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Output;
  readonly stderr: Output;
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal;
  /** Has the same effect as Ctrl-C. */
  interrupt(): void;
}

/** Exit codes besides the codes of failed calls. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;

export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.failed, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

export function usageError(message: string, options?: ErrorOptions): CommandError {
  return new CommandError(message, EXIT.usage, options);
}

/** Reads a file, or standard input for the path `-`. */
export async function readInput(path: string, { stdin }: CommandIo): Promise<string> {
  if (path === "-") return await text(stdin);
  if (!existsSync(path)) throw new Error("there is no such file");
  return await readFile(path, "utf8");
}

export interface Diagnosis {
  readonly part: string;
  /** The state `missing` is not an error, because the part may not be needed. */
  readonly state: "works" | "missing" | "broken";
  readonly detail: string;
}

type MakeDiagnosis = (part: string, detail: string) => Diagnosis;
export const works: MakeDiagnosis = (part, detail) => ({ part, state: "works", detail });
export const missing: MakeDiagnosis = (part, detail) => ({ part, state: "missing", detail });
export const broken: MakeDiagnosis = (part, detail) => ({ part, state: "broken", detail });

type Style = "bold" | "dim" | "red" | "yellow" | "green" | "cyan" | "magenta";

export const RISK_STYLES = {
  safe: "green",
  low: "green",
  medium: "yellow",
  high: "red",
  critical: "magenta",
} as const;

/** The parts of a border, all of them empty. */
const NO_BORDER = Object.fromEntries(
  ["top", "bottom", "left", "right", "mid"].flatMap((side) =>
    ["", "-mid", "-left", "-right"].map((end) => [`${side}${end}`, ""])
  ).concat([["middle", ""]]),
);

/** The maximum width of a table that is written to a file. */
const NO_LIMIT = 1_000;
const GAP = 2;

export class Terminal {
  readonly io: CommandIo;
  readonly isJson: boolean;

  constructor(io: CommandIo, isJson = false) {
    this.io = io;
    this.isJson = isJson;
  }

  get canAsk(): boolean {
    return this.io.stdin.isTTY === true && this.io.stderr.isTTY === true;
  }

  print(text: string): void {
    this.io.stdout.write(`${text}\n`);
  }

  /** Writes foreign text as the result. On a terminal, control characters are removed. */
  printForeign(text: string): void {
    this.print(this.io.stdout.isTTY === true ? cleanText(text, Infinity) : text);
  }

  /** Writes JSON as the result: on one line for programs, indented for people. */
  printJson(value: unknown): void {
    const isIndented = this.io.stdout.isTTY === true || !this.isJson;
    this.printForeign(JSON.stringify(value, null, isIndented ? 2 : undefined) ?? "null");
  }

  /** Writes a result: as JSON for programs, or as the text for people. */
  printResult(value: unknown, text: () => string): void {
    if (this.isJson) this.printJson(value);
    else this.print(text());
  }

  /** Writes a line for people, to standard error. */
  note(text: string): void {
    this.io.stderr.write(`${text}\n`);
  }

  /** Writes a remark with a word in front of it. */
  warn(text: string): void {
    this.note(`${this.paint("yellow", "warning", this.io.stderr)}: ${oneLine(text, 2_000)}`);
  }

  reject(text: string): void {
    this.note(`${this.paint("red", "rejected", this.io.stderr)} ${oneLine(text, 1_000)}`);
  }

  paint(style: Style, text: string, stream: Output = this.io.stdout): string {
    return showsColours(stream, this.io.env)
      ? styleText(style, text, { validateStream: false })
      : text;
  }

  /**
   * Lays out rows in columns. On a terminal the last column is cut at its edge.
   *
   * @param rows The cells. Control characters and line breaks of foreign text are removed.
   * @param styles The style of each text in a column, by the title of the column.
   */
  table(
    head: readonly string[],
    rows: readonly (readonly string[])[],
    styles: Readonly<Record<string, Readonly<Record<string, Style>>>> = {},
  ): string {
    const cells = rows.map((row) => row.map((cell) => oneLine(cell)));
    const { isTTY = false, columns = 80 } = this.io.stdout;
    const used = head.slice(0, -1).reduce(
      (sum, title, column) =>
        sum + GAP + Math.max(title.length, ...cells.map((row) => row[column]?.length ?? 0)),
      0,
    );
    const last = isTTY ? Math.max(20, columns - used) : NO_LIMIT;
    const widest = Math.max(...[head, ...cells].map((row) => (row.at(-1) ?? "").length));
    const table = new Table({
      head: head.map((title) => this.paint("bold", title)),
      chars: NO_BORDER,
      style: { head: [], border: [], compact: true, "padding-left": 0, "padding-right": GAP },
      colWidths: widest > last - GAP ? [...head.slice(1).map(() => null), last] : [],
    });
    table.push(...cells.map((row) =>
      row.map((cell, column) => {
        const style = styles[head[column] ?? ""]?.[cell];
        return style === undefined ? cell : this.paint(style, cell);
      })
    ));
    return table.toString().replaceAll(/ +$/gm, "");
  }
}

const OPENERS: { readonly [platform: string]: readonly string[] } = {
  darwin: ["open"],
  win32: ["cmd", "/d", "/c", "start", ""],
};

/** Opens the page with the opener of the platform. If that fails, prints the address instead. */
export function openPage(url: string, terminal: Terminal): void {
  const [opener = "", ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  const print = (): void => terminal.note(`Cannot open a browser: open ${url} yourself`);
  const child = spawn(opener, [...args, url], { stdio: "ignore", detached: true });
  child.once("error", print).once("exit", (code) => void (code !== 0 && print()));
  child.unref();
}

/** The value of a JSON text; `undefined` for other texts. */
export function parsedJson(text: string): unknown {
  return attemptOr(undefined, () => JSON.parse(text));
}

/** A number of things: `1 tool`, `2 tools`, `2 losses`. */
export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? "" : thing.endsWith("s") ? "es" : "s"}`;
}

/** Follows https://no-color.org, and FORCE_COLOR for logs. */
function showsColours(stream: Output, { NO_COLOR, FORCE_COLOR, TERM }: CommandIo["env"]): boolean {
  if (NO_COLOR) return false;
  if (FORCE_COLOR) return FORCE_COLOR !== "0";
  return stream.isTTY === true && TERM !== "dumb";
}

/** Returns a text of others in one line: it must not begin a line of its own. */
export function oneLine(text: string, maxLength: number = 10_000): string {
  return cleanText(text, maxLength).replaceAll(/\s+/g, " ").trim();
}

/** Ctrl-C ends programs with 128 + SIGINT; `timeout` of coreutils answers 124. */
export const EXIT_CODES = {
  unknown_tool: 10,
  unavailable: 11,
  denied: 12,
  not_executable: 13,
  invalid_arguments: 14,
  invalid_result: 15,
  approval_required: 16,
  transaction_failed: 17,
  output_too_large: 18,
  overloaded: 19,
  threw: 20,
  input_required: 21,
  input_unavailable: 22,
  ticket_refused: 23,
  timeout: 124,
  aborted: 130,
} as const satisfies Record<FailureCode, number>;

export function exitCodesHelp(): string {
  const rows: readonly (readonly [number, string])[] = [
    [0, "success"],
    [1, "a check found something, or plue failed"],
    [2, "the command line, a setting or a source cannot be used"],
    ...Object.entries(EXIT_CODES).map(([name, code]) => [code, name] as const),
  ];
  return rows.map(([code, name]) => `  ${String(code).padStart(3)}  ${name}`).join("\n");
}

export const VERSION = "0.1.0";
