/**
 * What `plue doctor` finds out about NATS: the server, what its user may do, clocks, and workers
 * with their tools. Nothing is called, and nothing is written that stays.
 *
 * @module
 */

import { AckPolicy, DeliverPolicy, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { Directory, listIn, type ToolList } from "../adapters/nats/directory.ts";
import { PRESENCE_EVERY_MS, type PresenceMessage } from "../adapters/nats/fleet.ts";
import { Seal } from "../adapters/nats/message.ts";
import { checkServer, problemOf } from "../adapters/nats/server.ts";
import { DIRECTORY, idOfPath, presenceSubject } from "../adapters/nats/subjects.ts";
import { describeThrown, isObject, systemClock } from "../tool/mod.ts";
import type { Diagnosis } from "./diagnosis.ts";
import { connectNats, type NatsSettings } from "./nats.ts";
import { CommandError, counted } from "./terminal.ts";

const ACTION = "look at NATS";
/** The name under which `plue serve` offers tools. */
const REGISTRY = "default";
/** Clocks may differ by this much, in milliseconds. */
const MAX_SKEW_MS = 5_000;
/** When the server forgets a consumer by itself, in nanoseconds. */
const FORGOTTEN_AFTER_NS = 5e9;
/** How many tools of a worker are named. */
const MAX_NAMED = 10;

type Row = Diagnosis;
const works = (part: string, detail: string): Row => ({ part, state: "works", detail });
const missing = (part: string, detail: string): Row => ({ part, state: "missing", detail });
const broken = (part: string, detail: string): Row => ({ part, state: "broken", detail });

/** Looks at everything that a worker and a caller need. */
export async function lookAtNats(
  settings: NatsSettings,
  signal: AbortSignal,
): Promise<readonly Diagnosis[]> {
  let connection: NatsConnection;
  try {
    connection = await connectNats(ACTION, settings);
  } catch (error) {
    return [broken("nats server", reason(error))];
  }
  const close = (): void => void connection.close();
  signal.addEventListener("abort", close, { once: true });
  try {
    return await lookThrough(connection, settings);
  } catch (error) {
    signal.throwIfAborted();
    return [broken("nats server", problemOf(error, connection))];
  } finally {
    signal.removeEventListener("abort", close);
    await connection.close();
  }
}

async function lookThrough(
  connection: NatsConnection,
  { shown, secret }: NatsSettings,
): Promise<readonly Diagnosis[]> {
  const ms = await connection.rtt();
  const { version = "?" } = connection.info ?? {};
  const server = works("nats server", `${version} at ${shown}, answers in ${ms} ms`);
  const rights = await lookAtRights(connection);
  try {
    await checkServer(ACTION, connection);
  } catch (error) {
    const why = reason(error);
    return /^the server (?:is|has headers)/.test(why)
      ? [broken("nats server", why)]
      : [server, broken("nats jetstream", why), ...rights];
  }
  const jetstream = await lookAtJetStream(connection);
  const clock = await lookAtClock(connection);
  return [
    ...[server, jetstream, ...rights, clock],
    ...clock.state === "missing"
      ? [missing("nats workers", "none has been there")]
      : await lookAtWorkers(connection, secret),
  ];
}

async function lookAtJetStream(connection: NatsConnection): Promise<Row> {
  const { streams, storage, limits } = await (await jetstreamManager(connection)).getAccountInfo();
  const most = limits.max_storage > 0 ? ` of ${megabytes(limits.max_storage)}` : "";
  return works("nats jetstream", `${counted(streams, "stream")}, ${megabytes(storage)}${most}`);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** What a user must be allowed, in order to call and in order to serve. Others drop what is published. */
async function lookAtRights(connection: NatsConnection): Promise<readonly Row[]> {
  const refused = refusals(connection);
  const call = [
    await mayPublish(connection, refused, "plue.v1.call.doctor.a.b.c.d"),
    await mayPublish(connection, refused, "plue.v1.ctl.doctor.a"),
    await maySubscribe(connection, presenceSubject("doctor", "*")),
  ];
  const serve = [
    await maySubscribe(connection, "plue.v1.call.doctor.>"),
    await maySubscribe(connection, "plue.v1.ctl.doctor.*"),
    await maySubscribe(connection, "plue.v1.stop.>"),
    await mayPublish(connection, refused, presenceSubject("doctor", "doctor")),
  ];
  return [["nats caller", call, "call tools"], ["nats worker", serve, "offer tools"]]
    .map(([part, problems, what]) => {
      const [problem] = (problems as readonly (string | undefined)[]).filter(Boolean);
      return problem === undefined
        ? works(String(part), `the user may ${what}`)
        : missing(String(part), `the user may not ${what}: ${problem}`);
    });
}

async function maySubscribe(
  connection: NatsConnection,
  subject: string,
): Promise<string | undefined> {
  let problem: string | undefined;
  const subscription = connection.subscribe(subject, {
    callback: (error) => {
      if (error !== null) problem = describeThrown(error, 200);
    },
  });
  // The server's refusal comes before its answer to this.
  await connection.flush();
  if (problem === undefined) subscription.unsubscribe();
  return problem;
}

async function mayPublish(
  connection: NatsConnection,
  refused: ReadonlySet<string>,
  subject: string,
): Promise<string | undefined> {
  connection.publish(subject);
  await connection.flush();
  // The status is told in a later turn.
  await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, 0));
  return [...refused].find((said) => said.includes(`"${subject}"`));
}

