/**
 * Callers: the tools of all workers, as tools of a registry.
 *
 * @module
 */

import type { NatsConnection } from "@nats-io/nats-core";
import type { Registry } from "../../registry/mod.ts";
import { hardenTool } from "../../schema/mod.ts";
import {
  type Answers,
  checkText,
  forwardedQuestion,
  type HookLog,
  isObject,
  isSuspended,
  makeTool,
  must,
  numberFrom,
  type Question,
  readFields,
  refuse,
  systemClock,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  ToolResult,
} from "../../tool/mod.ts";
import { CallContext, type CallTelemetry } from "../../execute/mod.ts";
import { DurableCalls, type KeptSettings } from "./durable_calls.ts";
import { Directory, listIn } from "./directory.ts";
import { Fleet, PRESENCE_EVERY_MS } from "./fleet.ts";
import { currentTrace, NATS_OPTIONS, type NatsOptions, readNatsOptions } from "./options.ts";
import { type CallRequest, RemoteCalls, type TakeOutput } from "./remote_calls.ts";
import { isDurable } from "./runs.ts";
import { checkServer, checkSubscriptions, followStatus, noteRefusals } from "./server.ts";
import type { Seal } from "./seal.ts";
import type { StorageSettings } from "./streams.ts";
import { idOfPath, recordOf, toolKey } from "./subjects.ts";

/** Options for {@linkcode remoteTools}. */
export interface RemoteToolsOptions extends NatsOptions {
  /** The registry that receives the tools and their changes. */
  readonly registry: Registry;
  /**
   * The prefix of reply subjects, for a user who may not subscribe to others.
   *
   * @default {"_INBOX"}
   */
  readonly inboxPrefix?: string;
  /**
   * The maximum size of the waiting tasks of each `principal`, in bytes; a task counts at least 1,024.
   * Further tasks fail with `overloaded`.
   *
   * @default {an eighth of the size of the stream "PLUE_CALLS"}
   */
  readonly maxOwnerBytes?: number;
}

/** The tools of all workers, in a registry. */
export interface RemoteTools extends AsyncDisposable {
  /** The tools that are in the registry now. */
  readonly tools: readonly Tool[];
  /** The number of workers that send presence messages. */
  readonly workers: number;
  /** Removes the tools from the registry, and ends their calls. The connection stays open. */
  close(): Promise<void>;
}

const ACTION = "use remote tools";

const OPTIONS = {
  registry: must(
    "a registry",
    (value): value is Registry => isObject(value) && "tools" in value,
  ),
  inboxPrefix: checkText,
  maxOwnerBytes: numberFrom(1_024),
  ...NATS_OPTIONS,
};

/** Reads the current trace. Its errors are logged. */
interface Observer {
  readonly telemetry: CallTelemetry | undefined;
  readonly log: HookLog;
}

/** The settings that follow from the options. */
export interface RemoteSettings {
  readonly registry: Registry;
  readonly seal: Seal;
  readonly name: string;
  readonly inboxPrefix: string;
  readonly kept: KeptSettings & { readonly storage: StorageSettings };
  readonly observer: Observer;
}

/**
 * Reads the options.
 *
 * @param given A copy to check, without the fields of other options.
 * @throws {TypeError} If an option is invalid.
 */
export function readRemoteOptions(options: RemoteToolsOptions, given: object): RemoteSettings {
  const { registry, inboxPrefix = "_INBOX", maxOwnerBytes, telemetry, ...read } = readFields(
    ...[ACTION, given, OPTIONS] as const,
  );
  if (registry === undefined) refuse(ACTION, "it needs a registry");
  const { seal, name, storage, log } = readNatsOptions(ACTION, "caller", read, options);
  const kept = { maxOwnerBytes, storage };
  return { registry, seal, name, inboxPrefix, kept, observer: { telemetry, log } };
}

/** One definition of a tool, as a worker has written it. */
interface Version {
  readonly path: string;
  readonly revision: number;
  /** `undefined` while the tool in the registry has the definition: it would be stored twice. */
  record: Record<string, unknown> | undefined;
}

