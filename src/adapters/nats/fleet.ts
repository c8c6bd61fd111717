/** The workers of a registry: which of them are present, and which one receives a call. */

import type { Subscription } from "@nats-io/nats-core";
import { type Clock, isObject, once, systemClock } from "../../tool/mod.ts";
import type { ToolList } from "./directory.ts";
import type { Link } from "./link.ts";
import { MAX_SKEW_MS, presenceSubject } from "./protocol.ts";

export const PRESENCE_EVERY_MS = 2_000;
/** A worker without a presence message for this time is absent. */
const AWAY_AFTER_MS = 6_000;

export interface PresenceMessage {
  readonly worker: string;
  /** The time by the worker's clock, in milliseconds since 1970. */
  readonly time: number;
  /** The revision of the last entry that the worker has written to the directory. */
  readonly revision?: number;
  readonly isLeaving?: true;
}

interface Worker {
  readonly id: string;
  /** The time of the last presence message, by the caller's clock. */
  seenAt: number;
  calls: number;
  /** The number of parts of the worker's list that were read. */
  lists: number;
  readonly down: Set<string>;
}

export class Fleet {
  readonly #workers: Map<string, Worker> = new Map();
  /** The parts of the workers' lists, by their keys. */
  readonly #lists: Map<string, ToolList> = new Map();
  /** The workers that serve a tool, by the tool's path. */
  readonly #serving: Map<string, Worker[]> = new Map();
  readonly #subscription: Subscription | undefined;
  readonly #clock: Clock;

  /** @param link Receives presence messages. Without a link, all listed workers count as present. */
  constructor(link?: Link, clock: Clock = systemClock, expect?: (revision: number) => void) {
    this.#clock = clock;
    this.#subscription = link && listenForWorkers(
      link,
      (id) => this.#workers.has(id),
      (message) => this.#hear(message),
      expect,
    );
  }

  /** Replaces or removes the part of a worker's list with this key. */
  update(key: string, list: ToolList | undefined): void {
    const before = this.#lists.get(key);
    const known = before && this.#workers.get(before.worker);
    if (before !== undefined && known !== undefined) {
      for (const path of before.down) known.down.delete(path);
      for (const path of [...before.up, ...before.down]) {
        const left = (this.#serving.get(path) ?? []).filter((worker) => worker !== known);
        if (left.length > 0) this.#serving.set(path, left);
        else this.#serving.delete(path);
      }
      if (--known.lists === 0 && list === undefined) this.#workers.delete(known.id);
    }
    if (list === undefined) return void this.#lists.delete(key);
    this.#lists.set(key, list);
    const { worker: id } = list;
    // A new worker is present, because it has just written its list.
    const seenAt = this.#subscription ? this.#clock.now() : Infinity;
    const worker = once(this.#workers, id, () => ({
      ...{ id, seenAt, calls: 0, lists: 0, down: new Set<string>() },
    }));
    worker.lists++;
    for (const path of list.down) worker.down.add(path);
    for (const path of [...list.up, ...list.down]) {
      once(this.#serving, path, () => []).push(worker);
    }
  }

  serves(path: string): boolean {
    const now = this.#clock.now();
    return this.#serving.get(path)?.some((worker) => isServing(worker, path, now)) ?? false;
  }

  get size(): number {
    const now = this.#clock.now();
    return [...this.#workers.values()].filter((worker) => isServing(worker, "", now)).length;
  }

  /** Picks two present workers at random, and returns the one with fewer calls. */
  choose(path: string, tried: ReadonlySet<string>): string | undefined {
    const now = this.#clock.now();
    const there = (this.#serving.get(path) ?? [])
      .filter((worker) => !tried.has(worker.id) && isServing(worker, path, now));
    const pick = (): Worker | undefined => there[Math.floor(Math.random() * there.length)];
    const [one, other] = [pick(), pick()];
    return one !== undefined && other !== undefined && other.calls < one.calls ? other.id : one?.id;
  }

  count(id: string, calls: 1 | -1): void {
    const worker = this.#workers.get(id);
    if (worker !== undefined) worker.calls += calls;
  }

  /** Marks a worker that did not respond. It receives no calls until its next presence message. */
  lose(id: string): void {
    const worker = this.#workers.get(id);
    if (worker !== undefined) worker.seenAt = -Infinity;
  }

  stop(): void {
    this.#subscription?.unsubscribe();
  }

  get hasLost(): boolean {
    return [...this.#workers.values()].some(({ seenAt }) => seenAt === -Infinity);
  }

  /** Marks all workers as present, where no presence messages are received. */
  find(): void {
    for (const worker of this.#workers.values()) worker.seenAt = Infinity;
  }

  #hear({ worker: id, isLeaving }: PresenceMessage): void {
    const worker = this.#workers.get(id);
    if (worker !== undefined) worker.seenAt = isLeaving ? -Infinity : this.#clock.now();
  }
}

/**
 * Receives the presence messages of a registry's workers. A message is valid if it is signed, recent, and
 * newer than the last message of its worker, so that it cannot be replayed.
 */
export function listenForWorkers(
  { name, seal, log, listen }: Link,
  isKnown: (worker: string) => boolean,
  receive: (message: PresenceMessage) => void,
  expect: (revision: number) => void = () => {},
): Subscription {
  const last = new Map<string, number>();
  const late = new Set<string>();
  return listen(presenceSubject(name, "*"), ({ data, subject }) => {
    const id = subject.slice(presenceSubject(name, "").length);
    const presence = seal.unwrap(data, subject, "worker");
    if (!isObject(presence) || presence["worker"] !== id) return;
    const { time, revision } = presence;
    if (typeof revision === "number") expect(revision);
    if (!isKnown(id)) {
      last.delete(id);
      late.delete(id);
      return;
    }
    if (typeof time !== "number" || time <= (last.get(id) ?? -Infinity)) return;
    const ageMs = systemClock.timestamp() - time;
    if (Math.abs(ageMs) > MAX_SKEW_MS) {
      if (!late.has(id)) log(new Error(describeSkew(id, ageMs)));
      late.add(id);
      return;
    }
    last.set(id, time);
    late.delete(id);
    receive(presence as unknown as PresenceMessage);
  });
}

function describeSkew(worker: string, ageMs: number): string {
  const seconds = Math.round(Math.abs(ageMs) / 1_000);
  const why = ageMs > 0
    ? `came ${seconds} s late: this process was busy, somebody sent the message again, or`
    : `has a time ${seconds} s in the future:`;
  return `A message of the worker "${worker}" ${why} the clocks differ; synchronize the clocks`;
}

function isServing({ seenAt, down }: Worker, path: string, now: number): boolean {
  return now - seenAt < AWAY_AFTER_MS && !down.has(path);
}
