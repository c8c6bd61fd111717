/**
 * A task as a Markdown file: front matter with `id`, `title`, `status` and perhaps `type` and
 * `assignee`, then the description. Changing a task rewrites those lines only; all else stays as its author wrote it.
 *
 * @module
 */

/** The states of a task, in order. */
export const TASK_STATUSES = ["todo", "started", "in_review", "done"] as const;

/** The state of a task. */
export type TaskStatus = (typeof TASK_STATUSES)[number];

/**
 * Who does a task: `impl` requires handoff to an implementation agent in a fresh session, `control`
 * is executed by the control agent directly (a verification, a review, a closure).
 */
export const TASK_TYPES = ["impl", "control"] as const;

/** Who does a task. */
export type TaskType = (typeof TASK_TYPES)[number];

/** A task. */
export interface Task {
  readonly id: string;
  readonly title: string;
  /** `impl` where the file does not say. */
  readonly type: TaskType;
  readonly status: TaskStatus;
  /** Who works on it, or `null`. */
  readonly assignee: string | null;
  /** What is to be done, and the history: the Markdown below the front matter. */
  readonly body: string;
}

/** What can be changed of a task. */
export interface TaskChange {
  readonly status: TaskStatus;
  /** Absent: unchanged. */
  readonly assignee?: string;
  /** What happened, for the history. */
  readonly event: string;
  /** When. */
  readonly at: Date;
}

const ID = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;
const FIELD = /^([A-Za-z_][A-Za-z0-9_-]{0,63}):(.*)$/;
/** Values that can be written without quotes. */
const PLAIN = /^[A-Za-z0-9_.-]{1,200}$/;
const FENCE = "---";
const HISTORY = "## History";

/** Whether `value` can be a task's id, and so the name of its file. */
export function isTaskId(value: string): boolean {
  return ID.test(value);
}

/**
 * Reads a task.
 *
 * @param text The file.
 * @param id The id in the file's name.
 * @throws {SyntaxError} If the front matter is missing or wrong. The message says which line.
 */
export function parseTask(text: string, id: string): Task {
  const { lines, end, fields } = frontMatter(text);
  const value = (name: string): string | undefined => fields.get(name)?.value;
  if (value("id") !== id) {
    throw wrong(fields.get("id")?.line ?? 0, `the id must be "${id}", as the file's name says`);
  }
  const title = value("title");
  if (!title) throw wrong(fields.get("title")?.line ?? 0, "a title is missing");
  const oneOf = <T extends string>(name: string, known: readonly T[], standard?: T): T => {
    const found = known.find((one) => one === (value(name) ?? standard));
    if (found !== undefined) return found;
    throw wrong(fields.get(name)?.line ?? 0, `the ${name} must be one of ${known.join(", ")}`);
  };
  const type = oneOf("type", TASK_TYPES, "impl");
  const status = oneOf("status", TASK_STATUSES);
  const body = lines.slice(end + 1).join("\n").trim();
  return { id, title, type, status, assignee: value("assignee") || null, body };
}

/** The file with a change made to it, and a line added to its history. */
export function changeTask(text: string, change: TaskChange): string {
  const { lines, end, fields, newline } = frontMatter(text);
  const changed = [...lines];
  let added = 0;
  const set = (name: string, value: string): void => {
    const line = `${name}: ${PLAIN.test(value) ? value : JSON.stringify(value)}`;
    const at = fields.get(name)?.line;
    if (at !== undefined) changed[at] = line;
    else changed.splice(end + added++, 0, line);
  };
  set("status", change.status);
  if (change.assignee !== undefined) set("assignee", change.assignee);
  addHistory(changed, `- ${change.at.toISOString()} ${oneLine(change.event)}`);
  return changed.join(newline);
}

/** Text from a model on one line, so that it cannot end a front matter or begin a heading. */
export function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, " ").trim();
}

interface FrontMatter {
  readonly lines: readonly string[];
  /** The line that closes the front matter. */
  readonly end: number;
  readonly fields: ReadonlyMap<string, { readonly value: string; readonly line: number }>;
  readonly newline: string;
}

function frontMatter(text: string): FrontMatter {
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = text.split(/\r?\n/);
  if (lines[0]?.trimEnd() !== FENCE) throw wrong(0, `the file must begin with "${FENCE}"`);
  const fields = new Map<string, { value: string; line: number }>();
  for (let line = 1; line < lines.length; line++) {
    const source = lines[line] ?? "";
    if (source.trimEnd() === FENCE) return { lines, end: line, fields, newline };
    // Comments and continuation lines are kept, but not read.
    if (/^(\s|#|-|$)/.test(source)) continue;
    const [, name = "", value = ""] = FIELD.exec(source) ?? [];
    if (name === "") throw wrong(line, 'it is not of the form "name: value"');
    if (fields.has(name)) throw wrong(line, `"${name}" is there twice`);
    fields.set(name, { value: scalar(value.trim(), line), line });
  }
  throw wrong(lines.length - 1, `the front matter must end with "${FENCE}"`);
}

function scalar(value: string, line: number): string {
  if (!value.startsWith('"')) return value;
  try {
    return String(JSON.parse(value));
  } catch {
    throw wrong(line, "what begins with a quote must be a string in double quotes");
  }
}

/** Appends a line to the history, which is created if it is missing. */
function addHistory(lines: string[], line: string): void {
  let last = lines.length;
  const start = lines.lastIndexOf(HISTORY);
  if (start !== -1) {
    const next = lines.findIndex((text, index) => index > start && /^#{1,2} /.test(text));
    if (next !== -1) last = next;
  }
  // Blank lines at the end stay below the new line.
  while (last > 0 && lines[last - 1]?.trim() === "") last--;
  const isEnd = last === lines.length;
  lines.splice(
    last,
    0,
    ...(start === -1 ? ["", HISTORY, "", line] : [line]),
    ...(isEnd ? [""] : []),
  );
}

function wrong(line: number, problem: string): SyntaxError {
  return new SyntaxError(`Cannot read the task: line ${line + 1}: ${problem}`);
}
