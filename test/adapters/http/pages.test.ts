import { type Tool, ToolRegistry } from "@plue/tools";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { Hono } from "hono/tiny";
import { queryPages } from "../../../src/adapters/http/listing.ts";
import { ListCache, pageResponse, pagesOf } from "../../../src/adapters/http/pages.ts";
import { ToolServer } from "../../../src/adapters/http/request.ts";
import { BASE } from "../hono/support.ts";
import { toolOf } from "../../support/tool_of.ts";

const ROOM = 10_000;

function texts(room: number = ROOM) {
  const cache = new ListCache<string>(room, (text) => text.length);
  const made: string[] = [];
  const of = (list: readonly Tool[], key: string, text: string = key): string =>
    cache.of(list, key, () => {
      made.push(key);
      return text;
    });
  return { cache, made, of };
}

describe("ListCache", () => {
  it("makes a value once for each list and key", () => {
    const { made, of } = texts();
    const [one, other]: readonly [Tool[], Tool[]] = [[], []];
    assertEquals([of(one, "a"), of(one, "b"), of(other, "a"), of(one, "a")], ["a", "b", "a", "a"]);
    assertEquals(made, ["a", "b", "a"]);
  });

  it("bounds the total size of the entries over all lists", () => {
    const { cache, of } = texts();
    for (let n = 0; n < 200; n++) {
      of(n % 2 === 0 ? [] : [], `key-${n}`, "x".repeat(n * 7));
      assert(cache.weight <= ROOM);
    }
    assert(cache.weight > ROOM / 2);
  });

  it("counts keys and empty values", () => {
    const { cache, of } = texts();
    for (let n = 0; n < 1_000; n++) of([], `${n}`, "");
    assert(cache.weight <= ROOM);
    const { cache: keys, of: ofKeys } = texts();
    ofKeys([], "k".repeat(5_000), "");
    assert(keys.weight > 5_000);
  });

  it("caches neither values beyond its bound nor failures", () => {
    const { cache, made, of } = texts();
    const list: Tool[] = [];
    for (let n = 0; n < 2; n++) of(list, "large", "x".repeat(ROOM));
    assertEquals([made.length, cache.weight], [2, 0]);
    assertThrows(() =>
      cache.of(list, "broken", () => {
        throw new RangeError("broken");
      }), RangeError);
    assertEquals(cache.weight, 0);
  });
});

describe("GET /tools", () => {
  it("bounds the cache of client queries", async () => {
    const registry = new ToolRegistry({
      tools: Array.from(
        { length: 8 },
        (_, n) =>
          toolOf(`tool-${n}`, undefined, {
            description: "x".repeat(100_000),
            tags: [`t${n}`],
            risk: "safe",
          }),
      ),
    });
    const server = new ToolServer(registry, {});
    const pages = pagesOf(server);
    const pageOf = queryPages();
    const app = new Hono();
    app.get(
      "/tools",
      (c) =>
        server.answer(
          c,
          "/tools",
          async (request) => pageResponse(request.raw, await pageOf(request)),
        ),
    );
    let most = 0;
    for (let subset = 1; subset < 256; subset += 4) {
      const tags = Array.from({ length: 8 }, (_, n) => `t${n}`).filter((_, n) => subset & 1 << n);
      const response = await app.request(`${BASE}/tools?tagsAny=${tags}`);
      assertEquals((await response.json()).tools.length, tags.length);
      most = Math.max(most, pages.weight);
    }
    assert(most > 4_000_000 && most <= 8 * 1_024 * 1_024, `${most}`);
  });
});
