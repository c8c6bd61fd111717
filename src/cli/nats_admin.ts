/** `plue nats init`, `plue nats keys`, and the rows of `plue doctor` for NATS. */

import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { type NatsConnection, nkeys } from "@nats-io/transport-node";
import { Directory, listIn, type ToolList } from "../adapters/nats/directory.ts";
import {
  CALLS_BUCKET,
  DIRECTORY,
  idOfPath,
  RESULTS_BUCKET,
  RUNS_STREAM,
} from "../adapters/nats/protocol.ts";
import { checkServer, Link } from "../adapters/nats/link.ts";
import { Seal } from "../adapters/nats/seal.ts";
import {
  BUCKET,
  configOf,
  isMissing,
  openBucket,
  openRunStream,
  problemOf,
  RUN_STREAM,
  STORAGE,
  STORAGE_OPTIONS,
  storageProblemOf,
  type StorageSettings,
} from "../adapters/nats/streams.ts";
import { describeThrown, noop } from "../tool/mod.ts";
import { connectNats, type NatsSettings, readNats } from "./nats.ts";
import * as cli from "./terminal.ts";
import { broken, counted, type Diagnosis, missing, works } from "./terminal.ts";

const ACTION = "diagnose NATS";
/** The registry name that `plue serve` uses. */
const REGISTRY = "default";

interface NatsFlags {
  readonly nats?: string;
  readonly replicas?: number;
  readonly maxBytes?: number;
}

export async function nats(
  action: "init" | "keys",
  flags: NatsFlags,
  terminal: cli.Terminal,
): Promise<void> {
  if (action === "init") return await createAll(flags, terminal);
  const pair = nkeys.createUser();
  const seed = new TextDecoder().decode(pair.getSeed());
  const publicKey = pair.getPublicKey();
  terminal.printResult(
    { seed, publicKey },
    () => `seed        ${seed}\npublic key  ${publicKey}`,
  );
}

async function createAll(
  { nats, replicas, maxBytes }: NatsFlags,
  terminal: cli.Terminal,
): Promise<void> {
  const action = "create the streams";
  const settings = await readNats(action, terminal.io.env, nats);
  if (settings === undefined) throw cli.usageError(`Cannot ${action}: set --nats or PLUE_NATS`);
  const connection = await connectNats(action, settings);
  try {
    await checkServer(action, connection);
    const streams = await createStreams(connection, {
      ...(replicas && { replicas: STORAGE_OPTIONS.replicas(action, replicas, "--replicas") }),
      ...(maxBytes && { maxBytes: STORAGE_OPTIONS.maxBytes(action, maxBytes, "--max-bytes") }),
    });
    terminal.printResult(streams, () =>
      terminal.table(
        ["NAME", "STATE", "REPLICAS", "BYTES"],
        streams.map(({ name, state, ...more }) => [
          ...[name, state, String(more.replicas), String(more.maxBytes)],
        ]),
      ));
  } catch (cause) {
    throw cli.usageError(describeThrown(cause, 2_000), { cause });
  } finally {
    await connection.close();
  }
}

/** A stream or bucket after {@linkcode createStreams}. */
export interface CreatedStream extends StorageSettings {
  readonly name: string;
  readonly state: "created" | "changed" | "unchanged";
}

/**
 * Creates all streams and buckets that are missing, and changes the settings of existing streams and
 * buckets to the given settings.
 *
 * @throws {Error} If the server rejects a stream: with its name and the remedy.
 */
async function createStreams(
  connection: NatsConnection,
  limits: Partial<StorageSettings>,
): Promise<readonly CreatedStream[]> {
  const manager = await jetstreamManager(connection);
  const storage = { ...STORAGE, ...limits };
  const created: CreatedStream[] = [];
  for (const name of [DIRECTORY, CALLS_BUCKET, RESULTS_BUCKET, RUNS_STREAM]) {
    const stream = name === RUNS_STREAM ? name : `KV_${name}`;
    try {
      const before = await configOf(manager, stream);
      if (name === RUNS_STREAM) await openRunStream(manager, storage);
      else await openBucket({ connection, name, storage });
      const { config } = before === undefined
        ? await manager.streams.info(stream)
        : await manager.streams.update(stream, {
          ...before,
          ...name === RUNS_STREAM ? RUN_STREAM : BUCKET,
          ...limits.maxBytes !== undefined && { max_bytes: limits.maxBytes },
          ...limits.replicas !== undefined && { num_replicas: limits.replicas },
        });
      const { num_replicas: replicas, max_bytes: maxBytes } = config;
      const isSame = JSON.stringify(before) === JSON.stringify(config);
      const state = before === undefined ? "created" : isSame ? "unchanged" : "changed";
      created.push({ name, replicas, maxBytes, state });
    } catch (cause) {
      const problem = storageProblemOf(cause, connection, name, storage);
      throw new Error(`Cannot create "${name}": ${problem}`, { cause });
    }
  }
  return created;
}

