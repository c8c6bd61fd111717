/**
 * What a tool is given beside its arguments.
 *
 * @module
 */

/** Dependencies that tools are handed, by name: of the registry, or of one call. */
export interface Services {
  readonly [name: string]: unknown;
}

/** The transaction that a call runs in. The transaction manager decides what else it has. */
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
  /** Who calls, if the caller said. Over HTTP and MCP it is the one that `authorize` named. */
  readonly principal: string | undefined;
  /** Aborts when the caller gives up or the time is over. Hand it to everything that waits. */
  readonly signal: AbortSignal;
  /** The dependencies that the registry was made with, and over them those of this call. */
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
