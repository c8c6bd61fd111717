/** The exchange of a caller's token at a real authorization server. */

import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { credentials, exchangeTokens } from "@plue/tools/credentials";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { CLIENT, startOAuthServer } from "./server.ts";
import { contentOf, whoami } from "./world.ts";

describe("exchangeTokens()", () => {
  it("exchanges each caller's token, uses the new one again, and follows the caller's token", async () => {
    await using server = await startOAuthServer();
    const tokens = new Map<string, string>();
    for (const name of ["ann", "bob"]) tokens.set(name, await server.issue(name));
    const source = exchangeTokens({
      providers: {
        hub: {
          tokenEndpoint: `${server.url}/token`,
          ...CLIENT,
          parameters: { audience: "hub" },
        },
      },
      subjectToken: ({ principal = "" }) => tokens.get(principal),
    });
    const dispatcher = new ToolDispatcher(
      new ToolRegistry({ tools: [whoami(server)] }),
      {
        credentials: credentials(source),
      },
    );
    const call = async (principal: string) =>
      contentOf(await dispatcher.dispatch({ name: "whoami" }, { principal }));
    const exchanges = () => [...server.grants.values()].reduce((sum, count) => sum + count, 0);

    const accounts = await Promise.all(["ann", "bob", "ann", "bob", "ann"].map(call));
    assertEquals(accounts, ["ann@hub", "bob@hub", "ann@hub", "bob@hub", "ann@hub"]);
    assertEquals(exchanges(), 2);
    assert(
      !server.api.some(({ token }) => [...tokens.values()].includes(token)),
    );

    // The caller's token is renewed.
    tokens.set("ann", await server.issue("ann"));
    assertEquals([await call("ann"), exchanges()], ["ann@hub", 3]);
    // The server rejects the exchanged token once.
    await server.invalidate(server.api.at(-1)?.token ?? "");
    assertEquals([await call("ann"), await call("ann"), exchanges()], [
      "nobody",
      "ann@hub",
      4,
    ]);
    // The caller's token is revoked, or the caller has none.
    tokens.set("ann", "no token of the server");
    assertEquals(await call("ann"), "unavailable");
    tokens.delete("ann");
    assertEquals(await call("ann"), "denied");
  });

  it("rejects options that are unknown, missing or not safe", () => {
    const subjectToken = () => "token";
    const hub = {
      tokenEndpoint: "https://hub.example/token",
      clientId: "plue",
    };
    const wrong: readonly [object, string][] = [
      [{ providers: { hub }, subjectToken, audience: "x" }, "audience"],
      [{ providers: { hub } }, "subjectToken must be a function"],
      [
        { providers: { hub: { ...hub, clientId: "" } }, subjectToken },
        'clientId of "hub"',
      ],
      [{
        providers: { hub: { ...hub, tokenEndpoint: "http://hub.example" } },
        subjectToken,
      }, "https"],
      [{ providers: { "a b": hub }, subjectToken }, "letters or digits"],
    ];
    for (const [options, message] of wrong) {
      assertThrows(() => exchangeTokens(options as never), TypeError, message);
    }
  });
});
