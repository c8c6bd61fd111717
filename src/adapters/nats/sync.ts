/**
 * Registers the tools of all workers in a caller's registry, and sends their calls.
 *
 * While workers are updated, the directory has several definitions of one tool, each with a path of
 * its own. The newest definition that a present worker serves is registered. A tool with several
 * definitions is contested: another definition may be registered when a worker comes or goes.
 */

import { nuid } from "@nats-io/nats-core";
import type { Registry } from "../../registry/mod.ts";
import { hardenTool } from "../../schema/mod.ts";
import {
  type Answers,
  assertSync,
  callHook,
  forwardedQuestion,
  type HookLog,
  isSuspended,
  makeTool,
  once,
  type Question,
  systemClock,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolResult,
} from "../../tool/mod.ts";
import { CallContext, type CallTelemetry } from "../../execute/mod.ts";
import { readTraceParent, writeTraceParent } from "../http/mod.ts";
import { DurableCalls } from "./durable_calls.ts";
import { type Directory, type DirectoryEntry, listIn } from "./directory.ts";
import { type Fleet, PRESENCE_EVERY_MS } from "./fleet.ts";
import type { Link, LinkSettings } from "./link.ts";
import { idOfPath, recordOf, toolKey } from "./protocol.ts";
import { type CallRequest, type RemoteCall, RemoteCalls, unavailable } from "./remote_calls.ts";
import { isDurable } from "./runs.ts";

/** A definition of a tool in the directory. */
interface Version {
  readonly path: string;
  revision: number;
  /** The definition from the directory; `undefined` while the tool is registered. */
  record: Record<string, unknown> | undefined;
}

export interface RemoteSettings {
  readonly registry: Registry;
  readonly link: LinkSettings;
  readonly inboxPrefix: string;
  /** The maximum size of the waiting tasks of a principal, in bytes. */
  readonly maxOwnerBytes: number | undefined;
  readonly telemetry: CallTelemetry | undefined;
}

/** Sends the calls of one connection. */
export class CallLine {
  readonly link: Link;
  readonly plain: RemoteCalls;
  readonly durable: DurableCalls;

  /** @param refresh Reads the list of workers again if the known workers do not accept a call. */
  constructor(
    link: Link,
    fleet: Fleet,
    { inboxPrefix, maxOwnerBytes }: RemoteSettings,
    refresh?: () => Promise<void>,
  ) {
    this.link = link;
    this.plain = new RemoteCalls(link, fleet, inboxPrefix, refresh);
    this.durable = new DurableCalls(link, inboxPrefix, maxOwnerBytes);
    link.follow({
      forbidden(subject) {
        link.log(new Error(`The user of the connection may not publish to "${subject}"`));
      },
    });
  }

  stop(): void {
    this.link.stop("the remote tools are closed");
    this.plain.stop();
    this.durable.stop();
  }
}

/** Provides the connection of a call: one for all calls, or one for each call. */
interface CallLines {
  /** @throws {Error} If there is no connection. */
  open(): CallLine | Promise<CallLine>;
  done(line: CallLine): void | Promise<void>;
}

/** Ends a step without recording it, because the call has ended. */
const ENDED = new Error("The call has ended");

export class Sync {
  readonly #settings: RemoteSettings;
  readonly #fleet: Fleet;
  readonly #lines: CallLines;
  readonly #unsubscribe: () => void;
  /** The registered tools, and the paths of their definitions. */
  readonly #tools: Map<string, { readonly tool: Tool; readonly path: string }> = new Map();
  /** The paths of definitions that the registry has rejected. The removal of a tool retries them. */
  readonly #refused: Set<string> = new Set();
  #isPutting = false;
  readonly #versions: Map<string, Version[]> = new Map();
  readonly #contested: Set<string> = new Set();
  #stopLooking: (() => void) | undefined;