/** What the server refuses of what is published, as it comes. */
function refusals(connection: NatsConnection): ReadonlySet<string> {
  const refused = new Set<string>();
  void (async () => {
    for await (const status of connection.status()) {
      if (status.type === "error") refused.add(describeThrown(status.error, 200));
    }
  })();
  return refused;
}

/** Compares clocks: the server says when it has made a consumer, which it then forgets. */
async function lookAtClock(connection: NatsConnection): Promise<Row> {
  const part = "nats clock";
  const stream = `KV_${DIRECTORY}`;
  try {
    const { consumers } = await jetstreamManager(connection);
    const before = systemClock.timestamp();
    const { name, created } = await consumers.add(stream, {
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.New,
      mem_storage: true,
      inactive_threshold: FORGOTTEN_AFTER_NS,
    });
    const now = (before + systemClock.timestamp()) / 2;
    await consumers.delete(stream, name).catch(() => {});
    return clockRow(
      part,
      now - Date.parse(created),
      "that of the server",
      "this machine's clock is ",
    );
  } catch (error) {
    return (error as { readonly code?: unknown }).code === STREAM_NOT_FOUND
      ? missing(part, "not compared: no worker has been there")
      : broken(part, problemOf(error, connection));
  }
}

/** A code of the server's API. */
const STREAM_NOT_FOUND = 10059;

function clockRow(part: string, skewMs: number, other: string, begin: string): Row {
  const seconds = Math.abs(skewMs / 1_000).toFixed(1);
  const detail = `${begin}${seconds} s ${skewMs > 0 ? "ahead of" : "behind"} ${other}`;
  return Math.abs(skewMs) <= MAX_SKEW_MS
    ? works(part, detail)
    : broken(part, `${detail}; calls are refused above ${MAX_SKEW_MS / 1_000} s: set both`);
}

/** One row for each worker, with its tools. */
async function lookAtWorkers(
  connection: NatsConnection,
  secret: readonly string[] | undefined,
): Promise<readonly Row[]> {
  const part = "nats workers";
  if (secret === undefined) {
    return [missing(part, "not looked at: PLUE_NATS_SECRET is not set")];
  }
  const seal = new Seal(ACTION, secret);
  const problems: string[] = [];
  const log = (error: unknown): void => void problems.push(describeThrown(error, 200));
  let directory: Directory;
  try {
    const settings = { action: ACTION, connection, seal, registry: REGISTRY, log };
    directory = await Directory.open(settings, () => {});
  } catch (error) {
    return [broken(part, reason(error))];
  }
  const { entries } = directory;
  const workers = new Map<string, ToolList[]>();
  for (const [key, { value }] of entries) {
    const list = listIn(REGISTRY, key, value);
    if (list !== undefined) workers.set(list.worker, [...workers.get(list.worker) ?? [], list]);
  }
  const heard = await listen(connection, seal, [...workers.keys()]);
  directory.stop();
  const rows = [...workers].map(([id, lists]): Row => {
    const skewMs = heard.get(id);
    const tools = lists.flatMap(({ up, down }) => [...up, ...down]).map(idOfPath).sort();
    const has = `"${id}": ${counted(tools.length, "tool")}${named(tools)}`;
    if (skewMs === undefined) {
      return missing(part, `${has}; is not heard: it has ended, or is cut off`);
    }
    const tooLarge = lists.flatMap((list) => list.tooLarge);
    return tooLarge.length > 0
      ? broken(
        part,
        `${has}; max_payload is too small for the definitions of others${named(tooLarge)}`,
      )
      : clockRow(part, skewMs, "this machine's", `${has}; its clock is `);
  });
  const [problem] = problems;
  if (problem !== undefined) {
    rows.push(broken(
      part,
      `${counted(problems.length, "problem")}, such as: ${problem}; have all processes the same ` +
        "PLUE_NATS_SECRET?",
    ));
  }
  return rows.length > 0 ? rows : [missing(part, "none is there")];
}

/** The first of some tools, in brackets. */
function named(tools: readonly string[]): string {
  if (tools.length === 0) return "";
  return ` (${tools.slice(0, MAX_NAMED).join(", ")}${tools.length > MAX_NAMED ? ", …" : ""})`;
}

/** Waits until all workers have said that they are there, for two of their beats. Gives how far their clocks are ahead. */
async function listen(
  connection: NatsConnection,
  seal: Seal,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const heard = new Map<string, number>();
  if (ids.length === 0) return heard;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      stopWaiting();
      subscription.unsubscribe();
      resolve();
    };
    const stopWaiting = systemClock.setTimeout(end, 2 * PRESENCE_EVERY_MS + 1_000);
    const subscription = connection.subscribe(presenceSubject("*", "*"), {
      callback: (error, { data, subject }) => {
        const message = error === null ? seal.unwrap(data, subject) : undefined;
        if (!isObject(message)) return;
        const { worker, time, isLeaving } = message as unknown as PresenceMessage;
        if (isLeaving !== true) heard.set(worker, time - systemClock.timestamp());
        if (ids.every((id) => heard.has(id))) end();
      },
    });
    void connection.closed().then(() => resolve());
  });
  return heard;
}

/** Why something could not be done, without what it was. */
function reason(error: unknown): string {
  const said = error instanceof CommandError ? error.message : describeThrown(error, 1_000);
  return said.replace(/^Cannot [^:]*: /, "");
}