/**
 * Registers the tools that workers offer with {@linkcode serveTools}. They are listed, selected, exported
 * and called like local tools. The caller decides who may call which tool, with which approval and how
 * often; the worker validates the arguments again.
 *
 * A tool is available while a worker serves its current definition. A call goes to one of these workers.
 * If none accepts it, the call fails with `unavailable`.
 *
 * @example Usage
 * ```ts ignore
 * import { connect } from "@nats-io/transport-node";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { remoteTools } from "@plue/tools/nats";
 *
 * const registry = new ToolRegistry();
 * const connection = await connect({ servers: "nats://localhost" });
 * await using tools = await remoteTools(connection, { registry, secret: process.env.PLUE_SECRET });
 * const result = await new ToolDispatcher(registry).dispatch({ name: "add", arguments: { a: 1 } });
 * ```
 *
 * @throws {TypeError} If an option is invalid.
 * @throws {Error} If the server lacks a feature, or the user of the connection a permission.
 */
export async function remoteTools(
  connection: NatsConnection,
  options: RemoteToolsOptions,
): Promise<RemoteTools> {
  const { registry, seal, name, inboxPrefix, kept, observer } = readRemoteOptions(
    options,
    {
      ...options,
    },
  );
  const { log } = observer;
  await checkServer(ACTION, connection);
  const { refused, note } = noteRefusals(log);
  const fleet = new Fleet(connection, seal, name, note);
  let directory: Directory | undefined;
  const line = new CallLine({
    ...{ connection, seal, fleet, inboxPrefix, kept, log: note },
    up: () => directory?.restart(),
  });
  const sync = new Sync(name, registry, fleet, { open: () => line, done() {} }, observer);
  const unsubscribe = registry.subscribe(({ type }) => {
    if (type === "removed") sync.retry();
  });
  const close = (): void => {
    unsubscribe();
    directory?.stop();
    sync.clear();
    line.stop();
    fleet.stop();
  };
  const closed = (): Promise<void> => Promise.resolve(close());
  void connection.closed().then(close);
  try {
    await checkSubscriptions(ACTION, connection, refused);
    const { storage } = kept;
    const settings = { action: ACTION, connection, seal, registry: name, log, storage };
    directory = await Directory.open(settings, (keys) => {
      if (directory !== undefined) sync.update(keys, directory.entries);
    });
    sync.update(directory.entries.keys(), directory.entries);
  } catch (error) {
    close();
    throw error;
  }
  return {
    get tools() {
      return sync.tools;
    },
    get workers() {
      return fleet.size;
    },
    close: closed,
    [Symbol.asyncDispose]: closed,
  };
}

/** The settings of a {@linkcode CallLine}. */
export interface CallLineSettings {
  readonly connection: NatsConnection;
  readonly seal: Seal;
  readonly fleet: Fleet;
  /** The prefix of the subjects of answers. */
  readonly inboxPrefix: string;
  /** The limits of durable calls. */
  readonly kept: KeptSettings;
  readonly log: HookLog;
  /** Is called when the connection is up again. */
  up?(): void;
  /** Reads the directory again, where the known workers do not take a call. */
  lookAgain?(): Promise<void>;
}

/** Sends the plain and the durable calls of one connection, while it is up. */
export class CallLine {
  readonly connection: NatsConnection;
  readonly plain: RemoteCalls;
  readonly durable: DurableCalls;
  readonly #unfollow: () => void;

  constructor(
    { connection, seal, fleet, inboxPrefix, log, kept, up, lookAgain }: CallLineSettings,
  ) {
    const plain = new RemoteCalls(connection, seal, fleet, inboxPrefix, log, lookAgain);
    const durable = new DurableCalls(connection, seal, inboxPrefix, log, kept);
    this.connection = connection;
    this.plain = plain;
    this.durable = durable;
    this.#unfollow = followStatus(connection, {
      down(why) {
        plain.disconnect(why);
        durable.disconnect(why);
      },
      forbidden(subject) {
        plain.forbid(subject);
        log(new Error(`The user of the connection may not publish to "${subject}"`));
      },
      up() {
        plain.reconnect();
        durable.reconnect();
        up?.();
      },
    });
  }

  /** Ends the calls, and not the connection. */
  stop(): void {
    this.#unfollow();
    this.plain.stop();
    this.durable.stop();
  }
}

/** Provides the line of a call: one for all calls, or one for each. */
interface CallLines {
  /** @throws {Error} If there is no connection. */
  open(): CallLine | Promise<CallLine>;
  /** Is called when the call has ended. */
  done(line: CallLine): void | Promise<void>;
}