  constructor(settings: RemoteSettings, fleet: Fleet, lines: CallLines) {
    this.#settings = settings;
    this.#fleet = fleet;
    this.#lines = lines;
    this.#unsubscribe = settings.registry.subscribe(({ type }) => {
      if (type === "removed") this.#retry();
    });
  }

  get tools(): readonly Tool[] {
    return [...this.#tools.values()].map(({ tool }) => tool);
  }

  update(keys: Iterable<string>, entries: Directory["entries"]): void {
    const { name } = this.#settings.link;
    const prefix = toolKey(`${name}.`);
    const ids = new Set<string>();
    let isMoved = false;
    for (const key of keys) {
      const entry = entries.get(key);
      if (key.startsWith(prefix)) {
        ids.add(this.#updateVersion(`${name}.${key.slice(prefix.length)}`, entry));
      } else {
        this.#fleet.update(key, listIn(name, key, entry?.value));
        isMoved = true;
      }
    }
    this.#choose(ids);
    if (isMoved) this.#choose([...this.#contested]);
  }

  /** Updates the definition with this path, and returns the id of its tool. */
  #updateVersion(path: string, entry: DirectoryEntry | undefined): string {
    const id = idOfPath(path);
    const versions = once(this.#versions, id, () => []);
    const at = versions.findIndex((known) => known.path === path);
    if (entry === undefined) {
      if (at >= 0) versions.splice(at, 1);
      this.#refused.delete(path);
      return id;
    }
    const { revision, value: record } = entry;
    const known = versions[at];
    if (known === undefined) {
      if (record !== undefined) versions.push({ path, revision, record });
    } else {
      known.revision = revision;
      if (this.#tools.get(id)?.path !== path) known.record = record ?? known.record;
    }
    // From here on the definition is stored once: in its version, or in the registered tool.
    entry.value = undefined;
    return id;
  }

  clear(): void {
    this.#unsubscribe();
    this.#stopLooking?.();
    this.#versions.clear();
    this.#contested.clear();
    for (const id of [...this.#tools.keys()]) this.#remove(id);
  }

  /** Registers the newest definition of each of these tools that a worker serves. */
  #choose(ids: Iterable<string>): void {
    for (const id of ids) {
      const versions = this.#versions.get(id) ?? [];
      const served = versions.filter(({ path }) => this.#fleet.serves(path));
      const [newest] = (served.length > 0 ? served : versions)
        .toSorted((a, b) => b.revision - a.revision);
      if (versions.length > 1) this.#contested.add(id);
      else this.#contested.delete(id);
      if (newest === undefined) {
        this.#versions.delete(id);
        this.#remove(id);
      } else if (newest.path !== this.#tools.get(id)?.path) this.#put(id, newest);
    }
    // Keeps trying, because old and new workers may serve the tool together, and any may end.
    if (this.#contested.size === 0) return;
    this.#stopLooking ??= systemClock.setTimeout(() => {
      this.#stopLooking = undefined;
      this.#choose([...this.#contested]);
    }, PRESENCE_EVERY_MS);
  }

  #put(id: string, version: Version): void {
    const { path, record = {} } = version;
    if (this.#refused.has(path)) return;
    this.#isPutting = true;
    const { executable, ...fields } = record;
    const isRepeatable = record["idempotent"] === true;
    const definition: ToolDefinition = {
      // The registry checks each field.
      ...(fields as unknown as ToolDefinition),
      ...(executable === true && {
        // A tool whose calls are durable is always available: a call waits for a worker.
        isAvailable: record["execution"] === "task" || (() => this.#fleet.serves(path)),
        execute: (params: unknown, context: ToolContext) =>
          this.#execute(id, path, isRepeatable, params, context),
      }),
    };
    const { registry, link: { log } } = this.#settings;
    const before = this.#tools.get(id);
    try {
      const remote = hardenTool(makeTool(definition));
      const tool = before !== undefined && registry.getTool(id) === before.tool
        ? registry.updateTool(remote)
        : registry.registerTool(remote);
      this.#tools.set(id, { path, tool });
      const replaced = this.#versions.get(id)?.find((known) => known.path === before?.path);
      if (before !== undefined && replaced !== undefined) replaced.record = recordOf(before.tool);
      version.record = undefined;
    } catch (error) {
      this.#refused.add(path);
      log(error);
    } finally {
      this.#isPutting = false;
    }
  }

  /** Registers rejected definitions again: the tool with the same id may have been removed. */
  #retry(): void {
    if (this.#isPutting || this.#refused.size === 0) return;
    const refused = [...this.#refused].map(idOfPath);
    this.#refused.clear();
    this.#choose(refused);
  }

  /** Removes a tool, unless the registry has another tool with its id. */
  #remove(id: string): void {
    const tool = this.#tools.get(id)?.tool;
    this.#tools.delete(id);
    const { registry } = this.#settings;
    if (registry.getTool(id) === tool) registry.unregisterTool(id);
  }

  async *#execute(
    id: string,
    path: string,
    isRepeatable: boolean,
    params: unknown,
    context: ToolContext,
  ): AsyncGenerator<unknown, unknown, void> {
    const { tool } = this.#tools.get(id) ?? {};
    if (tool === undefined) return unavailable(id, "the tool was removed", "no");
    const { callId, principal, sessionId, messageId } = context;
    const { tenant } = Object(CallContext.callOf(context)?.options.context);
    // Rules and credentials of the worker need the tenant.
    const other = tenant === undefined ? undefined : { tenant };
    const who = { callId, principal, sessionId, messageId, context: context.context ?? other };
    let request: CallRequest = { ...who, arguments: params };
    let isForPerson = false;
    for (let round = 0;; round++) {
      const output = new Outputs();
      let end: ToolResult | undefined;
      // The worker's call is a step, so that a resumed call continues with the worker's ticket.
      const step = context.step(`plue.remote.${round}`, async () => {
        const call = { tool: id, path, isRepeatable, context, output: output.push, request };
        end = await this.#runOnWorker(call, isDurable(tool), isForPerson);
        if (!isSuspended(end)) throw ENDED;
        return { ticket: end.ticket, questions: end.questions };
      });
      step.then(output.close, output.close);
      yield* output.taken();
      let waiting: { readonly ticket: string; readonly questions: readonly Question[] };
      try {
        waiting = await step;
      } catch (error) {
        if (error !== ENDED) throw error;
        return end;
      }
      const answered = await answersOf(waiting.questions, params, context);
      isForPerson = waiting.questions.some(({ resumes }) => resumes);
      request = { ...who, ticket: waiting.ticket, run: nuid.next(), ...answered };
    }
  }

  /** @param isForPerson True if the worker waits for a person, which does not count as its time. */
  async #runOnWorker(
    call: RemoteCall,
    isDurable: boolean,
    isForPerson: boolean,
  ): Promise<ToolResult> {
    const { telemetry, link: { log } } = this.#settings;
    const request = { ...call.request, trace: currentTrace(telemetry, log) };
    let line: CallLine;
    try {
      line = await this.#lines.open();
    } catch (error) {
      log(error);
      return unavailable(call.tool, "there is no connection to NATS; nothing has run", "no");
    }
    const deadline = CallContext.callOf(call.context)?.deadline;
    const timeoutMs = deadline?.remainingMs;
    const resumeTime = isForPerson ? deadline?.suspend(PERSON_MS) : undefined;
    try {
      if (isDurable) return await line.durable.run({ ...call, request });
      return await line.plain.run({ ...call, request: { ...request, timeoutMs } });
    } finally {
      resumeTime?.();
      await this.#lines.done(line);
    }
  }
}

/** The time limit of a worker that waits for a person, longer than the worker's own: 20 minutes. */
const PERSON_MS = 1_200_000;

async function answersOf(
  questions: readonly Question[],
  args: unknown,
  context: ToolContext,
): Promise<Pick<CallRequest, "answers" | "mute">> {
  const ask = async (question: Question) =>
    [question.key, await context.ask(question.key, forwardedQuestion(question, args))] as const;
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

  readonly push: RemoteCall["output"] = (value, taken) => {
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

/** Returns the span of the running call, in the form of W3C's `traceparent`. */
function currentTrace(telemetry: CallTelemetry | undefined, log: HookLog): string | undefined {
  let trace: string | undefined;
  callHook(() => {
    const place = assertSync(telemetry?.place?.());
    const header = place && writeTraceParent(place);
    // The telemetry may return a value in another form, which is ignored.
    if (header && readTraceParent(header)) trace = header;
  }, log);
  return trace;
}
