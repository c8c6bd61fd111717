/**
 * Failures of the workspace's tools: a code and a sentence for the model. Helpers throw a
 * {@linkcode Refusal}; {@linkcode answer} turns it into a `ToolFailure`.
 */

import { type FailureCode, type ToolFailure, ToolResult } from "../../mod.ts";

/** Options for {@linkcode Refusal}. */
export interface RefusalOptions extends ErrorOptions {
  /** JSON Pointer of the invalid argument. */
  readonly pointer?: string;
  readonly retryable?: boolean;
}

/** An error whose message goes to the model: what cannot be done, and why. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly code: FailureCode;
  readonly options: RefusalOptions;

  constructor(code: FailureCode, message: string, options: RefusalOptions = {}) {
    super(message, options);
    this.code = code;
    this.options = options;
  }
}

/** Returns the failure of a refusal, and throws every other error again. */
export function failureOf(reason: unknown): ToolFailure {
  if (!(reason instanceof Refusal)) throw reason;
  const { code, message, options: { pointer, retryable } } = reason;
  const issue = { keyword: "custom", expected: "a usable value", message } as const;
  return ToolResult.error(code, message, {
    ...(pointer === undefined ? {} : { issues: [{ path: pointer, ...issue }] }),
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

/** The failure code and the words for each error of the file system. */
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
  ["ENOSPC", ["unavailable", "the disk is full"]],
  ["EMFILE", ["overloaded", "too many files are open"]],
  ["EMOVED", ["denied", "it was moved meanwhile"]],
]);

/** Returns the code of a system error, such as `ENOENT`. */
export function errorCode(error: unknown): string | undefined {
  const { code } = error instanceof Error && "code" in error ? error : { code: undefined };
  return typeof code === "string" ? code : undefined;
}

/** Creates an error like the file system's. `EMOVED`: another file has replaced the file. */
export function systemError(code: "EISDIR" | "EMOVED" | "ENOTDIR"): Error {
  return Object.assign(new Error(code), { code });
}

/**
 * Returns a file system's error as a refusal that contains the caller's path. The system's own
 * message would contain the path of the workspace on this machine.
 */
export function fileRefusal(error: unknown, action: string, shown: string): Refusal {
  if (error instanceof Refusal) return error;
  const code = errorCode(error);
  const [failure, why] = FILE_ERRORS.get(code ?? "") ??
    ["threw", `the file system reported ${code ?? "an unknown error"}`];
  return new Refusal(failure, `Cannot ${action} "${shown}": ${why}`, {
    cause: error,
    ...(failure === "invalid_arguments" ? { pointer: "/path" } : {}),
    ...(code === "EMOVED" ? { retryable: true } : {}),
  });
}
