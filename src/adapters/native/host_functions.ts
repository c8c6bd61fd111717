/** Tools of the host. They are registered like all other tools, and the host runs their calls. */

import type { Registry } from "../../registry/mod.ts";
import {
  type Answer,
  attemptOr,
  clip,
  type ContentBlock,
  type ContentOptions,
  type FailureCode,
  isObject,
  isToolResult,
  parseToolId,
  type ToolContext,
  type ToolDefinition,
  ToolResult,
} from "../../tool/mod.ts";
import { REPLY, YIELD } from "./frames.ts";
import { codeOf, type Replies } from "./replies.ts";

/** A message of the host about an invocation: an event, or its end. */
export interface Yielded {
  /** One of {@linkcode YIELD}. */
  readonly kind: number;
  /** The status of a failure, or the completed amount of the progress. */
  readonly first: number;
  /** The total amount of the progress. */
  readonly second: number;
  readonly text: string;
}

/** The service that has the id of the host's call. The thread of that call also runs its tools. */
export const HOST_CALL = "plue:hostCall";
const NO_CALL = 0;

/** The failure of calls whose host has disconnected. The tool may have run. */
const GONE = ToolResult.error("unavailable", "The program that runs the tool has disconnected", {
  ran: "unknown",
});

/** The number of the host's function that answers questions. */
const ASK = 0;

interface Invocation {
  /** The context of the tool's call; `undefined` for a question. */
  readonly context: ToolContext | undefined;
  /** Parses the host's final message. */
  readonly read: (text: string) => unknown;
  /** The streamed output that the dispatcher has not read yet. */
  readonly output: unknown[];
  result: unknown;
  hasEnded: boolean;
  wake: () => void;
}

export class HostFunctions {
  readonly #replies: Replies;
  readonly #log: (error: unknown) => void;
  readonly #definitions: Map<number, ToolDefinition> = new Map();
  readonly #registered: Map<number, string> = new Map();
  readonly #invocations: Map<number, Invocation> = new Map();
  #registry: Registry | undefined;
  #lastInvocation = 0;

  /** @param log Receives the errors of tools that `follow` could not register. */
  constructor(replies: Replies, log: (error: unknown) => void) {
    this.#replies = replies;
    this.#log = log;
  }

  /** Adds a tool, registers it if there is a registry, and returns its id. A known tool stays. */
  add(number: number, definitionJson: string): string {
    const known = this.#registered.get(number);
    if (known !== undefined) return known;
    const definition = this.#read(number, definitionJson);
    this.#definitions.set(number, definition);
    if (this.#registry === undefined) return "";
    try {
      return this.#register(this.#registry, number, definition);
    } catch (error) {
      this.#definitions.delete(number);
      throw error;
    }
  }

  /** Removes a tool. Its invocations continue. */
  remove(number: number): void {
    const id = this.#registered.get(number);
    this.#registered.delete(number);
    this.#definitions.delete(number);
    if (id !== undefined) this.#registry?.unregisterTool(id);
  }

  /** Registers the tools in a registry, and removes them from the previous one. */
  follow(registry: Registry | undefined): void {
    if (registry === this.#registry) return;
    for (const id of this.#registered.values()) this.#registry?.unregisterTool(id);
    this.#registered.clear();
    this.#registry = registry;
    if (registry === undefined) return;
    for (const [number, definition] of this.#definitions) {
      try {
        this.#register(registry, number, definition);
      } catch (error) {
        this.#log(error);
      }
    }
  }

  /** Removes all tools. Their running invocations fail. */
  clear(): void {
    this.follow(undefined);
    this.#definitions.clear();
    for (const invocation of this.#invocations.values()) {
      end(invocation, GONE);
    }
    this.#invocations.clear();
  }

  get isEmpty(): boolean {
    return this.#registered.size === 0;
  }

  /** Receives a message about an invocation. Messages after its end are ignored. */
  receive(id: number, { kind, first, second, text }: Yielded): void {
    const invocation = this.#invocations.get(id);
    if (invocation === undefined) return;
    const { context } = invocation;
    switch (kind) {
      case YIELD.result:
        return this.#end(id, invocation, invocation.read(text));
      case YIELD.failure:
        return this.#end(id, invocation, ToolResult.error(codeOf(first) as FailureCode, text));
      case YIELD.metadata:
        return context?.metadata(valueOf(text));
      case YIELD.output:
        invocation.output.push(valueOf(text));
        return invocation.wake();
      case YIELD.progress:
        return context?.progress(first, second > 0 ? second : undefined, text || undefined);
    }
  }

  #end(id: number, invocation: Invocation, result: unknown): void {
    this.#invocations.delete(id);
    end(invocation, result);
  }

  #read(number: number, json: string): ToolDefinition {
    let definition: unknown;
    try {
      definition = JSON.parse(json);
    } catch {
      throw new TypeError("Cannot register a tool: its definition is not JSON");
    }
    if (!isObject(definition)) {
      throw new TypeError("Cannot register a tool: its definition must be a JSON object");
    }
    const { blocks = false, ...fields } = definition;
    if (typeof blocks !== "boolean") {
      throw new TypeError('Cannot register a tool: "/blocks" must be true or false');
    }
    const { name, namespace } = fields;
    // Without a namespace, the name may be a whole id, as in listings.
    const names = typeof name === "string" && namespace === undefined ? parseToolId(name) : {};
    const read = blocks ? (text: string) => readBlocks(parse(text)) : parse;
    return {
      ...(fields as unknown as ToolDefinition),
      ...names,
      execute: (params: unknown, context: ToolContext) =>
        this.#invoke(number, read, params, context),
    };
  }

  #register(registry: Registry, number: number, definition: ToolDefinition): string {
    const { id } = registry.registerTool(definition);
    this.#registered.set(number, id);
    return id;
  }

