/** Tickets, which resume suspended calls in any process. */

import {
  type Answers,
  anyValue,
  canonicalJson,
  clip,
  describe,
  isObject,
  numberFrom,
  readFields,
  type ToolFailure,
  ToolResult,
} from "../../tool/mod.ts";
import { failure, unknownTool } from "../failures.ts";
import { utf8Length } from "../json_value.ts";
import type {
  CallMemory,
  CallTickets,
  Resumption,
  ReturnedTicket,
  ToolCall,
  WaitingCall,
} from "../request.ts";
import { MAX_MEMORY_BYTES, readAnswer } from "../question_session.ts";
import { type CallStore, checkStore } from "./call_store.ts";
import { SettledStore } from "./settled_store.ts";
import {
  contextDigest,
  definitionDigest,
  encodeJson,
  newId,
  ownerDigest,
  parseJson,
} from "./records.ts";

/** The reason why a ticket cannot be opened. */
type UnopenedTicket = "damaged" | "unknown_key" | "gone";

/** Stores the content of tickets, or encrypts and authenticates it. */
export interface TicketSealer {
  /** @param id A new id: 22 letters, digits, `_` and `-`. */
  seal(content: Uint8Array, id: string, owner: string, expiresAt: number): Promise<string>;
  /** Returns the bytes that `seal` received. An invalid ticket never causes an error. */
  open(ticket: string): Promise<Uint8Array | UnopenedTicket>;
  /**
   * Replaces the stored content with `used`, unless another run has used the ticket. Of several
   * concurrent calls, one succeeds and receives a function that restores the content; the others
   * receive `undefined`. Without this function, the option `store` records used tickets.
   */
  use?(ticket: string, used: Uint8Array, run: unknown): Promise<(() => Promise<void>) | undefined>;
}

/** Options of all tickets. */
export interface TicketOptions {
  /** The lifetime of a ticket, in milliseconds. @default {86_400_000} */
  readonly ttlMs?: number;
  /**
   * Records used tickets, so that each ticket resumes its call once. Without this option, a ticket
   * can be used repeatedly during its lifetime.
   */
  readonly store?: CallStore;
}

interface TicketContent extends Pick<Resumption, "repaired" | "memory"> {
  readonly version: 1;
  readonly id: string;
  readonly expiresAt: number;
  readonly principal: string | null;
  readonly call: Pick<Required<ToolCall>, "name" | "arguments" | "callId">;
  readonly ids: Resumption["context"];
  readonly definition: string;
  /** The digest of the host's context; `undefined` without a context. */
  readonly context?: string | undefined;
  readonly questions: readonly string[];
  /**
   * The run that has used the ticket, and can use the ticket again. `null` if no run can use it
   * again: the arguments and answers are then deleted.
   */
  readonly usedBy?: unknown;
}

/** The fields of a resumed call. Other fields are rejected, because they may be misspelt. */
const FIELDS: readonly string[] = ["ticket", "answers", "name", "arguments", "callId"];
const MAX_CONTENT = 524_288;
/** The maximum length of a ticket: sealing makes the content a third longer. */
const MAX_TICKET = 750_000;
/** The maximum lifetime of a ticket: a hundred years. */
const MAX_TTL_MS = 3_153_600_000_000;

const CHECKS = { ttlMs: numberFrom(1, MAX_TTL_MS), store: anyValue };

const UNOPENED: Readonly<Record<UnopenedTicket, string>> = {
  damaged: "its ticket is damaged, or was not made here",
  unknown_key: "its ticket was sealed with an unknown key",
  gone: "its ticket is unknown here, or was deleted",
};

const USED = "its ticket was used before";

