/** Tickets that contain the encrypted call: JSON Web Encryption (`dir`, `A256GCM`) by `jose`. */

import { createTickets, type TicketOptions } from "../../execute/durable/mod.ts";
import { type CallTickets, failure } from "../../execute/mod.ts";
import { createSealer } from "../http/sealing.ts";

/** Options for {@linkcode sealedTickets}. */
export interface SealedTicketsOptions extends TicketOptions {
  /**
   * Secrets of 32 bytes each, as bytes or in Base64 (`openssl rand -base64 32`). The first secret
   * encrypts; all secrets decrypt. To change the secret, put a new one at the front, and remove the
   * old one when its tickets have expired.
   */
  readonly keys: readonly (string | Uint8Array)[];
}

/**
 * Creates tickets that need no store: each ticket contains its call, and only a holder of one of
 * the keys can read or create a ticket. Needs the package `jose`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { isSuspended, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { sealedTickets } from "@plue/tools/calls";
 *
 * const registry = new ToolRegistry({
 *   tools: [{
 *     name: "greet",
 *     description: "Greets.",
 *     execute: async (_, { ask }) => await ask("name", { message: "Who are you?" }),
 *   }],
 * });
 * const key = crypto.getRandomValues(new Uint8Array(32));
 * const dispatcher = () => new ToolDispatcher(registry, { tickets: sealedTickets({ keys: [key] }) });
 *
 * const waiting = await dispatcher().dispatch({ name: "greet" });
 * assert.ok(isSuspended(waiting));
 * const answers = { name: { action: "accept", content: "Ann" } } as const;
 * const result = await dispatcher().resume(waiting.ticket, answers);
 * assert.deepEqual(result.ok && result.content, answers.name);
 * ```
 *
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function sealedTickets({ keys, ...options }: SealedTicketsOptions): CallTickets {
  const sealer = createSealer("seal tickets", keys);
  const tickets = createTickets(sealer, options);
  return {
    ...tickets,
    suspend: (call) =>
      sealer.load().then(
        () => tickets.suspend(call),
        // A retry would fail in the same way.
        () => failure("input_unavailable", call.tool.id, 'run "npm install jose" first'),
      ),
  };
}
