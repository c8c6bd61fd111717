import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { bearerAuth, createToolHandler, type JournalReader } from "@plue/tools/hono";
import { BASE, sampleRegistry } from "./support.ts";

const RECORDS = [
  { sequence: 4, kind: "end" },
  { sequence: 3, callId: "c2", principal: "bob", tool: "pay", outcome: "denied" },
  { sequence: 2, callId: "c1", principal: "ann", outcome: "ok" },
];

function reader(records: Iterable<object>): JournalReader & { read: number } {
  return {
    read: 0,
    async *records() {
      for (const record of records) {
        this.read++;
        yield record;
      }
    },
  };
}

async function read(query = "", journal: JournalReader = reader(RECORDS), token = "operator") {
  const app = createToolHandler(sampleRegistry(), {
    journal,
    authorize: bearerAuth({
      tokens: new Map([
        ["operator-0123456789", { principal: "eve", explain: true }],
        ["caller-0123456789", { principal: "ann" }],
      ]),
    }),
  });
  const response = await app.request(`${BASE}/journal${query}`, {
    headers: { authorization: `Bearer ${token}-0123456789` },
  });
  return { status: response.status, body: await response.json() };
}

describe("GET /journal", () => {
  for (
    const [query, sequences, more] of [
      ["", [4, 3, 2], false],
      ["?principal=ann", [2], false],
      ["?outcome=denied&callId=c2", [3], false],
      ["?tool=pay", [3], false],
      ["?callId=c2&principal=ann", [], false],
      ["?limit=2", [4, 3], true],
      ["?limit=3", [4, 3, 2], false],
    ] as const
  ) {
    it(`returns the newest records for the query "${query}"`, async () => {
      const { status, body } = await read(query);
      const found = body.records.map((one: { readonly sequence: number }) => one.sequence);
      assertEquals([status, found, body.more], [200, sequences, more]);
    });
  }

  it("rejects callers without access to hidden tools", async () => {
    const { status, body } = await read("", undefined, "caller");
    assertEquals([status, body.code, body.records], [403, "denied", undefined]);
    assertEquals((await read("", undefined, "nobody")).status, 401);
    const open = createToolHandler(sampleRegistry(), { journal: reader(RECORDS) });
    assertEquals((await open.request(`${BASE}/journal`)).status, 403);
  });

  it("reads at most 20,000 records for one request", async () => {
    const journal = reader(Array.from({ length: 30_000 }, () => ({ principal: "ann" })));
    assertEquals((await read("?principal=bob", journal)).body, { records: [], more: true });
    assertEquals(journal.read, 20_001);
  });

  it("reads at most 20 MB of records, including records that the query does not select", async () => {
    const large = { principal: "ann", arguments: "x".repeat(2 ** 22) };
    for (const [principal, count] of [["ann", 5], ["bob", 0]] as const) {
      const journal = reader([large, large, large, large, large, large]);
      const { body } = await read(`?principal=${principal}`, journal);
      assertEquals([body.records.length, body.more, journal.read], [count, true, 6]);
    }
  });

  it("rejects unknown parameters and limits, and is absent without a journal", async () => {
    for (const query of ["?tools=x", "?limit=0", "?limit=1001", "?callId=", "?callId=a&callId=b"]) {
      assertEquals((await read(query)).status, 400, query);
    }
    assertEquals(
      (await createToolHandler(sampleRegistry()).request(`${BASE}/journal`)).status,
      404,
    );
    const wrong = () => createToolHandler(sampleRegistry(), { journal: {} as JournalReader });
    assertStringIncludes(assertThrows(wrong, TypeError).message, "the option journal");
  });
});
