/**
 * What a tool is given beside its arguments.
 *
 * @module
 */

/** Dependencies that the registry's owner hands to its tools, by name. */
export interface Services {
  readonly [name: string]: unknown;
}

/** The transaction that a call runs in. What it offers is the transaction manager's own. */
export interface Transaction {
  /** Names the transaction in logs. */
  readonly id: string;
}

/** What a tool is given beside its arguments, for one call. */
export interface ToolContext<Config = unknown, State = unknown> {
  /** The conversation that the call belongs to, if the caller said. */
  readonly sessionId: string | undefined;
  /** The model's message that asked for the call, if the caller said. */
  readonly messageId: string | undefined;
  /** Names this call; unique unless the caller chose otherwise. */
  readonly callId: string;
  /** Aborts when the caller gives up or the time is over. Hand it on to whatever waits. */
  readonly signal: AbortSignal;
  /** The dependencies that the registry was made with. */
  readonly services: Services;
  /** This tool's configuration, checked against its `config` schema. */
  readonly config: Config;
  /** What the tool's `init` returned. */
  readonly state: State;
  /** The transaction, for a tool that requires one. */
  readonly transaction: Transaction | undefined;
  /** Sends a JSON value to the caller at once. */
  metadata(value: unknown): void;
  /** Says how far the call has come; `total` and `message` if known. */
  progress(done: number, total?: number, message?: string): void;
  /** Runs `cleanup` however the call ends; the last one deferred runs first. */
  defer(cleanup: () => void | Promise<void>): void;
  /** Throws the signal's reason if the call has been aborted. */
  throwIfAborted(): void;
}

/** What a tool's `init` is given. */
export interface ToolInitContext<Config = unknown> {
  readonly services: Services;
  readonly config: Config;
}

/** What a tool's `isAvailable` function is given. */
export interface ToolAvailabilityQuery {
  readonly services: Services;
  readonly config: unknown;
}
