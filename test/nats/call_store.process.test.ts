import { describe } from "bun:test";
import {
  assertEquals,
  assertLess,
  assertNotEquals,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { headers } from "@nats-io/nats-core";
import { type CallStore, MAX_STORED_BYTES } from "@plue/tools/calls";
import { natsCallStore } from "@plue/tools/nats";
import { loseAnswers } from "../contract/lost_answers.ts";
import { SECRET, TestServer, useServer, withServer } from "./server.ts";
import { became, spyOn } from "./world.ts";
import { poll } from "../support/waiting.ts";

const small = new Uint8Array(10);
/** Fits into one message. */
const large = new Uint8Array(1_000_000);

describe("natsCallStore()", () => {
  const server = useServer();

  /** The number of messages in a bucket. */
  async function countOf(bucket: string): Promise<number> {
    const manager = await jetstreamManager(await server.connect());
    return (await manager.streams.info(`KV_${bucket}`)).state.messages;
  }

  withServer("rejects a value with another signature, key or expiry", async () => {
    const connection = await server.connect();
    const bucket = "signed";
    const open = (secret?: string) =>
      natsCallStore(connection, { bucket, ...(secret !== undefined && { secret }) });
    const [own, other, unsigned] = [
      await open(SECRET),
      await open("another-secret-of-theirs"),
      await open(),
    ];
    const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
    const text = async (key: string): Promise<string | undefined> => {
      const stored = await own.get(key);
      return stored && new TextDecoder().decode(stored.value);
    };
    const expiresAt = Date.now() + 60_000;
    await own.create("a.one", bytes("right"), { expiresAt });
    const large = "x".repeat(MAX_STORED_BYTES);
    await own.create("a.large", bytes(large));
    assertEquals([await text("a.one"), (await text("a.large")) === large], ["right", true]);
    await other.create("a.other", bytes("forged"));
    await unsigned.create("a.unsigned", bytes("forged"));
    const raw = await new Kvm(connection).open(bucket);
    const { value = new Uint8Array() } = await raw.get("a.one") ?? {};
    await raw.put("a.moved", value);
    const longer = Uint8Array.from(value);
    new DataView(longer.buffer).setFloat64(0, expiresAt + 1);
    await raw.put("a.longer", longer);
    for (const key of ["a.other", "a.unsigned", "a.moved", "a.longer"]) {
      const error = await assertRejects(() => own.get(key), Error);
      assertStringIncludes(error.message, "a value is damaged, or has a wrong signature");
    }
    const error = await assertRejects(() => unsigned.get("a.one"), Error);
    assertStringIncludes(error.message, "a value is signed; set the option secret");
  });

  withServer("rejects a value that exceeds a message of its server", async () => {
    await using own = await TestServer.start({ lines: "max_payload: 65536" });
    const store = await natsCallStore(await own.connect(), { secret: SECRET });
    const most = new Uint8Array(64_512).fill(7);
    const revision = await store.create("a.most", most) ?? 0;
    assertEquals((await store.get("a.most"))?.value, most);
    const larger = new Uint8Array(64_513);
    const why = "it has 64513 bytes, but max_payload of the server allows 64512";
    await assertRejects(() => store.create("a.larger", larger), RangeError, why);
    await assertRejects(() => store.update("a.most", larger, revision), RangeError, why);
    assertEquals((await store.get("a.most"))?.revision, revision);
  });

  withServer("stores no more than an owner's quota, over all processes", async () => {
    const clock = { now: Date.now(), timestamp: () => clock.now };
    const options = { bucket: "shares", maxOwnerBytes: 100_000, clock };
    const open = async () => await natsCallStore(await server.connect(), options);
    const [one, other] = [await open(), await open()];
    const full = (store: CallStore, key: string, value = small) =>
      assertRejects(
        () => store.create(key, value),
        RangeError,
        "the quota of its principal is exhausted",
      );
    const expiresAt = clock.now + 20_000;
    const first = await one.create("a.ann.1", new Uint8Array(50_000), { expiresAt }) ?? 0;
    // Each process may let a principal exceed its quota a little before it measures the usage.
    await other.create("b.ann.2", new Uint8Array(45_000));
    await full(other, "b.ann.3", new Uint8Array(10_000));
    await full(one, "b.ann.3", new Uint8Array(10_000));
    await full(one, "b.ann", new Uint8Array(10_000));
    for (const key of ["a.bob.1", "b.anna.1", "b.ann-e.1"]) {
      await one.create(key, large.slice(0, 90_000));
    }
    assertEquals(await one.create("a.ann.1", new Uint8Array(10_000)), undefined);
    // If a value is replaced, only the difference of the sizes counts.
    const second = await one.update("a.ann.1", new Uint8Array(50_010), first, { expiresAt });
    assertNotEquals(second, undefined);
    clock.now = expiresAt;
    assertNotEquals(await one.create("b.ann.3", new Uint8Array(10_000)), undefined);
    assertNotEquals(await other.create("b.ann.4", new Uint8Array(10_000)), undefined);
    await full(await open(), "b.ann.5", new Uint8Array(50_000));
  });

  withServer("counts an owner's concurrent writes, and its deletions", async () => {
    const options = { bucket: "at_once", maxOwnerBytes: 100_000 };
    const store = await natsCallStore(await server.connect(), options);
    const write = (key: string) => store.create(`a.ann.${key}`, new Uint8Array(30_000));
    const written = await Promise.allSettled(Array.from("12345678", write));
    const kept = written.flatMap((one) => one.status === "fulfilled" ? [one.value ?? 0] : []);
    assertEquals(kept.length, 3);
    const first = written.findIndex(({ status }) => status === "fulfilled");
    await assertRejects(() => write("9"), RangeError, "the quota of its principal");
    assertEquals(await store.delete(`a.ann.${first + 1}`, kept[0] ?? 0), true);
    assertNotEquals(await write("9"), undefined);
  });

  withServer("counts the sizes that the server has measured", async () => {
    const connection = await server.connect();
    const options = { bucket: "sizes", maxOwnerBytes: 100_000 };
    const store = await natsCallStore(connection, options);
    const forged = headers();
    forged.set("Plue-End", "Infinity");
    forged.set("Nats-Msg-Size", "1e12");
    connection.publish("$KV.sizes.a.ann.forged", "", { headers: forged });
    // The store measures only buckets that are larger than one quota.
    await store.create("a.bob.1", new Uint8Array(90_000));
    await store.create("a.bob.2", new Uint8Array(5_000));
    await store.create("a.eve.1", new Uint8Array(50_000));
    assertNotEquals(await store.create("a.ann.1", new Uint8Array(50_000)), undefined);
    await connection.flush();
    const { streams } = await jetstreamManager(connection);
    assertEquals((await streams.info("KV_sizes")).state.consumer_count, 0);
  });

  withServer("is not used by a machine with a wrong clock, even if it was set later", async () => {
    const connection = await server.connect();
    const opened = await natsCallStore(connection, { bucket: "clock" });
    const now = Date.now;
    Date.now = () => now() + 90_000_000;
    try {
      const why = "s ahead of that of the server";
      await assertRejects(() => natsCallStore(connection, { bucket: "clock" }), Error, why);
      await assertRejects(() => opened.create("key.ann.1", new Uint8Array(1)), Error, why);
    } finally {
      Date.now = now;
    }
  });

  withServer("determines the outcome of a write whose answer is lost", async () => {
    await loseAnswers(server.port, async (port) => {
      const connection = await server.connect({ servers: `nats://127.0.0.1:${port}` });
      return await natsCallStore(connection, { bucket: "lost" });
    });
  });

  withServer("deletes expired entries if a write exceeds the space", async () => {
    const clock = { now: Date.now(), timestamp: () => clock.now };
    const options = { bucket: "full", maxBytes: 5_000_000, maxOwnerBytes: 5_000_000, clock };
    const store = await natsCallStore(await server.connect(), options);
    // A principal whose quota was exhausted is measured again after 10 s.
    const expiresAt = clock.now + 10_000;
    for (const key of ["a", "b", "c", "d"]) await store.create(key, large, { expiresAt });
    clock.now += 10_000;
    for (const key of ["e", "f", "g"]) assertNotEquals(await store.create(key, large), undefined);
    assertEquals((await store.get("g"))?.value.byteLength, large.byteLength);
  });

  withServer("rejects immediately while its server is unreachable", async () => {
    await using own = await TestServer.start();
    const connection = await own.connect();
    const store = await natsCallStore(connection);
    // This listener is registered after the store's own, so the store is notified first.
    const lost = became(connection, "disconnect");
    await own.kill();
    await lost;
    // By default, the client would wait for five seconds.
    const soon = new Promise<never>((_, reject) =>
      setImmediate(() => reject(new Error("it waits")))
    );
    await assertRejects(
      () => Promise.race([store.get("a.b"), soon]),
      Error,
      "Cannot use the store of calls: the connection to NATS is lost; try it again later",
    );
  });

  withServer("deletes expired entries without reading each value", async () => {
    const clock = { now: Date.now(), timestamp: () => clock.now };
    const store = await natsCallStore(await server.connect(), { bucket: "swept", clock });
    let reads = 0;
    const spy = await spyOn(server, "$JS.API.STREAM.MSG.GET.KV_swept", {
      callback: () => void reads++,
    });
    const expiresAt = clock.now + 1_000;
    await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => store.create(`a.${index}`, small, { expiresAt })),
    );
    const stays = Array.from({ length: 24 }, (_, index) => `b.${index}`);
    clock.now += 1_000;
    await Promise.all(stays.map((key) => store.create(key, small)));
    // The bucket then contains the remaining keys and the time of the sweep.
    await poll(async () => await countOf("swept") <= stays.length + 1);
    for (const key of stays) assertNotEquals(await store.get(key), undefined);
    await spy.flush();
    assertLess(reads, 50);
  });
});