/** Checks everything that a worker and a caller need. Runs no tool, and leaves nothing on the server. */
export async function diagnoseNats(
  env: cli.CommandIo["env"],
  flag: string | undefined,
  signal: AbortSignal,
): Promise<readonly Diagnosis[]> {
  const settings = await readNats(ACTION, env, flag);
  if (settings === undefined) return [];
  let connection: NatsConnection;
  try {
    connection = await connectNats(ACTION, settings);
  } catch (error) {
    return [broken("nats server", reason(error))];
  }
  const close = (): void => void connection.close();
  signal.addEventListener("abort", close, { once: true });
  try {
    return await diagnose(connection, settings);
  } catch (error) {
    signal.throwIfAborted();
    return [broken("nats server", problemOf(error, connection))];
  } finally {
    signal.removeEventListener("abort", close);
    await connection.close();
  }
}

async function diagnose(
  connection: NatsConnection,
  settings: NatsSettings,
): Promise<readonly Diagnosis[]> {
  const ms = await connection.rtt();
  const { version = "?" } = connection.info ?? {};
  const server = works("nats server", `${version} at ${settings.shown}, answers in ${ms} ms`);
  try {
    await checkServer(ACTION, connection);
  } catch (error) {
    const why = reason(error);
    return /^the server (?:is|has headers)/.test(why)
      ? [broken("nats server", why)]
      : [server, broken("nats jetstream", why)];
  }
  const manager = await jetstreamManager(connection);
  const { streams, storage, limits } = await manager.getAccountInfo();
  const most = limits.max_storage > 0 ? ` of ${megabytes(limits.max_storage)}` : "";
  return [
    server,
    works("nats jetstream", `${counted(streams, "stream")}, ${megabytes(storage)}${most}`),
    ...await diagnoseBuckets(manager),
    ...await diagnoseWorkers(connection, manager, settings),
  ];
}

/** Finds buckets that the client of NATS, or an older version, has created. */
async function diagnoseBuckets(manager: JetStreamManager): Promise<readonly Diagnosis[]> {
  const rows: Diagnosis[] = [];
  for (const name of [DIRECTORY, CALLS_BUCKET, RESULTS_BUCKET]) {
    // A missing permission to read the bucket is reported by the check of the workers.
    const config = await configOf(manager, `KV_${name}`).catch(noop);
    if (config?.allow_rollup_hdrs !== true) continue;
    const why = "accepts rollup headers, with which one message deletes all others";
    rows.push(broken("nats buckets", `"${name}" ${why}: run "plue nats init"`));
  }
  return rows;
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

async function diagnoseWorkers(
  connection: NatsConnection,
  manager: JetStreamManager,
  { secret, keys }: NatsSettings,
): Promise<readonly Diagnosis[]> {
  const [clock, part] = ["nats clock", "nats workers"];
  try {
    await manager.streams.info(`KV_${DIRECTORY}`);
  } catch (error) {
    if (!isMissing(error)) return [broken(part, problemOf(error, connection))];
    return [missing(clock, "not compared: there are no workers"), missing(part, "there are none")];
  }
  if (secret === undefined) {
    return [missing(part, "not checked: PLUE_NATS_SECRET is not set")];
  }
  // The doctor signs nothing, because its key may belong to a caller or to a worker.
  const seal = new Seal(ACTION, secret, "caller", keys && { ...keys, seed: undefined });
  const problems: string[] = [];
  const log = (error: unknown): void => void problems.push(describeThrown(error, 200));
  let directory: Directory;
  try {
    const link = new Link(connection, { seal, name: REGISTRY, log });
    directory = await Directory.open(ACTION, link, undefined, false);
  } catch (error) {
    const why = reason(error);
    return [broken(/clock/.test(why) ? clock : part, why)];
  }
  directory.stop();
  const lists = [...directory.entries]
    .flatMap(([key, { value }]) => listIn(REGISTRY, key, value) ?? []);
  const seconds = Math.abs(directory.skewMs / 1_000).toFixed(1);
  const side = directory.skewMs > 0 ? "ahead of" : "behind";
  const [problem] = problems;
  return [
    works(clock, `this machine's clock is ${seconds} s ${side} that of the server`),
    workersRow(part, lists),
    ...(problem === undefined ? [] : [broken(
      part,
      `${counted(problems.length, "problem")}, such as: ${problem}; do all processes have the ` +
        "same PLUE_NATS_SECRET, PLUE_NATS_CALLERS and PLUE_NATS_WORKERS?",
    )]),
  ];
}

function workersRow(part: string, lists: readonly ToolList[]): Diagnosis {
  if (lists.length === 0) return missing(part, "there are none");
  const workers = new Set(lists.map(({ worker }) => worker)).size;
  const tools = new Set(lists.flatMap(({ up, down }) => [...up, ...down]).map(idOfPath)).size;
  const has = `${counted(workers, "worker")} with ${counted(tools, "tool")}`;
  const tooLarge = [...new Set(lists.flatMap((list) => list.tooLarge))];
  return tooLarge.length === 0 ? works(part, has) : broken(
    part,
    `${has}; max_payload is too small for the definitions of others: ${tooLarge.join(", ")}`,
  );
}

/** Returns an error's reason, without the action that failed. */
function reason(error: unknown): string {
  return describeThrown(error, 1_000).replace(/^Cannot [^:]*: /, "");
}
