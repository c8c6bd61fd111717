/** Approvals that a framework obtains from a person. */

import * as durable from "../../execute/durable/mod.ts";
import type { CallStore } from "../../execute/durable/mod.ts";
import { frozenCopy } from "../../execute/json_value.ts";
import type * as calls from "../../execute/mod.ts";
import type { DecodedCall } from "../../formats/mod.ts";
import * as check from "../../tool/mod.ts";
import { fail, isFunction } from "../../tool/mod.ts";

const LIFETIME_MS = 86_400_000;

interface RuleLayer extends calls.Layer {
  explain(call: calls.Call): Promise<readonly { readonly verdict: "allow" | "deny" | "ask" }[]>;
}

type Approvable = Pick<calls.ToolDispatcher, "settings" | "withLayers">;

/** The state of an approval: requested from a person, or used by a call. */
interface Approval {
  /** A digest of the call: its caller, its tool and its arguments. */
  readonly id: string;
  readonly isUsed: boolean;
  readonly expiresAt: number;
}

/** The approvals that frameworks obtain from persons, for the option `approvals`. */
export class FrameworkApprovals {
  readonly #store: CallStore;

  constructor(store: CallStore) {
    check.checkPort("keep approvals", "store", store, ["get", "create", "update"]);
    this.#store = store;
  }

  /** Returns the approvals of the calls of one dispatcher and one caller. */
  forCalls(action: string, dispatcher: object, context: calls.DispatchContext): CallApprovals {
    if (!approvesByAsking(dispatcher)) {
      fail(action, 'the option approvals has no effect: the dispatcher must have approve: "ask"');
    }
    if (isFunction(context.onQuestion)) {
      fail(action, "the options approvals and context.onQuestion exclude each other");
    }
    return new CallApprovals(dispatcher, this.#store, context);
  }
}

/**
 * Stores the approvals that a framework requests from a person, for the option `approvals`. The
 * dispatcher decides which calls need approval, and must have `approve: "ask"`. An approval is valid
 * once, within a day, for its caller, its tool and exactly its arguments.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { memoryCallStore } from "@plue/tools/calls";
 * import { frameworkApprovals, toAiSdkTools } from "@plue/tools/frameworks";
 *
 * const toolset = new ToolRegistry({
 *   tools: [{ name: "rm", description: "Deletes.", requiresApproval: true, execute: () => "gone" }],
 * }).select();
 * const dispatcher = new ToolDispatcher(toolset, { approve: "ask" });
 * const approvals = frameworkApprovals(memoryCallStore());
 *
 * const { rm } = toAiSdkTools(toolset, { dispatcher, approvals });
 * const call = { toolCallId: "call_1", messages: [] };
 * assert.equal(await rm?.needsApproval?.({}, call), true);
 * // The SDK shows the request, and runs the tool after the approval.
 * assert.equal(await rm?.execute({}, call), "gone");
 * await assert.rejects(async () => await rm?.execute({}, call), /needs approval/);
 * ```
 *
 * @param store Processes that resume each other's runs must share the store.
 * @throws {TypeError} If the store lacks a function.
 */
export function frameworkApprovals(store: CallStore): FrameworkApprovals {
  return new FrameworkApprovals(store);
}

function approvesByAsking(dispatcher: object): dispatcher is Approvable {
  const { settings, withLayers }: Partial<Approvable> = dispatcher;
  return isFunction(withLayers) &&
    settings?.layers.some((layer) => "approver" in layer && layer.approver === "ask") === true;
}

export class CallApprovals {
  readonly #records: durable.StoredRecords<Approval, Pick<CallStore, "get" | "create" | "update">>;
  readonly #dispatcher: Approvable;
  readonly #context: calls.DispatchContext;

  constructor(dispatcher: Approvable, store: CallStore, context: calls.DispatchContext) {
    this.#records = new durable.StoredRecords(store, ({ expiresAt }) => expiresAt);
    this.#dispatcher = dispatcher;
    this.#context = context;
  }

