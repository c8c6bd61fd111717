/**
 * Whether a connection is up.
 *
 * @module
 */

import { type NatsConnection, PermissionViolationError, type Status } from "@nats-io/nats-core";

/** What follows a connection. */
export interface StatusFollower {
  /** The connection was lost, or closed. */
  down(why: string): void;
  /** It is there again, perhaps to another server. */
  up(): void;
  /** The server has refused a message, because the user may not publish there. */
  forbidden?(subject: string): void;
}

/** Follows a connection until the function that it returns is called. */
export function followStatus(connection: NatsConnection, follower: StatusFollower): () => void {
  let isOver = false;
  // The client's iterator can be stopped, which its type does not say.
  const statuses = connection.status() as AsyncIterable<Status> & { readonly stop?: () => void };
  void (async () => {
    for await (const status of statuses) {
      if (isOver) return;
      const { type } = status;
      if (type === "error") {
        const { error } = status;
        if (!(error instanceof PermissionViolationError) || error.operation !== "publish") continue;
        follower.forbidden?.(error.subject);
      } else if (type === "disconnect") {
        follower.down("the connection to NATS is lost; try it again later");
      } else if (type === "reconnect") follower.up();
    }
  })();
  void connection.closed().then(() => {
    if (!isOver) follower.down("the connection to NATS is closed");
  });
  return () => {
    isOver = true;
    statuses.stop?.();
  };
}
