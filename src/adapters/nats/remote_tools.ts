/**
 * The tools of all workers, as tools of a registry.
 *
 * @module
 */

import type { NatsConnection } from "@nats-io/nats-core";
import type { ToolRegistry } from "../../registry/mod.ts";
import {
  type Answers,
  callHook,
  checkFunction,
  checkText,
  type HookLog,
  isObject,
  isSuspended,
  isWord,
  must,
  NO_LOG,
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
import { Directory } from "./directory.ts";
import { DurableCalls } from "./durable_calls.ts";
import { Fleet, HERE_EVERY_MS } from "./fleet.ts";
import { Seal } from "./message.ts";
import { type CallRequest, RemoteCalls, type TakeOutput } from "./remote_calls.ts";
import { isDurable } from "./runs.ts";
import { checkServer, checkSubscriptions, noteRefusals } from "./server.ts";
import { followStatus } from "./status.ts";
import { checkRegistryName, toolKey } from "./subjects.ts";
import { isTelemetry, placeNow } from "./telemetry.ts";

/** Options for {@linkcode remoteTools}. */
export interface RemoteToolsOptions {
  /** Receives the tools, and follows their changes. */
  readonly registry: ToolRegistry;
  /**
   * What callers and workers share, at least 16 characters. Of a list, the first one signs and all
   * are accepted, so that it can be replaced.
   */
  readonly secret: string | readonly string[];
  /**
   * The name of the registry that the workers serve.
   *
   * @default {"default"}
   */
  readonly name?: string;
  /**
   * Where answers go, for a user who may not subscribe to other subjects.
   *
   * @default {"_INBOX"}
   */
  readonly inboxPrefix?: string;
  /**
   * Makes the workers' spans parts of the trace that is active in a call: what `openTelemetry` makes.
   * The call's own span, and its duration, are those of the dispatcher with `telemetry`.
   */
  readonly telemetry?: CallTelemetry;
  /** Receives errors that reach no caller. */
  onError?(error: unknown): void;
}

/** The tools of all workers, in a registry. */
export interface RemoteTools extends AsyncDisposable {
  /** Those that are in the registry now. */
  readonly tools: readonly Tool[];
  /** How many workers are there. */
  readonly workers: number;
  /** Takes the tools out of the registry, and ends their calls. The connection stays open. */
  close(): Promise<void>;
}

const ACTION = "use remote tools";

const OPTIONS = {
  registry: must(
    "a registry",
    (value): value is ToolRegistry => isObject(value) && "tools" in value,
  ),
  secret: (_action: string, value: unknown): string | readonly string[] => value as string,
  name: checkRegistryName,
  inboxPrefix: checkText,
  telemetry: must("what openTelemetry makes", isTelemetry),
  onError: checkFunction,
};

/** Tells the place of calls in traces. What it does wrong goes to the log. */
interface Observer {
  readonly telemetry: CallTelemetry | undefined;
  readonly log: HookLog;
}

/** One definition of a tool, as a worker has written it. */
interface Version {
  readonly path: string;
  readonly revision: number;
  readonly record: Record<string, unknown>;
}

/**
 * Brings the tools of all workers into a registry: {@linkcode serveTools} offers them. They are listed,
 * selected, exported and called like tools of this process. Who may call what, with which approval
 * and how often, is decided here; the worker checks the arguments again.
 *
 * A tool is available while a worker is there that serves this very definition. A call goes to one of
 * them; one that cannot be reached fails with `unavailable`, and may be tried again.
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
 * @throws {TypeError} If an option is wrong.
 * @throws {Error} If the server cannot do what is needed, or does not let this user.
 */
export async function remoteTools(
  connection: NatsConnection,
  options: RemoteToolsOptions,
): Promise<RemoteTools> {
  const { registry, secret, name = "default", inboxPrefix = "_INBOX" } = readFields(
    ACTION,
    { ...options },
    OPTIONS,
  );
  if (registry === undefined) refuse(ACTION, "it needs a registry");
  const seal = new Seal(ACTION, secret as string);
  const log: HookLog = (error) => callHook(() => options.onError?.(error), NO_LOG);
  await checkServer(ACTION, connection);
  const { refused, note } = noteRefusals(log);
  const fleet = new Fleet(connection, seal, note);
  const calls = new RemoteCalls(connection, seal, fleet, inboxPrefix, note);
  const durable = new DurableCalls(connection, seal, inboxPrefix, log);
  const sync = new Sync(name, registry, fleet, calls, durable, {
    telemetry: options.telemetry,
    log,
  });
  let directory: Directory | undefined;
  const follow = (): void => {
    if (directory !== undefined) sync.update(directory.entries);
  };
  const unfollow = followStatus(connection, {
    down(why) {
      calls.disconnect(why);
      durable.disconnect(why);
    },
    forbidden(subject) {
      calls.forbid(subject);
      log(new Error(`The user of the connection may not publish to "${subject}"`));
    },
    up() {
      calls.reconnect();
      durable.reconnect();
      directory?.restart();
    },
  });
  const unsubscribe = registry.subscribe(({ type }) => {
    if (type === "removed") sync.retry();
  });
  const close = (): void => {
    unfollow();
    unsubscribe();
    directory?.stop();
    sync.clear();
    calls.stop();
    durable.stop();
    fleet.stop();
  };
  const closed = (): Promise<void> => Promise.resolve(close());
  void connection.closed().then(close);
  try {
    await checkSubscriptions(ACTION, connection, refused);
    const settings = { action: ACTION, connection, seal, registry: name, log };
    directory = await Directory.open(settings, follow);
    follow();
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

/** Keeps a registry's tools as the directory has them. */
class Sync {
  readonly #name: string;
  readonly #registry: ToolRegistry;
  readonly #fleet: Fleet;
  readonly #calls: RemoteCalls;
  readonly #durable: DurableCalls;
  readonly #observer: Observer;
  /** The tools in the registry, with the paths of their definitions, by id. */
  readonly #tools: Map<string, { readonly path: string; readonly tool: Tool }> = new Map();
  /** Definitions that the registry has refused. When it changes, they are tried again. */
  #refused: Set<string> = new Set();
  #isPutting = false;
  #versions: ReadonlyMap<string, readonly Version[]> = new Map();
  #stopLooking: (() => void) | undefined;

  constructor(
    name: string,
    registry: ToolRegistry,
    fleet: Fleet,
    calls: RemoteCalls,
    durable: DurableCalls,
    observer: Observer,
  ) {
    this.#name = name;
    this.#registry = registry;
    this.#fleet = fleet;
    this.#calls = calls;
    this.#durable = durable;
    this.#observer = observer;
  }

  get tools(): readonly Tool[] {
    return [...this.#tools.values()].map(({ tool }) => tool);
  }

  update(entries: Directory["entries"]): void {
    this.#fleet.update(this.#name, entries);
    const prefix = toolKey(`${this.#name}.`);
    const versions = new Map<string, Version[]>();
    for (const [key, { value: record, revision }] of entries) {
      if (!key.startsWith(prefix)) continue;
      const { namespace, name } = record;
      const id = isWord(namespace) ? `${namespace}:${name}` : String(name);
      const version = { path: `${this.#name}.${key.slice(prefix.length)}`, revision, record };
      versions.set(id, [...versions.get(id) ?? [], version]);
    }
    this.#versions = versions;
    for (const id of [...this.#tools.keys()]) if (!versions.has(id)) this.#remove(id);
    const paths = new Set([...versions.values()].flat().map(({ path }) => path));
    for (const path of this.#refused) if (!paths.has(path)) this.#refused.delete(path);
    this.#choose();
  }

  clear(): void {
    this.#stopLooking?.();
    this.#versions = new Map();
    for (const id of [...this.#tools.keys()]) this.#remove(id);
  }

  /** Takes of each tool the newest definition that a worker serves. */
  #choose(): void {
    this.#stopLooking?.();
    this.#stopLooking = undefined;
    let isMixed = false;
    for (const [id, versions] of this.#versions) {
      isMixed ||= versions.length > 1;
      const rank = ({ path, revision }: Version): number =>
        revision + (this.#fleet.serves(path) ? Number.MAX_SAFE_INTEGER / 2 : 0);
      const newest = versions.reduce((one, other) => rank(other) > rank(one) ? other : one);
      if (this.#tools.get(id)?.path !== newest.path) this.#put(id, newest);
    }
    // While old and new workers run side by side, those of the newest definition may go.
    if (isMixed) {
      this.#stopLooking = systemClock.setTimeout(() => this.#choose(), HERE_EVERY_MS);
    }
  }

  #put(id: string, { path, record }: Version): void {
    if (this.#refused.has(path)) return;
    this.#isPutting = true;
    const { executable, ...fields } = record;
    const definition: ToolDefinition = {
      // The registry checks each field.
      ...(fields as unknown as ToolDefinition),
      ...(executable === true && {
        // A durable call waits for a worker.
        isAvailable: record["execution"] === "task" || (() => this.#fleet.serves(path)),
        execute: (params: unknown, context: ToolContext) =>
          this.#execute(id, path, record, params, context),
      }),
    };
    const registry = this.#registry;
    const known = this.#tools.get(id)?.tool;
    try {
      const tool = known !== undefined && registry.getTool(id) === known
        ? registry.updateTool(definition)
        : registry.registerTool(definition);
      this.#tools.set(id, { path, tool });
    } catch (error) {
      this.#refused.add(path);
      this.#observer.log(error);
    } finally {
      this.#isPutting = false;
    }
  }

  /** Tries again what the registry has refused: the tool that was in the way may be gone. */
  retry(): void {
    if (this.#isPutting || this.#refused.size === 0) return;
    this.#refused = new Set();
    this.#choose();
  }

  /** Removes a tool, unless another one has taken its id in the registry. */
  #remove(id: string): void {
    const tool = this.#tools.get(id)?.tool;
    this.#tools.delete(id);
    if (this.#registry.getTool(id) === tool) this.#registry.unregisterTool(id);
  }

  /** Runs a call on a worker, and asks its caller what the worker asks. */
  async *#execute(
    id: string,
    path: string,
    { idempotent }: Record<string, unknown>,
    params: unknown,
    context: ToolContext,
  ): AsyncGenerator<unknown, unknown, void> {
    const { tool } = this.#tools.get(id) ?? {};
    if (tool === undefined) {
      return ToolResult.error("unavailable", `Cannot call "${id}": it is gone`);
    }
    const { callId, principal, sessionId, messageId } = context;
    const who = { callId, principal, sessionId, messageId, context: context.context };
    let request: CallRequest = { ...who, arguments: params };
    for (let round = 0;; round++) {
      const output = new Outputs();
      let end: ToolResult | undefined;
      // A step, so that a call that is continued goes on with the worker's ticket.
      const step = context.step(`plue.remote.${round}`, async () => {
        const isRepeatable = idempotent === true;
        const { telemetry, log } = this.#observer;
        const call = { ...request, trace: placeNow(telemetry, log) };
        end = isDurable(tool)
          ? await this.#durable.run(path, id, call, context)
          : await this.#calls.run(
            path,
            id,
            { ...call, timeoutMs: CallContext.remainingMsOf(context) },
            isRepeatable,
            context,
            output.push,
          );
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
      request = { ...who, ticket: asked.ticket, ...await answersOf(asked.questions, context) };
    }
  }
}

const ENDED = new Error("The call has ended");

/** Asks the caller what a worker asks. */
async function answersOf(
  questions: readonly Question[],
  context: ToolContext,
): Promise<Pick<CallRequest, "answers" | "mute">> {
  const ask = async ({ key, kind, message, schema, url }: Question) =>
    [
      key,
      await context.ask(key, {
        ...{ kind, message },
        ...(schema !== undefined && { schema }),
        ...(url !== undefined && { url }),
      }),
    ] as const;
  try {
    const answers: Answers = Object.fromEntries(await Promise.all(questions.map(ask)));
    return { answers };
  } catch (error) {
    if ((error as { readonly code?: unknown })?.code !== "input_unavailable") throw error;
    return { mute: true };
  }
}

/** What a remote generator has yielded, until it is taken. The worker's credit is its bound. */
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
