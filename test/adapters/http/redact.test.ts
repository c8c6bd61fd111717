import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { withoutSecrets } from "../../../src/adapters/http/redact.ts";

const SECRET = 'a "quoted"/secret';

describe("withoutSecrets()", () => {
  it("replaces secrets in texts and names, and in URLs", () => {
    const input = { [SECRET]: [SECRET, 7, null], url: `?q=${encodeURIComponent(SECRET)}` };
    assertEquals(withoutSecrets(input, [SECRET]), {
      "[credential]": ["[credential]", 7, null],
      url: "?q=[credential]",
    });
  });

  it("replaces a secret that begins with another one, and no short text", () => {
    assertEquals(
      withoutSecrets("abcdef-ghi abc", ["abcdef", "abcdef-ghi", "abc"]),
      "[credential] abc",
    );
  });

  it("replaces the beginning of a secret in a text that was cut", () => {
    const token = 'a-"quoted"/secret';
    for (const length of [6, 12, token.length - 1]) {
      const cut = `not "${token.slice(0, length)}…" but "…"`;
      assertEquals(withoutSecrets(cut, [token]), 'not "[credential]…" but "…"');
    }
    assertEquals(withoutSecrets(`${token.slice(0, 5)}…`, [token]), `${token.slice(0, 5)}…`);
  });

  it("returns the same for right and wrong guesses of a secret", () => {
    const guesses = ["ghp_abc", "ghp_abX", "ghp_abXYZ"].map((guess) => `not found: ${guess}…`);
    const cleaned = withoutSecrets(guesses, ["ghp_abcdefgh"]);
    assertEquals(cleaned, Array(3).fill("not found: [credential]…"));
  });

  it("replaces a long secret that was cut after its first 512 characters", () => {
    const secret = `eyJhbG${"abcdefgh".repeat(200)}`;
    assertEquals(withoutSecrets(`not ${secret.slice(0, 700)}…`, [secret]), "not [credential]…");
  });

  it("needs little time for many cut texts and a long secret", () => {
    const secret = "eyJhbG".padEnd(6_000, "a8b-");
    const begun = performance.now();
    const cut = Array(3_000).fill(`a title of ${secret.slice(0, 40)}…`);
    assertEquals(withoutSecrets(cut, [secret]), Array(3_000).fill("a title of [credential]…"));
    assert(performance.now() - begun < 30_000);
  });

  it("needs little time for a long secret that repeats a character, and removes all of it", () => {
    const half = "a".repeat(200_000);
    const begun = performance.now();
    const cleaned = withoutSecrets("a".repeat(1_000_000), [`${half}b${half}`]);
    assert(performance.now() - begun < 30_000);
    assert(String(cleaned).length < 1_000_000);
    const others = ["1", "22"].map((end) => "eyJhbG".padEnd(600, "x7Q.") + end);
    const both = withoutSecrets(`${others[1]} and ${others[0]}; ${others[0]}`, others);
    assertEquals(both, "[credential] and [credential]; [credential]");
  });

  it("returns a copy, so that no hidden field of the value is passed on", () => {
    const thrown = {
      request: new Request("http://127.0.0.1", { headers: { authorization: SECRET } }),
    };
    assertEquals(withoutSecrets(thrown, [SECRET]), { request: {} });
    assertEquals(withoutSecrets(undefined, [SECRET]), undefined);
  });

  it("copies the name, message, stack, code and causes of an error", () => {
    const cause = Object.assign(new RangeError(`for ${SECRET}`), { code: SECRET, port: SECRET });
    const error = new TypeError("failed", { cause: new AggregateError([cause], "all", { cause }) });
    const copy = withoutSecrets(error, [SECRET]) as Error;
    const all = copy.cause as Error;
    const inner = all.cause as Error;
    assertEquals([copy.name, copy.message, all.message], ["TypeError", "failed", "all"]);
    assertEquals([inner.name, inner.message], ["RangeError", "for [credential]"]);
    assertEquals(Object.getOwnPropertyNames(inner).filter((name) => /port|code/.test(name)), [
      "code",
    ]);
    assertEquals((inner as { code?: unknown }).code, "[credential]");
  });

  it("rejects a value that is neither JSON nor an error", () => {
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    assertThrows(() => withoutSecrets(cyclic, [SECRET]), TypeError);
  });
});
