/**
 * The calls over one connection.
 *
 * @module
 */

import type { NatsConnection } from "@nats-io/nats-core";
import type { HookLog } from "../../tool/mod.ts";
import { DurableCalls, type KeptSettings } from "./durable_calls.ts";
import type { Fleet } from "./fleet.ts";
import type { Seal } from "./seal.ts";
import { RemoteCalls } from "./remote_calls.ts";
import { followStatus } from "./server.ts";

/** What calls are sent with. */
export interface CallLineSettings {
  readonly connection: NatsConnection;
  readonly seal: Seal;
  readonly fleet: Fleet;
  /** What the subjects begin with that answers go to. */
  readonly inboxPrefix: string;
  /** How many durable calls may wait, and where. */
  readonly kept: KeptSettings;
  readonly log: HookLog;
  /** Is called when the connection is there again. */
  up?(): void;
  /** Looks for other workers, where those that are known do not take a call. */
  lookAgain?(): Promise<void>;
}

/** Sends the plain and the durable calls of one connection, while that is up. */
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

/** Where calls go: over one connection, or each over its own. */
export interface CallLines {
  /** @throws If there is no connection. */
  open(): CallLine | Promise<CallLine>;
  /** The call has ended. */
  done(line: CallLine): void | Promise<void>;
}
