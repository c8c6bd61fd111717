/**
 * The tools of all workers in the registry of a caller, and their calls.
 *
 * @module
 */

import type { Registry } from "../../registry/mod.ts";
import { hardenTool } from "../../schema/mod.ts";
import {
  type Answers,
  forwardedQuestion,
  type HookLog,
  isSuspended,
  makeTool,
  type Question,
  systemClock,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolResult,
} from "../../tool/mod.ts";
import { CallContext, type CallTelemetry } from "../../execute/mod.ts";
import { DurableCalls } from "./durable_calls.ts";
import { type Directory, listIn } from "./directory.ts";
import { type Fleet, PRESENCE_EVERY_MS } from "./fleet.ts";
import { currentTrace, type Link } from "./link.ts";
import { idOfPath, recordOf, toolKey } from "./protocol.ts";
import { type CallRequest, RemoteCalls, type TakeOutput, unavailable } from "./remote_calls.ts";
import { isDurable } from "./runs.ts";

/** A definition of a tool that the registry does not have, as a worker has written it. */
interface Version {
  readonly path: string;
  readonly revision: number;
  readonly record: Record<string, unknown>;
}

/** A tool in the registry. */
interface Chosen {
  readonly tool: Tool;
  readonly path: string;
  /** The revision of its definition in the directory; -1 after the definition was removed. */
  revision: number;
}

/** Sends the plain and the durable calls of one connection. */
export class CallLine {
  readonly link: Link;
  readonly plain: RemoteCalls;
  readonly durable: DurableCalls;

  /**
   * @param inbox The prefix of the subjects of answers.
   * @param maxOwnerBytes The maximum size of the waiting tasks of a principal, in bytes.
   * @param lookAgain Reads the workers again if the known ones do not accept a call.
   */
  constructor(
    link: Link,
    fleet: Fleet,
    inbox: string,
    maxOwnerBytes?: number,
    lookAgain?: () => Promise<void>,
  ) {
    this.link = link;
    this.plain = new RemoteCalls(link, fleet, inbox, lookAgain);
    this.durable = new DurableCalls(link, inbox, maxOwnerBytes);
    link.follow({
      forbidden(subject) {
        link.log(new Error(`The user of the connection may not publish to "${subject}"`));
      },
    });
  }

  /** Ends the calls, and not the connection. */
  stop(): void {
    this.link.stop("its registry is closed");
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
  readonly #telemetry: CallTelemetry | undefined;
  readonly #log: HookLog;
  /** The tools in the registry, by id. */
  readonly #tools: Map<string, Chosen> = new Map();
  /** The paths of definitions that the registry has rejected. They are retried when a tool is removed. */
  readonly #refused: Set<string> = new Set();
  #isPutting = false;
  /** The other definitions of tools, by their ids. Most tools have none. */
  readonly #others: Map<string, readonly Version[]> = new Map();
  #stopLooking: (() => void) | undefined;

  constructor(
    name: string,
    registry: Registry,
    fleet: Fleet,
    lines: CallLines,
    telemetry: CallTelemetry | undefined,
    log: HookLog,
  ) {
    this.#name = name;
    this.#registry = registry;
    this.#fleet = fleet;
    this.#lines = lines;
    this.#telemetry = telemetry;
    this.#log = log;
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
      const chosen = this.#tools.get(id);
      this.#setOthers(id, this.#others.get(id)?.filter((known) => known.path !== path));
      if (entry?.value === undefined) this.#refused.delete(path);
      if (chosen?.path === path) chosen.revision = entry?.revision ?? -1;
      else if (entry?.value !== undefined) {
        const { revision, value: record } = entry;
        this.#setOthers(id, [...this.#others.get(id) ?? [], { path, revision, record }]);
      }
      // The tool in the registry has the definition.
      if (entry !== undefined) entry.value = undefined;
      ids.add(id);
    }
    this.#choose(ids);
    if (isMoved) this.#choose([...this.#others.keys()]);
  }

  #setOthers(id: string, versions: readonly Version[] = []): void {
    if (versions.length > 0) this.#others.set(id, versions);
    else this.#others.delete(id);
  }

  clear(): void {
    this.#stopLooking?.();
    this.#others.clear();
    for (const id of [...this.#tools.keys()]) this.#remove(id);
  }

  /** Registers the newest definition of each of these tools that a worker serves. */
  #choose(ids: Iterable<string>): void {
    for (const id of ids) {
      const rank = ({ path, revision }: Omit<Version, "record">): number =>
        revision + (this.#fleet.serves(path) ? Number.MAX_SAFE_INTEGER / 2 : 0);
      const chosen = this.#tools.get(id);
      let newest: Version | undefined;
      for (const other of this.#others.get(id) ?? []) {
        if (newest === undefined || rank(other) > rank(newest)) newest = other;
      }
      if (chosen !== undefined && chosen.revision >= 0) {
        if (newest !== undefined && rank(newest) > rank(chosen)) this.#put(id, newest);
      } else if (newest !== undefined) this.#put(id, newest);
      else this.#remove(id);
    }
    // While old and new workers run side by side, the new ones may end.
    if (this.#others.size === 0) return;
    this.#stopLooking ??= systemClock.setTimeout(() => {
      this.#stopLooking = undefined;
      this.#choose([...this.#others.keys()]);
    }, PRESENCE_EVERY_MS);
  }

  #put(id: string, version: Version): void {
    const { path, revision, record } = version;
    if (this.#refused.has(path)) return;
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
    try {
      const remote = hardenTool(makeTool(definition));
      const tool = before !== undefined && registry.getTool(id) === before.tool
        ? registry.updateTool(remote)
        : registry.registerTool(remote);
      this.#tools.set(id, { path, revision, tool });
      const others = this.#others.get(id)?.filter((other) => other !== version) ?? [];
      const replaced = before !== undefined && before.revision >= 0
        ? [{ path: before.path, revision: before.revision, record: recordOf(before.tool) }]
        : [];
      this.#setOthers(id, [...others, ...replaced]);
    } catch (error) {
      this.#refused.add(path);
      this.#log(error);
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
      return unavailable(id, "it is gone", "no");
    }
    const { callId, principal, sessionId, messageId } = context;
    const who = { callId, principal, sessionId, messageId, context: context.context };
    let request: CallRequest = { ...who, arguments: params };
    for (let round = 0;; round++) {
      const output = new Outputs();
      let end: ToolResult | undefined;
      // A step, so that a continued call resumes with the worker's ticket.
      const step = context.step(`plue.remote.${round}`, async () => {
        const call = { ...request, trace: currentTrace(this.#telemetry, this.#log) };
        let line: CallLine;
        try {
          line = await this.#lines.open();
        } catch (error) {
          this.#log(error);
          end = unavailable(id, "there is no connection to NATS; nothing has run", "no");
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