  /** Sends the host a question of one of its calls. Returns `undefined` if the host has no answer. */
  async ask(call: number, question: unknown, signal: AbortSignal): Promise<Answer | undefined> {
    // The dispatcher checks the answer.
    const params = [JSON.stringify(question)];
    const invocation = this.#run(ASK, call, undefined, valueOf, params, signal);
    const { value } = await invocation.next();
    return isToolResult(value) ? undefined : value as Answer;
  }

  #invoke(
    number: number,
    read: (text: string) => unknown,
    params: unknown,
    context: ToolContext,
  ): AsyncGenerator<unknown, unknown, void> {
    const { signal, services, sessionId, messageId } = context;
    const { [HOST_CALL]: call } = services;
    const strings = [JSON.stringify(params), sessionId, messageId];
    const caller = typeof call === "number" ? call : NO_CALL;
    return this.#run(number, caller, context, read, strings, signal);
  }

  async *#run(
    number: number,
    call: number,
    context: ToolContext | undefined,
    read: (text: string) => unknown,
    [params, sessionId, messageId]: readonly (string | undefined)[],
    signal: AbortSignal,
  ): AsyncGenerator<unknown, unknown, void> {
    const id = ++this.#lastInvocation;
    const invocation: Invocation = {
      context,
      read,
      output: [],
      result: undefined,
      hasEnded: false,
      wake: () => {},
    };
    this.#invocations.set(id, invocation);
    const cancel = (): void => void this.#replies.add(REPLY.cancel, id, reasonOf(signal));
    if (!this.#replies.invoke(id, number, call, [params, sessionId, messageId])) {
      this.#invocations.delete(id);
      return ToolResult.error("invalid_arguments", "The arguments are larger than 256 MiB", {
        ran: "no",
      });
    }
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
    try {
      for (;;) {
        while (invocation.output.length > 0) yield invocation.output.shift();
        if (invocation.hasEnded) return invocation.result;
        await new Promise<void>((resolve) => invocation.wake = resolve);
      }
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }
}

function end(invocation: Invocation, result: unknown): void {
  invocation.result = result;
  invocation.hasEnded = true;
  invocation.wake();
}

function parse(text: string): unknown {
  return attemptOr(INVALID_RESULT, () => JSON.parse(text));
}

const INVALID_RESULT = ToolResult.error("invalid_result", "The tool's result is not JSON");

/** Parses an event: text that is not JSON stays text. */
function valueOf(text: string): unknown {
  return attemptOr(text, () => JSON.parse(text));
}

function reasonOf({ reason }: AbortSignal): string {
  return reason instanceof Error ? reason.message : String(reason);
}

/** The string members that a block of each type must have. */
const TEXTS: { readonly [type: string]: readonly string[] } = {
  text: ["text"],
  image: ["data", "mimeType"],
  audio: ["data", "mimeType"],
  resource: [],
  resource_link: ["uri", "name"],
};

/** Returns the result of a tool whose results are blocks; a failure if the blocks are invalid. */
function readBlocks(value: unknown): ToolResult {
  if (isToolResult(value)) return value;
  const problem = findProblem(value);
  if (problem !== undefined) {
    return ToolResult.error("invalid_result", `The tool's blocks are invalid: ${problem}`);
  }
  const { content, ...options } = value as { readonly content: ContentBlock[] } & ContentOptions;
  return ToolResult.blocks(content, options);
}

function findProblem(value: unknown): string | undefined {
  const { content, structuredContent: _any, metadata = {}, ...rest } = isObject(value) ? value : {};
  if (!Array.isArray(content)) return '"/content" must be a list of blocks';
  if (!isObject(metadata)) return '"/metadata" must be an object';
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) {
    const place = JSON.stringify(clip(`/${unknown}`));
    return `${place} is not one of "content", "structuredContent" and "metadata"`;
  }
  for (const [index, block] of content.entries()) {
    const problem = findProblemOfBlock(block, `/content/${index}`);
    if (problem !== undefined) return problem;
  }
}

function findProblemOfBlock(block: unknown, path: string): string | undefined {
  const { type, resource, ...members } = isObject(block) ? block : {};
  if (typeof type !== "string" || !Object.hasOwn(TEXTS, type)) {
    return `"${path}/type" must be ${Object.keys(TEXTS).join(" or ")}`;
  }
  const missing = TEXTS[type]?.find((name) => typeof members[name] !== "string");
  if (missing !== undefined) return `"${path}/${missing}" must be a text`;
  if (type !== "resource") return undefined;
  const { uri, text, blob } = isObject(resource) ? resource : {};
  const isWhole = typeof uri === "string" && typeof (text ?? blob) === "string";
  return isWhole ? undefined : `"${path}/resource" must have "uri", and "text" or "blob"`;
}
