/**
 * Whether a connection is up.
 *
 * @module
 */

import type { NatsConnection } from "@nats-io/nats-core";

/** What follows a connection. */
export interface StatusFollower {
  /** The connection was lost, or closed. */
  down(why: string): void;
  /** It is there again, perhaps to another server. */
  up(): void;
}

/** Follows a connection until the function that it returns is called. */
export function followStatus(connection: NatsConnection, follower: StatusFollower): () => void {
  let isOver = false;
  void (async () => {
    for await (const { type } of connection.status()) {
      if (isOver) return;
      if (type === "disconnect") {
        follower.down("the connection to NATS is lost; try it again later");
      } else if (type === "reconnect") follower.up();
    }
  })();
  void connection.closed().then(() => {
    if (!isOver) follower.down("the connection to NATS is closed");
  });
  return () => void (isOver = true);
}
