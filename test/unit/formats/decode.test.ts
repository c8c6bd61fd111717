import { assertEquals, assertStrictEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { decodeCalls, dispatchResponse, exportTools } from "../../../src/formats/mod.ts";
import { dispatcherOf, FIXTURES, namesFor } from "./cases.ts";

const ROWS = FIXTURES.flatMap((fixture) => fixture.targets.map((target) => ({ target, fixture })));

describe("decodeCalls()", () => {
  for (const { target, fixture } of ROWS) {
    const { name, call, levels, ids } = fixture;
    const names = namesFor(target);

    for (const [level, wrap] of Object.entries(levels)) {
      it(`reads several calls of ${target} out of: ${level}`, () => {
        const raws = [call(name, { city: "Rome" }, "abcdefgh1"), call("clear", {}, "abcdefgh2")];
        const calls = decodeCalls(target, wrap(raws), names);
        // If the target has namespaces, the second call has an empty one.
        const second = target.startsWith("openai.responses") ? undefined : "clear";
        assertEquals(calls.map((one) => one.name), ["city:weather", second]);
        assertEquals(calls.map((one) => one.wireName), [name, "clear"]);
        assertEquals(calls.map((one) => one.arguments), [{ city: "Rome" }, {}]);
        assertEquals(
          calls.map((one) => one.callId),
          ids ? ["abcdefgh1", "abcdefgh2"] : ["call_1", "call_2"],
        );
      });
    }

    it(`reads one call of ${target} alone`, () => {
      const raw = call(name, { city: "Rome" }, "abcdefgh1");
      const [one, ...others] = decodeCalls(target, raw, names);
      assertEquals([one?.name, one?.arguments, others.length], [
        "city:weather",
        { city: "Rome" },
        0,
      ]);
    });

    it(`finds no calls in a response of ${target} without any`, () => {
      for (const response of fixture.silent) assertEquals(decodeCalls(target, response, names), []);
    });

    it(`returns a problem for an unknown name of ${target}, without an exception`, () => {
      for (const other of ["city:weather", "__proto__", "constructor", "wether", ""]) {
        const [one] = decodeCalls(target, call(other, { city: "Rome" }, "abcdefgh1"), names);
        assertEquals([one?.name, one?.wireName, one?.problem?.code], [
          undefined,
          other,
          "unknown_tool",
        ]);
      }
    });

    it(`keeps "__proto__" in arguments of ${target} as a key`, () => {
      const args: unknown = JSON.parse('{"city":"Rome","__proto__":{"unit":"F"}}');
      const [one] = decodeCalls(target, call(name, args, "abcdefgh1"), names);
      const decoded = one?.arguments as Record<string, unknown>;
      assertEquals(Object.keys(decoded).sort(), ["__proto__", "city"]);
      assertStrictEquals(decoded["unit"], undefined);
    });

    it(`rejects an invalid response of ${target} with a pointer, without quoting it`, () => {
      const wrong: unknown[] = [null, undefined, 1, "secret", { error: { message: "secret" } }, [
        "secret",
      ], [[call(name, {}, "abcdefgh1")]]];
      for (const response of wrong) {
        const error = assertThrows(
          () => decodeCalls(target, response, names),
          TypeError,
          "Cannot read",
        );
        assertEquals(error.message.includes("secret"), false, error.message);
      }
    });
  }

  it("rejects an export instead of its names", () => {
    const result = exportTools([], "openai") as unknown as ReturnType<typeof namesFor>;
    assertThrows(
      () => decodeCalls("openai", [], result),
      TypeError,
      "Cannot decode the calls: names must be the names of an export",
    );
  });
});

describe("a call without a tool's name, or a value that is not a call", () => {
  const clear = { name: "clear", arguments: "{}" };
  it("is answered with a failure under its id", async () => {
    const response = { tool_calls: [{ id: "1" }, null, { id: "2", function: clear }] };
    const { messages } = await dispatchResponse(
      "openai",
      response,
      { dispatcher: dispatcherOf(), names: namesFor("openai") },
    );
    assertEquals(
      messages.map((message) => "tool_call_id" in message && [message.role, message.tool_call_id]),
      [["tool", "1"], ["tool", "call_1"], ["tool", "2"]],
    );
    assertStringIncludes(messages[0]?.content ?? "", 'Cannot call "": it is not a call of a tool');
    assertEquals(messages[2]?.content, "cleared");
  });

  it("suggests names for the first of many misspelled names only", () => {
    const calls = Array.from({ length: 1_000 }, (_, index) => ({
      ...{ id: `${index}`, type: "function" },
      function: { name: "cleer", arguments: "{}" },
    }));
    const hinted = decodeCalls("openai", calls, namesFor("openai")).map(({ problem }) =>
      problem?.message.endsWith('Did you mean "clear"?')
    );
    assertEquals([hinted.length, hinted.lastIndexOf(true)], [1_000, 15]);
  });
});
