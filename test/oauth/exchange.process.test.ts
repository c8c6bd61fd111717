/** The exchange of a caller's token at a real authorization server. */

import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { credentials, exchangeTokens } from "@plue/tools/credentials";
import { importMcpServer } from "@plue/tools/mcp";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { serve } from "../runtime/serve.ts";
import { CLIENT, type OAuthServer, startOAuthServer } from "./server.ts";
import { contentOf, whoami } from "./world.ts";

/** An MCP server whose tool returns the account of the request's token. */
async function startMcpServer(hub: OAuthServer) {
  const handler = createMcpHandler(({ requestInfo }) => {
    const headers = { authorization: requestInfo?.headers.get("authorization") ?? "" };
    const server = new McpServer({ name: "hub", version: "1.0.0" });
    server.registerTool("me", { description: "Returns the caller." }, async () => {
      const response = await fetch(`${hub.url}/api/me`, { headers });
      return { content: [{ type: "text" as const, text: (await response.json()).account }] };
    });
    return server;
  });
  const served = await serve((request) => handler.fetch(request));
  return {
    url: `${served.url}/mcp`,
    async [Symbol.asyncDispose]() {
      await handler.close();
      await served.stop();
    },
  };
}

describe("exchangeTokens()", () => {
  it("exchanges each caller's token, uses the new one again, and follows the caller's token", async () => {
    await using server = await startOAuthServer();
    const tokens = new Map<string, string>();
    for (const name of ["ann", "bob"]) tokens.set(name, await server.issue(name));
    const source = exchangeTokens({
      providers: {
        hub: { tokenEndpoint: `${server.url}/token`, ...CLIENT, parameters: { audience: "hub" } },
      },
      subjectToken: ({ principal = "" }) => tokens.get(principal),
    });
    const registry = new ToolRegistry({ tools: [whoami(server)] });
    const dispatcher = new ToolDispatcher(registry, { credentials: credentials(source) });
    const call = async (principal: string) =>
      contentOf(await dispatcher.dispatch({ name: "whoami" }, { principal }));
    const exchanges = () => [...server.grants.values()].reduce((sum, count) => sum + count, 0);

    const accounts = await Promise.all(["ann", "bob", "ann", "bob", "ann"].map(call));
    assertEquals(accounts, ["ann@hub", "bob@hub", "ann@hub", "bob@hub", "ann@hub"]);
    assertEquals(exchanges(), 2);
    assert(!server.api.some(({ token }) => [...tokens.values()].includes(token)));

    // The caller's token is renewed.
    tokens.set("ann", await server.issue("ann"));
    assertEquals([await call("ann"), exchanges()], ["ann@hub", 3]);
    // The server rejects the exchanged token once.
    await server.invalidate(server.api.at(-1)?.token ?? "");
    assertEquals([await call("ann"), await call("ann"), exchanges()], ["nobody", "ann@hub", 4]);
    // The caller's token is revoked, or the caller has none.
    tokens.set("ann", "no token of the server");
    assertEquals(await call("ann"), "denied");
    tokens.delete("ann");
    assertEquals(await call("ann"), "denied");
  });

  it("gets tokens of an MCP server for assertions of an identity provider, which it checks", async () => {
    await using idp = await startOAuthServer();
    await using hub = await startOAuthServer();
    hub.trusted = idp.url;
    await using mcp = await startMcpServer(hub);
    const resource = "https://mcp.example";
    const tokens = new Map<string, string>();
    for (const name of ["ann", "bob"]) tokens.set(name, await idp.issue(name));
    const source = exchangeTokens({
      identityProvider: { tokenEndpoint: `${idp.url}/token`, ...CLIENT },
      providers: {
        hub: { tokenEndpoint: `${hub.url}/token`, ...CLIENT, parameters: { resource } },
      },
      subjectToken: ({ principal = "" }) => tokens.get(principal),
    });
    const registry = new ToolRegistry();
    const authorization = `Bearer ${await hub.issue("operator")}`;
    await using _ = await importMcpServer(mcp.url, {
      ...{ namespace: "hub", registry, credentials: { hub: {} } },
      http: { requestInit: { headers: { authorization } } },
      authorize: (call) => call.credential("hub"),
    });
    const dispatcher = new ToolDispatcher(registry, { credentials: credentials(source) });
    const call = async (principal: string) =>
      contentOf(await dispatcher.dispatch({ name: "hub:me" }, { principal }));

    const owners = ["ann", "bob", "ann", "bob"];
    const accounts = owners.map((owner) => `${owner}@${resource}`);
    assertEquals(await Promise.all(owners.map(call)), accounts);
    assertEquals(idp.grants.get("urn:ietf:params:oauth:grant-type:token-exchange"), 2);
    assertEquals(hub.grants.get("urn:ietf:params:oauth:grant-type:jwt-bearer"), 2);
    // The server does not trust the identity provider, or the caller's token is not valid there.
    hub.trusted = "https://other.example";
    tokens.set("ann", await idp.issue("ann"));
    assertEquals(await call("ann"), "denied");
    // A token of another type is not sent to the server.
    idp.ignoresType = true;
    tokens.set("bob", await idp.issue("bob"));
    const before = hub.grants.get("urn:ietf:params:oauth:grant-type:jwt-bearer");
    assertEquals(await call("bob"), "unavailable");
    assertEquals(hub.grants.get("urn:ietf:params:oauth:grant-type:jwt-bearer"), before);
  });

  it("rejects options that are unknown, missing or not safe", () => {
    const subjectToken = () => "token";
    const hub = { tokenEndpoint: "https://hub.example/token", clientId: "plue" };
    const server = (fields: object) => ({ providers: { hub: fields }, subjectToken });
    const wrong: readonly [object, string][] = [
      [{ ...server(hub), audience: "x" }, "audience"],
      [{ providers: { hub } }, "subjectToken must be a function"],
      [server({ ...hub, clientId: "" }), 'clientId of "hub"'],
      [server({ ...hub, tokenEndpoint: "http://h.example" }), "https"],
      [{ providers: { "a b": hub }, subjectToken }, "letters or digits"],
      [{ subjectToken }, "providers"],
      [server({ clientId: "plue" }), 'tokenEndpoint of "hub"'],
      [server({ tokenEndpoint: hub.tokenEndpoint }), 'clientId of "hub"'],
    ];
    for (const [options, message] of wrong) {
      assertThrows(() => exchangeTokens(options as never), TypeError, message);
    }
  });
});
