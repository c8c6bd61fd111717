/** `oauthCredentials` and its callback, without a server. */

import { memoryCallStore } from "@plue/tools/calls";
import { oauthCallback, oauthCredentials } from "@plue/tools/credentials";
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";

const hub = { clientId: "plue", tokenEndpoint: "https://hub.example/token" };
const authorizationEndpoint = "https://hub.example/authorize";
const redirectUri = "https://tools.example/callback";
const valid = {
  ...{ providers: { hub: { ...hub, authorizationEndpoint } }, redirectUri },
  ...{ store: memoryCallStore(), keys: [new Uint8Array(32)] },
};
const source = oauthCredentials(valid);
const authorize = () => ({ principal: "ann" });

/** Returns the address to which the server sends the browser of ann. */
async function answered(): Promise<string> {
  const about = { principal: "ann", tenant: undefined, scopes: [], context: {}, services: {} };
  const needed = await source.get("hub", { ...about, signal: new AbortController().signal });
  const state = new URL(Object(needed).url).searchParams.get("state") ?? "";
  return `${redirectUri}?${new URLSearchParams({ code: "<c>", state, confirmed: "no" })}`;
}

describe("oauthCredentials()", () => {
  it("rejects options that are unknown, missing or not safe", () => {
    const wrong: readonly [object, string][] = [
      [{ scopes: [] }, "scopes"],
      [{ store: {} }, "store"],
      [{ keys: [] }, "keys"],
      [{ redirectUri: "http://tools.example/callback" }, "redirectUri"],
      [{ providers: { hub } }, 'authorizationEndpoint of "hub"'],
    ];
    for (const [options, message] of wrong) {
      assertThrows(() => oauthCredentials({ ...valid, ...options } as never), TypeError, message);
    }
  });
});

describe("oauthCallback()", () => {
  it("rejects another source, unknown options, and both or none of authorize and confirm", () => {
    const wrong: readonly [object, string, object?][] = [
      [{}, "set either authorize or confirm"],
      [{ authorize, confirm: true }, "set either authorize or confirm"],
      [{ confirm: "yes" }, "confirm"],
      [{ authorize, onEror: () => {} }, "onEror"],
      [{ authorize }, "the source must be oauthCredentials()", { get: () => {} }],
    ];
    for (const [options, message, other = source] of wrong) {
      assertThrows(() => oauthCallback(other as never, options as never), TypeError, message);
    }
  });

  it("reports a value of authorize that is no caller, and shows that the request failed", async () => {
    const errors: unknown[] = [];
    const callback = oauthCallback(source, {
      authorize: () => 7 as never,
      onError: (error) => void errors.push(error),
    });
    const response = await callback(new Request(await answered()));
    assertEquals([response.status, errors.length], [502, 1]);
    assertStringIncludes(await response.text(), "<title>Not connected</title>");
  });

  it("shows a confirmation with the escaped fields of the request", async () => {
    const response = await oauthCallback(source, { confirm: true })(new Request(await answered()));
    const text = await response.text();
    assertEquals([response.status, text.match(/<input type="hidden" /g)?.length], [200, 3]);
    assertStringIncludes(text, 'name="code" value="&#60;c&#62;"');
    assertStringIncludes(text, "<title>Connect hub to ann?</title>");
  });
});
