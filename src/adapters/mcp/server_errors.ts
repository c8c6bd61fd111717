/**
 * Errors of an imported server, in words that name it and hold none of the owner's secrets.
 *
 * @module
 */

import { clip, describeThrown } from "../../tool/mod.ts";

/** How a server is called in messages, and what must not be in them. */
export interface ServerName {
  /** `at https://…`, or a program in quotes. */
  readonly words: string;
  readonly secrets: readonly string[];
}

/** How a program ended. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** Parts of a path that are as long as this may be keys. */
const LONG_STEP = /[^/]{20,}/g;

/** Shorter values are no secrets, and would be cut out of other words. */
const MIN_SECRET = 6;

/** The name of a server at an address: without credentials, query, and long parts of its path. */
export function nameOfUrl(url: URL, headers: Iterable<readonly [string, string]>): ServerName {
  const path = url.pathname.replace(LONG_STEP, "…");
  const values = [...headers].flatMap(([, value]) => [value, ...value.split(/\s+/)]);
  const params = [...url.searchParams.values()];
  return {
    words: `at ${url.origin}${path}`,
    secrets: secretsOf([
      url.href,
      url.search,
      url.username,
      url.password,
      ...url.pathname.match(LONG_STEP) ?? [],
      ...params,
      ...params.map(encodeURIComponent),
      ...values,
    ]),
  };
}

/** The name of a program: without its arguments and its environment. */
export function nameOfCommand(
  command: string,
  args: readonly string[],
  env: { readonly [name: string]: string },
): ServerName {
  return {
    words: `"${clip(command, 200)}"`,
    secrets: secretsOf([...args, ...Object.values(env)]),
  };
}

/** Longest first, so that no part of one is left. */
function secretsOf(values: readonly string[]): readonly string[] {
  return values.filter((value) => value.length >= MIN_SECRET).sort((a, b) => b.length - a.length);
}

/** Says why a server cannot be imported: its HTTP status, how its program ended, or what happened. */
export function serverError(
  { words, secrets }: ServerName,
  error: unknown,
  ended: ProgramEnd | undefined,
): Error {
  const status = statusOf(error);
  const why = status !== undefined
    ? `it answered with HTTP status ${status}`
    : ended !== undefined
    ? ended.signal === null
      ? `it ended with exit code ${ended.code}`
      : `it was ended by ${ended.signal}`
    : withoutSecrets(messagesOf(error), secrets);
  // The cause is left out: it may hold headers, the address, or what the server sent.
  return new Error(`Cannot import the MCP server ${words}: ${why}`);
}

/** How many nested causes are looked at. */
const MAX_CAUSES = 5;

function statusOf(error: unknown, depth = 0): number | undefined {
  if (!(error instanceof Error) || depth > MAX_CAUSES) return undefined;
  const { status } = error as { readonly status?: unknown };
  return typeof status === "number" ? status : statusOf(error.cause, depth + 1);
}

/** The message of an error and of its innermost cause: fetch says why it failed in a cause only. */
export function messagesOf(error: unknown): string {
  let cause = error;
  for (let depth = 0; depth < MAX_CAUSES && cause instanceof Error && cause.cause; depth++) {
    cause = cause.cause;
  }
  const outer = describeThrown(error, 300);
  const inner = describeThrown(cause, 300);
  return outer.includes(inner) ? outer : `${outer} (${inner})`;
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) clean = clean.replaceAll(secret, "…");
  return clean.replace(/[\p{Cc}\p{Cf}]+/gu, " ");
}