export function createTickets(sealer: TicketSealer, options: TicketOptions = {}): CallTickets {
  const action = "make tickets";
  const { ttlMs = 86_400_000 } = readFields(action, options, CHECKS);
  if (options.store !== undefined) checkStore(action, options.store);
  const store = options.store && new SettledStore(options.store);
  return {
    async suspend(call) {
      const id = newId();
      const expiresAt = call.now + ttlMs;
      const content = encodeJson(await contentOf(call, id, expiresAt));
      if (content.byteLength > MAX_CONTENT) {
        const size = `${content.byteLength} bytes, and ${MAX_CONTENT} are allowed`;
        const why = `its arguments, answers and steps have ${size}`;
        return failure("input_unavailable", call.tool.id, why);
      }
      const { tool, questions, context: { principal } } = call;
      const ticket = await sealer.seal(content, id, await ownerDigest(principal), expiresAt);
      const count = questions.length === 1 ? "an answer" : `${questions.length} answers`;
      const why = `it waits for ${count}: ${questions.map(({ message }) => message).join("; ")}`;
      return { ...failure("input_required", tool.id, why), questions, ticket };
    },
    async resume(returned) {
      const { request: { ticket }, principal, findTool, now, run } = returned;
      const stray = Object.keys(returned.request).find((field) => !FIELDS.includes(field));
      if (stray !== undefined) {
        const fields = `${describe(stray)} is not one of its fields: ${FIELDS.join(", ")}`;
        return ToolResult.error("invalid_arguments", `Cannot continue the call: ${fields}`);
      }
      if (typeof ticket !== "string" || ticket.length > MAX_TICKET) {
        return refused(UNOPENED.damaged);
      }
      const opened = await sealer.open(ticket);
      if (typeof opened === "string") return refused(UNOPENED[opened]);
      const content = parseJson(opened) as TicketContent;
      // Checked first, because the other errors would describe the call to another caller.
      if (content.principal !== (principal ?? null)) {
        return refused("its ticket was given to another caller");
      }
      if ((await contextDigest(returned.context)) !== content.context) {
        return refused("its host passed another context for the call");
      }
      if (isUsed(content, run)) return refused(USED);
      if (content.version !== 1) return refused(UNOPENED.damaged);
      if (content.expiresAt <= now) return refused("its ticket has expired; call again");
      const { call, ids: context, repaired } = content;
      const tool = findTool(call.name);
      if (tool === undefined) return unknownTool(call.name);
      if (await definitionDigest(tool) !== content.definition) {
        return refused("its tool has changed since it asked; call again");
      }
      const other = otherCall(returned, content);
      if (other !== undefined) return refused(other);
      const memory = readAnswers(returned.request.answers, content);
      if (typeof memory === "string") {
        return ToolResult.error("invalid_arguments", `Cannot continue the call: ${memory}`);
      }
      const rest = { call: { ...call, arguments: null }, repaired: undefined, memory: {} };
      const used = { ...content, ...run === undefined && rest, usedBy: run ?? null };
      const release = sealer.use === undefined
        ? await claim(store, content, run)
        : await sealer.use(ticket, encodeJson(used), run);
      if (release === undefined) return refused(USED);
      return { call, context, repaired, memory, release };
    },
  };
}

