import { afterAll, beforeAll, describe } from "bun:test";
import { assertEquals, assertLess, assertNotEquals } from "@std/assert";
import { jetstreamManager } from "@nats-io/jetstream";
import { natsCallStore } from "@plue/tools/nats";
import { missing, TestServer, withServer } from "./server.ts";

const small = new Uint8Array(10);
/** Is kept in parts. */
const large = new Uint8Array(1_000_000);

describe("natsCallStore()", () => {
  let server: TestServer;
  beforeAll(async () => {
    if (missing === undefined) server = await TestServer.start();
  });
  afterAll(async () => await server?.stop());

  /** How many messages a bucket has. */
  async function countOf(bucket: string): Promise<number> {
    const manager = await jetstreamManager(await server.connect());
    return (await manager.streams.info(`KV_${bucket}`)).state.messages;
  }

  withServer("keeps nothing of a large value that was not taken", async () => {
    const store = await natsCallStore(await server.connect(), { bucket: "parts" });
    const revision = await store.create("a.b", large) ?? 0;
    const before = await countOf("parts");
    assertEquals(await store.create("a.b", large), undefined);
    assertEquals(await store.update("a.b", large, revision + 1), undefined);
    const updates = await Promise.all([1, 2, 3, 4].map(() => store.update("a.b", large, revision)));
    assertEquals(updates.filter((update) => update !== undefined).length, 1);
    const creations = await Promise.all([1, 2, 3, 4].map(() => store.create("a.c", large)));
    assertEquals(creations.filter((creation) => creation !== undefined).length, 1);
    assertEquals(await countOf("parts"), 2 * before);
    assertEquals((await store.get("a.b"))?.value.byteLength, large.byteLength);
  });

  withServer("makes room when a write finds none, from what has expired", async () => {
    const clock = { now: Date.now(), timestamp: () => clock.now };
    const options = { bucket: "full", maxBytes: 5_000_000, clock };
    const store = await natsCallStore(await server.connect(), options);
    const expiresAt = clock.now + 1_000;
    for (const key of ["a", "b", "c", "d"]) await store.create(key, large, { expiresAt });
    clock.now += 1_000;
    for (const key of ["e", "f", "g"]) {
      assertNotEquals(await store.create(key, large), undefined);
    }
    assertEquals((await store.get("g"))?.value.byteLength, large.byteLength);
  });

  withServer("deletes what has expired without reading each value", async () => {
    const clock = { now: Date.now(), timestamp: () => clock.now };
    const store = await natsCallStore(await server.connect(), { bucket: "swept", clock });
    const spy = await server.connect();
    let reads = 0;
    spy.subscribe("$JS.API.STREAM.MSG.GET.KV_swept", { callback: () => void reads++ });
    await spy.flush();
    const expiresAt = clock.now + 1_000;
    await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => store.create(`a.${index}`, small, { expiresAt })),
    );
    const stays = Array.from({ length: 24 }, (_, index) => `b.${index}`);
    clock.now += 1_000;
    await Promise.all(stays.map((key) => store.create(key, small)));
    // Those that stay, and the time of this.
    while (await countOf("swept") > stays.length + 1) await spy.flush();
    for (const key of stays) assertNotEquals(await store.get(key), undefined);
    await spy.flush();
    assertLess(reads, 50);
  });
});