  /**
   * Returns the id of the approval that a call needs, or `undefined` if the call needs none, and
   * records that the framework requests it. Nothing runs.
   *
   * @param record Records the request always, because the model's call is new; once for the same
   * arguments, because the framework may run the call again; or never, because the call is part of a
   * history, which a client may have written.
   */
  async request(
    call: DecodedCall,
    record: "always" | "once" | "never",
  ): Promise<string | undefined> {
    if (call.problem !== undefined) return undefined;
    const { settings } = this.#dispatcher;
    const preview = this.#dispatcher.withLayers(previewLayers(settings.layers));
    // No result is stored for the key of a call that does not run.
    const result = await preview.dispatch(call, { ...this.#context, idempotencyKey: undefined });
    const needed = result.ok ? result.content : undefined;
    if (typeof needed !== "string") return undefined;
    const id = await this.#idOf(call.callId, needed);
    if (record === "never") return id;
    const expiresAt = settings.clock.timestamp() + LIFETIME_MS;
    await this.#records.change(
      await this.#keyOf(call.callId),
      (stored) =>
        record === "once" && stored?.id === id ? undefined : { id, isUsed: false, expiresAt },
    );
    return id;
  }

  /** Answers the dispatcher's question for an approval that the framework requested, once. */
  async answer(
    question: check.Question,
    call: calls.CallInfo,
    action: check.Answer["action"],
  ): Promise<check.Answer | undefined> {
    if (question.kind !== "approval") return undefined;
    const id = await this.#idOf(call.callId, describeCall(call.tool.id, question.arguments));
    let isValid = false;
    await this.#records.change(await this.#keyOf(call.callId), (stored) => {
      isValid = stored !== undefined && stored.id === id && !stored.isUsed;
      return stored && isValid ? { ...stored, isUsed: true } : undefined;
    });
    return isValid ? { action } : undefined;
  }

  async #keyOf(callId: string): Promise<string> {
    const { principal, sessionId } = this.#context;
    const digest = await durable.digestOf(JSON.stringify([sessionId ?? null, callId]));
    return `approvals.${await durable.ownerDigest(principal)}.${digest}`;
  }

  async #idOf(callId: string, described: string): Promise<string> {
    const { principal, context } = this.#context;
    const owner = [principal ?? null, await durable.contextDigest(context) ?? null];
    return await durable.digestOf(JSON.stringify([owner, callId, described]));
  }
}

function describeCall(tool: string, args: unknown): string {
  return check.canonicalJson([tool, args ?? null]);
}

/** Layers that end each call before its tool runs, with its description if it needs approval. */
function previewLayers(layers: readonly calls.Layer[]): readonly calls.Layer[] {
  const rules = layers.filter((layer): layer is RuleLayer =>
    layer.name === "rules" && "explain" in layer
  );
  const decide = async (call: calls.Call, isRequired: boolean): Promise<check.ToolResult> => {
    const verdicts = (await Promise.all(rules.map((layer) => layer.explain(call)))).flat()
      .map(({ verdict }) => verdict);
    const needsApproval = !verdicts.includes("deny") && (isRequired || verdicts.includes("ask"));
    // The question of the dispatcher shows the same arguments.
    const args = frozenCopy(call.arguments) ?? frozenCopy(call.plainArguments);
    const content = needsApproval ? describeCall(call.tool.id, args) : null;
    return { ok: true, content, durationMs: 0 };
  };
  return [
    ...layers.filter(({ meets }) => meets === "context"),
    // These layers meet the requirements of tools. The first one ends the call.
    ...(["approval", "transaction", "credentials", undefined] as const).map((
      meets,
    ): calls.Layer => ({
      name: "approvals",
      stage: "run",
      ...check.defined({ meets }),
      for: () => (call) => decide(call, meets === "approval"),
    })),
  ];
}