/**
 * Creates short tickets whose content is in a store, unencrypted. They need no key. Each suspended
 * call uses space in the store; after the call resumes, a mark stays until the ticket expires.
 *
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function storedTickets(
  calls: CallStore,
  options: Omit<TicketOptions, "store"> = {},
): CallTickets {
  checkStore("make tickets", calls);
  const store = new SettledStore(calls);
  const place = (ticket: string): string => `ticket.${ticket}`;
  return createTickets({
    async seal(content, id, owner, expiresAt) {
      const ticket = `${owner}.${id}`;
      await store.create(place(ticket), content, { expiresAt });
      return ticket;
    },
    async open(ticket) {
      if (!STORED.test(ticket)) return "damaged";
      return (await store.get(place(ticket)))?.value ?? "gone";
    },
    async use(ticket, used, run) {
      const stored = await store.get(place(ticket));
      if (stored === undefined || isUsed(parseJson(stored.value) as TicketContent, run)) {
        return undefined;
      }
      const { value, revision, ...life } = stored;
      const claimed = await store.update(place(ticket), used, revision, life);
      return claimed === undefined
        ? undefined
        : async () => void await store.update(place(ticket), value, claimed, life);
    },
  }, { ...options, store: calls });
}

function isUsed({ usedBy }: TicketContent, run: unknown): boolean {
  return usedBy !== undefined && (run === undefined || usedBy !== run);
}

const STORED = /^[\w-]{43}\.[\w-]{22}$/;

async function contentOf(call: WaitingCall, id: string, expiresAt: number): Promise<TicketContent> {
  const { tool, callId, memory, repaired, context } = call;
  const { principal = null, sessionId, messageId, idempotencyKey } = context;
  return {
    ...{ version: 1, id, expiresAt, principal, repaired, memory },
    call: { name: tool.id, arguments: call.arguments, callId },
    ids: { sessionId, messageId, idempotencyKey },
    definition: await definitionDigest(tool),
    context: await contextDigest(context.context),
    questions: call.questions.map(({ key }) => key),
  };
}

/** Returns the difference between a repeated call and its ticket, or `undefined` if they match. */
function otherCall(
  { request, findTool }: ReturnedTicket,
  { call }: TicketContent,
): string | undefined {
  const { name, arguments: args, callId } = request;
  if (name !== undefined && name !== call.name && findTool(name)?.id !== call.name) {
    return "its ticket is for another tool";
  }
  if (callId !== undefined && callId !== call.callId) return "its ticket is for another call";
  if (args === undefined) return undefined;
  try {
    const repeated = typeof args === "string" ? JSON.parse(args.trim() || "{}") : args;
    if (canonicalJson(repeated ?? {}) === canonicalJson(call.arguments)) return undefined;
  } catch {
    // Invalid JSON is rejected below.
  }
  return "its ticket was issued for other arguments";
}

/** Returns the problem with answers to the questions with these keys, or `undefined`. */
export function wrongAnswers(
  answers: Answers | undefined,
  keys: readonly string[],
): string | undefined {
  if (answers !== undefined && !isObject(answers)) return '"answers" must be an object';
  for (const [key, value] of Object.entries(answers ?? {})) {
    const shown = JSON.stringify(clip(key));
    // An answer without a question could approve a text that was shown to no person.
    if (!keys.includes(key)) return `there is no question ${shown}`;
    if (readAnswer(value) === undefined) {
      return `the answer to ${shown} must be an object of at most 64 kB with the "action" accept, decline or cancel`;
    }
  }
  return undefined;
}

/** Returns the ticket's data with the new answers, or the problem with the answers. */
function readAnswers(
  answers: Answers | undefined,
  { questions, memory }: TicketContent,
): CallMemory | string {
  const wrong = wrongAnswers(answers, questions);
  if (wrong !== undefined) return wrong;
  const all = new Map(Object.entries(memory));
  for (const [key, value] of Object.entries(answers ?? {})) {
    const answer = readAnswer(value);
    if (answer !== undefined) all.set(key, { ...memory[key], answer });
  }
  const answered = Object.fromEntries(all);
  return tooLarge(answered) ?? answered;
}

export function tooLarge(memory: object): string | undefined {
  return utf8Length(JSON.stringify(memory)) > MAX_MEMORY_BYTES
    ? `its answers and steps have more than ${MAX_MEMORY_BYTES} bytes of JSON together`
    : undefined;
}

/** Marks a ticket as used. Returns the function that undoes it; `undefined` for a used ticket. */
async function claim(
  store: CallStore | undefined,
  { id, principal, expiresAt }: TicketContent,
  run: unknown,
): Promise<(() => Promise<void>) | undefined> {
  if (store === undefined) return () => Promise.resolve();
  const key = `used.${await ownerDigest(principal ?? undefined)}.${id}`;
  const revision = await store.create(key, encodeJson(run ?? null), { expiresAt });
  if (revision !== undefined) return async () => void await store.delete(key, revision);
  const mark = run === undefined ? undefined : await store.get(key);
  if (mark === undefined || parseJson(mark.value) !== run) return undefined;
  // With a new revision, an earlier attempt that ends late cannot make the ticket valid again.
  const renewed = await store.update(key, mark.value, mark.revision, { expiresAt });
  return renewed === undefined ? undefined : () => Promise.resolve();
}

function refused(why: string): ToolFailure {
  return ToolResult.error("ticket_refused", `Cannot continue the call: ${why}`);
}
