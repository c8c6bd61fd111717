/**
 * Failures of the workspace's tools: a code and a sentence for the model, instead of a bare
 * exception. Helpers throw a {@linkcode Refusal}; {@linkcode answer} turns it into a `ToolResult`.
 *
 * @module
 */

import { type FailureCode, type ToolFailure, ToolResult } from "../../mod.ts";

/** Says that something cannot be done, why, and (for an argument) where. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly code: FailureCode;
  /** JSON Pointer of the argument that is wrong, if one is. */
  readonly pointer: string | undefined;
  readonly retryable: boolean | undefined;

  constructor(
    code: FailureCode,
    message: string,
    options: { readonly pointer?: string; readonly retryable?: boolean; readonly cause?: unknown } =
      {},
  ) {
    super(message, { cause: options.cause });
    this.code = code;
    this.pointer = options.pointer;
    this.retryable = options.retryable;
  }
}

/** The failure of a refusal. Other errors are thrown again. */
export function failureOf(reason: unknown): ToolFailure {
  if (!(reason instanceof Refusal)) throw reason;
  const { code, message, pointer, retryable } = reason;
  return ToolResult.error(code, message, {
    ...(pointer === undefined
      ? {}
      : { issues: [{ path: pointer, keyword: "custom", expected: "a usable value", message }] }),
    ...(retryable === undefined ? {} : { retryable }),
  });
}

/** Runs `work` and returns its refusal as a failure. */
export async function answer<T>(work: () => Promise<T>): Promise<T | ToolFailure> {
  try {
    return await work();
  } catch (reason) {
    return failureOf(reason);
  }
}

/** A refusal with the file system's error in words, and the code that fits it. */
const FILE_ERRORS: ReadonlyMap<string, readonly [FailureCode, string]> = new Map([
  ["ENOENT", ["invalid_arguments", "it does not exist"]],
  ["ENOTDIR", ["invalid_arguments", "a part of its path is not a folder"]],
  ["EISDIR", ["invalid_arguments", "it is a folder"]],
  ["EEXIST", ["invalid_arguments", "it exists already"]],
  ["ENOTEMPTY", ["invalid_arguments", "the folder is not empty"]],
  ["ENAMETOOLONG", ["invalid_arguments", "its name is too long"]],
  ["ELOOP", ["denied", "it is a symbolic link"]],
  ["EACCES", ["denied", "the operating system forbids it"]],
  ["EPERM", ["denied", "the operating system forbids it"]],
  ["EROFS", ["denied", "the file system is read-only"]],
  ["EXDEV", ["denied", "it is on another file system than the workspace"]],
  ["ENOSPC", ["unavailable", "the disk is full"]],
  ["EMFILE", ["overloaded", "too many files are open"]],
  ["EBUSY", ["unavailable", "it is in use"]],
  ["EMOVED", ["denied", "it was moved meanwhile"]],
]);

/** The code of a system error, such as `ENOENT`. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** An error as the file system throws it. `EMOVED` is our own: something else took a file's place. */
export function systemError(code: "EISDIR" | "EMOVED" | "ENOTDIR"): Error {
  return Object.assign(new Error(code), { code });
}

/**
 * A file system's error as a refusal that names the path as the caller wrote it: the system's own
 * message would tell the caller where the workspace lies on this machine.
 */
export function fileRefusal(error: unknown, action: string, shown: string): Refusal {
  if (error instanceof Refusal) return error;
  const code = errorCode(error);
  const [failure, why] = FILE_ERRORS.get(code ?? "") ??
    ["threw", `the file system answered ${code ?? "an unknown error"}`];
  return new Refusal(failure, `Cannot ${action} "${shown}": ${why}`, {
    cause: error,
    ...(failure === "invalid_arguments" ? { pointer: "/path" } : {}),
    ...(code === "EMOVED" ? { retryable: true } : {}),
  });
}