/** Keeps a registry's tools as the directory has them. */
export class Sync {
  readonly #name: string;
  readonly #registry: Registry;
  readonly #fleet: Fleet;
  readonly #lines: CallLines;
  readonly #observer: Observer;
  /** The tools in the registry, with the paths of their definitions, by id. */
  readonly #tools: Map<string, { readonly path: string; readonly tool: Tool }> = new Map();
  /** The paths of definitions that the registry has rejected. They are retried when a tool is removed. */
  readonly #refused: Set<string> = new Set();
  #isPutting = false;
  /** The definitions of each tool, by its id. */
  readonly #versions: Map<string, Version[]> = new Map();
  /** The ids of the tools with several definitions. */
  readonly #mixed: Set<string> = new Set();
  #stopLooking: (() => void) | undefined;

  constructor(
    name: string,
    registry: Registry,
    fleet: Fleet,
    lines: CallLines,
    observer: Observer,
  ) {
    this.#name = name;
    this.#registry = registry;
    this.#fleet = fleet;
    this.#lines = lines;
    this.#observer = observer;
  }

  get tools(): readonly Tool[] {
    return [...this.#tools.values()].map(({ tool }) => tool);
  }

  /** Applies the entries with these keys. */
  update(keys: Iterable<string>, entries: Directory["entries"]): void {
    const prefix = toolKey(`${this.#name}.`);
    const ids = new Set<string>();
    let isMoved = false;
    for (const key of keys) {
      const entry = entries.get(key);
      if (!key.startsWith(prefix)) {
        this.#fleet.update(key, listIn(this.#name, key, entry?.value));
        isMoved = true;
        continue;
      }
      const path = `${this.#name}.${key.slice(prefix.length)}`;
      const id = idOfPath(path);
      const others = this.#versions.get(id)?.filter((known) => known.path !== path) ?? [];
      if (entry?.value === undefined) {
        this.#refused.delete(path);
        this.#versions.set(id, others);
      } else {
        const { revision, value } = entry;
        const isChosen = this.#tools.get(id)?.path === path;
        const version = { path, revision, record: isChosen ? undefined : value };
        // A literal, since an array that grows reserves space for many elements.
        this.#versions.set(id, [...others, version]);
        entry.value = undefined;
      }
      ids.add(id);
    }
    this.#choose(ids);
    if (isMoved) this.#choose([...this.#mixed]);
  }

  clear(): void {
    this.#stopLooking?.();
    this.#mixed.clear();
    this.#versions.clear();
    for (const id of [...this.#tools.keys()]) this.#remove(id);
  }

  /** Registers the newest definition of each of these tools that a worker serves. */
  #choose(ids: Iterable<string>): void {
    for (const id of ids) {
      const versions = this.#versions.get(id) ?? [];
      if (versions.length > 1) this.#mixed.add(id);
      else this.#mixed.delete(id);
      const rank = ({ path, revision }: Version): number =>
        revision + (this.#fleet.serves(path) ? Number.MAX_SAFE_INTEGER / 2 : 0);
      const [first, ...others] = versions;
      if (first === undefined) {
        this.#versions.delete(id);
        this.#remove(id);
        continue;
      }
      const newest = others.reduce((one, other) => rank(other) > rank(one) ? other : one, first);
      if (this.#tools.get(id)?.path !== newest.path) this.#put(id, newest);
    }
    // While old and new workers run side by side, the new ones may end.
    if (this.#mixed.size === 0) return;
    this.#stopLooking ??= systemClock.setTimeout(() => {
      this.#stopLooking = undefined;
      this.#choose([...this.#mixed]);
    }, PRESENCE_EVERY_MS);
  }

  #put(id: string, version: Version): void {
    const { path, record } = version;
    if (record === undefined || this.#refused.has(path)) return;
    this.#isPutting = true;
    const { executable, ...fields } = record;
    const isRepeatable = record["idempotent"] === true;
    const definition: ToolDefinition = {
      // The registry checks each field.
      ...(fields as unknown as ToolDefinition),
      ...(executable === true && {
        // A durable call waits for a worker.
        isAvailable: record["execution"] === "task" || (() => this.#fleet.serves(path)),
        execute: (params: unknown, context: ToolContext) =>
          this.#execute(id, path, isRepeatable, params, context),
      }),
    };
    const registry = this.#registry;
    const before = this.#tools.get(id);
    const known = before?.tool;
    try {
      const remote = hardenTool(makeTool(definition));
      const tool = known !== undefined && registry.getTool(id) === known
        ? registry.updateTool(remote)
        : registry.registerTool(remote);
      this.#tools.set(id, { path, tool });
      version.record = undefined;
      const other = this.#versions.get(id)?.find((one) => one.path === before?.path);
      if (other !== undefined && known !== undefined) other.record = recordOf(known);
    } catch (error) {
      this.#refused.add(path);
      this.#observer.log(error);
    } finally {
      this.#isPutting = false;
    }
  }

  /** Registers rejected definitions again: the tool with the same id may have been removed. */
  retry(): void {
    if (this.#isPutting || this.#refused.size === 0) return;
    const refused = [...this.#refused].map(idOfPath);
    this.#refused.clear();
    this.#choose(refused);
  }

  /** Removes a tool, unless the registry has another tool with its id. */
  #remove(id: string): void {
    const tool = this.#tools.get(id)?.tool;
    this.#tools.delete(id);
    if (this.#registry.getTool(id) === tool) this.#registry.unregisterTool(id);
  }

  /** Runs a call on a worker, and forwards the worker's questions. */
  async *#execute(
    id: string,
    path: string,
    isRepeatable: boolean,
    params: unknown,
    context: ToolContext,
  ): AsyncGenerator<unknown, unknown, void> {
    const { tool } = this.#tools.get(id) ?? {};
    if (tool === undefined) {
      return ToolResult.error("unavailable", `Cannot call "${id}": it is gone`, { ran: "no" });
    }
    const { callId, principal, sessionId, messageId } = context;
    const who = { callId, principal, sessionId, messageId, context: context.context };
    let request: CallRequest = { ...who, arguments: params };
    for (let round = 0;; round++) {
      const output = new Outputs();
      let end: ToolResult | undefined;
      // A step, so that a continued call resumes with the worker's ticket.
      const step = context.step(`plue.remote.${round}`, async () => {
        const { telemetry, log } = this.#observer;
        const call = { ...request, trace: currentTrace(telemetry, log) };
        let line: CallLine;
        try {
          line = await this.#lines.open();
        } catch (error) {
          log(error);
          const why = "there is no connection to NATS; nothing has run";
          end = ToolResult.error("unavailable", `Cannot call "${id}": ${why}`, { ran: "no" });
          throw ENDED;
        }
        try {
          end = isDurable(tool)
            ? await line.durable.run(path, id, call, context)
            : await line.plain.run(
              path,
              id,
              { ...call, timeoutMs: CallContext.callOf(context)?.deadline.remainingMs },
              isRepeatable,
              context,
              output.push,
            );
        } finally {
          await this.#lines.done(line);
        }
        if (!isSuspended(end)) throw ENDED;
        return { ticket: end.ticket, questions: end.questions };
      });
      step.then(output.close, output.close);
      yield* output.taken();
      let asked: { readonly ticket: string; readonly questions: readonly Question[] };
      try {
        asked = await step;
      } catch (error) {
        if (error !== ENDED) throw error;
        return end;
      }
      const answered = await answersOf(asked.questions, params, context);
      request = { ...who, ticket: asked.ticket, ...answered };
    }
  }
}

/** Ends a step without recording it, because the call has ended. */
const ENDED = new Error("The call has ended");

/** Forwards the questions of a worker. */
async function answersOf(
  questions: readonly Question[],
  given: unknown,
  context: ToolContext,
): Promise<Pick<CallRequest, "answers" | "mute">> {
  const ask = async (question: Question) =>
    [question.key, await context.ask(question.key, forwardedQuestion(question, given))] as const;
  try {
    const answers: Answers = Object.fromEntries(await Promise.all(questions.map(ask)));
    return { answers };
  } catch (error) {
    if ((error as { readonly code?: unknown })?.code !== "input_unavailable") throw error;
    return { mute: true };
  }
}

/** Buffers the outputs of a remote generator. The worker's credit limits their size. */
class Outputs {
  readonly #waiting: (readonly [value: unknown, taken: () => void])[] = [];
  #isClosed = false;
  #wake: () => void = () => {};

  readonly push: TakeOutput = (value, taken) => {
    this.#waiting.push([value, taken]);
    this.#wake();
  };

  readonly close = (): void => {
    this.#isClosed = true;
    this.#wake();
  };

  async *taken(): AsyncGenerator<unknown, void, void> {
    for (;;) {
      for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
        yield next[0];
        next[1]();
      }
      if (this.#isClosed) return;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }
}
