import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { beforeAll, describe, it } from "bun:test";
import { journal, verifyJournal } from "@plue/tools/journal";
import { createHash } from "node:crypto";
import { bytesOf, memorySink, recorded } from "./support.ts";

const KEY = "a key of the operator";
let lines: string[];

/** A journal of ten calls. */
async function tenCalls(key?: string): Promise<string[]> {
  const { call, journal: kept, sink } = recorded([{ name: "pay" }], { key, arguments: "full" });
  for (let euros = 1; euros <= 10; euros++) await call("pay", { euros, name: "Zoë" });
  await kept.close();
  return sink.lines;
}

/** An attacker's changes to the lines, each with the number of the first record that is rejected. */
const ATTACKS: readonly (readonly [
  what: string,
  change: (lines: string[]) => string[],
  sequence: number,
])[] = [
  ["changes an amount", (all) => edit(all, 5, (line) => line.replace('"euros":5', '"euros":9')), 6],
  ["changes one byte of a hash", (all) => edit(all, 3, (line) => line.replace(/.{3}$/, 'x"}')), 4],
  ["changes the last record", (all) => edit(all, 11, (line) => line.replace("end", "END")), 12],
  [
    "writes another name before a hash",
    (all) => edit(all, 5, (line) => line.replace(',"hash":"', ',"tool":"')),
    6,
  ],
  [
    "changes the last characters of a line",
    (all) => edit(all, 5, (line) => line.replace(/..$/, '" ')),
    6,
  ],
  ["removes a record", (all) => all.toSpliced(4, 1), 5],
  ["repeats a record", (all) => all.toSpliced(4, 0, all[4] ?? ""), 6],
  ["swaps two records", (all) => all.toSpliced(4, 2, all[5] ?? "", all[4] ?? ""), 5],
  ["adds an empty line", (all) => all.toSpliced(4, 0, ""), 5],
  ["adds text that is not JSON", (all) => all.toSpliced(4, 0, "x".repeat(300)), 5],
  [
    "changes a record, and computes its hash again",
    (all) => edit(all, 5, (line) => rehashed(line.replace('"euros":5', '"euros":9'))),
    7,
  ],
];

function edit(all: readonly string[], at: number, change: (line: string) => string): string[] {
  return all.map((line, index) => index === at ? change(line) : line);
}

/** A line with the hash that it has without a key. */
function rehashed(line: string): string {
  const text = line.slice(0, line.lastIndexOf(',"hash":'));
  return `${text},"hash":"${createHash("sha256").update(text).digest("base64url")}"}`;
}

describe("verifyJournal()", () => {
  beforeAll(async () => {
    lines = await tenCalls();
  });

  it("accepts an unchanged journal, and returns its last record", async () => {
    const verdict = await verifyJournal(bytesOf(lines));
    assertEquals(verdict, {
      ok: true,
      records: 12,
      first: 1,
      head: { sequence: 12, hash: JSON.parse(lines[11] ?? "").hash },
      interrupted: [],
      dropped: 0,
    });
  });

  it("returns the number of the first record if earlier records were deleted", async () => {
    const { ok, first, records } = await verifyJournal(bytesOf(lines.slice(3)));
    assertEquals([ok, first, records], [true, 4, 9]);
  });

  it("accepts an empty journal", async () => {
    const { ok, records } = await verifyJournal(bytesOf([]));
    assertEquals([ok, records], [true, 0]);
  });

  for (const [what, change, sequence] of ATTACKS) {
    it(`names the first record that does not fit, if an attacker ${what}`, async () => {
      const { ok, problem } = await verifyJournal(bytesOf(change(lines)));
      assertEquals([ok, problem?.sequence], [false, sequence]);
    });
  }

  it("finds that the end was removed only with a head from elsewhere", async () => {
    const { head } = await verifyJournal(bytesOf(lines));
    const short = lines.slice(0, 8);
    const alone = await verifyJournal(bytesOf(short));
    assertEquals([alone.ok, alone.interrupted], [true, [8]]);
    const { ok, problem } = await verifyJournal(bytesOf(short), { head });
    assertEquals([ok, problem?.sequence], [false, 9]);
    assertEquals(problem?.why, "it is missing: the journal had 12 records");
    const longer = await verifyJournal(bytesOf(lines), {
      head: (await verifyJournal(bytesOf(short))).head,
    });
    assertEquals(longer.ok, true);
  });

  it("rejects a chain that an attacker has computed again only if the journal has a key", async () => {
    const forge = (all: readonly string[]): string[] => {
      let previous = "A".repeat(43);
      return all.map((line) => {
        const changed = line.replace('"euros":5', '"euros":9')
          .replace(/(?<="previous":").{43}/, previous);
        const forged = rehashed(changed);
        previous = JSON.parse(forged).hash;
        return forged;
      });
    };
    assert((await verifyJournal(bytesOf(forge(lines)))).ok);
    const { head } = await verifyJournal(bytesOf(lines));
    assertEquals((await verifyJournal(bytesOf(forge(lines)), { head })).ok, false);
    const keyed = await tenCalls(KEY);
    assert((await verifyJournal(bytesOf(keyed), { key: KEY })).ok);
    assertEquals((await verifyJournal(bytesOf(forge(keyed)), { key: KEY })).ok, false);
    assertEquals((await verifyJournal(bytesOf(keyed))).ok, false);
  });

  it("returns the record after which a writer was interrupted, and the number of dropped calls", async () => {
    const sink = memorySink();
    const first = journal({ sink, onFailure: "drop-and-count" });
    await first.flush();
    const second = journal({ sink: memorySink(sink.lines), onFailure: "drop-and-count" });
    await second.close();
    const { ok, interrupted } = await verifyJournal(bytesOf(sink.lines));
    assertEquals([ok, interrupted], [true, [1]]);
  });

  it("finds that a new chain without a key begins behind the head from elsewhere", async () => {
    const { head } = await verifyJournal(bytesOf(lines));
    for (const sequence of [13, 1e300, '"x"']) {
      const forged = rehashed((lines[0] ?? "").replace('"sequence":1', `"sequence":${sequence}`));
      assertEquals((await verifyJournal(bytesOf([forged]), { head })).ok, false);
    }
    const later = await verifyJournal(bytesOf(lines.slice(3)), { head });
    assertEquals([later.ok, later.first], [true, 4]);
  });

  it("reads a line of many chunks in linear time", async () => {
    const chunk = new Uint8Array(1_024).fill(120);
    const before = Buffer.concat;
    let copied = 0;
    Buffer.concat = (list, length) => {
      const made = before(list as Uint8Array[], length);
      copied += made.length;
      return made;
    };
    try {
      await verifyJournal((async function* () {
        for (let times = 0; times < 200; times++) yield chunk;
        yield new Uint8Array([10]);
      })());
    } finally {
      Buffer.concat = before;
    }
    assertEquals(copied, 200 * chunk.length);
  });

  it("finds an incomplete last line", async () => {
    async function* cut(): AsyncGenerator<Uint8Array> {
      for await (const bytes of bytesOf(lines)) yield bytes;
      yield new TextEncoder().encode('{"previous":"abc');
    }
    const { ok, problem } = await verifyJournal(cut());
    assertEquals([ok, problem?.why], [false, "it is incomplete: its writer was interrupted"]);
  });

  it("rejects a key that is too short", async () => {
    await assertRejects(
      () => verifyJournal(bytesOf([]), { key: "short" }),
      TypeError,
      "16 characters",
    );
    assertThrows(() => journal({ sink: memorySink(), onFailure: "drop-and-count", key: "short" }));
  });
});
