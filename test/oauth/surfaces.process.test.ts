/** A missing credential over HTTP, over MCP and in the command: a URL, and then the call continues. */

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { readService } from "../../src/cli/sources/service.ts";
import { plue, postJson } from "../cli/support.ts";
import { deferred, FakeClock } from "../support/waiting.ts";
import { contentOf, startService, urlIn } from "./world.ts";

const ANN = { authorization: "Bearer ann-at-the-tools" };

describe("a call without a credential", () => {
  it("waits over HTTP as a question with a URL, and continues by its ticket", async () => {
    await using service = await startService();
    const post = async (path: string, body: object) => {
      const response = await postJson(service.url + path, body, ANN);
      const { status, headers } = response;
      return { status, path: headers.get("location"), body: await response.json() };
    };
    const first = await post("/tools/whoami/execute", {});
    assertEquals(first.status, 202);
    const { ticket } = first.body;
    const answers = { "credential.hub.1": { action: "accept" } };
    // The ticket is sent before the permission, as the explorer does. The request waits.
    const resumed = post(first.path ?? "", { ticket, answers });
    assertEquals(await service.permit(urlIn(first.body), "ann"), 200);
    assertEquals((await resumed).body.content, "ann");
    assertEquals((await post("/tools/whoami/execute", {})).body.content, "ann");
  });

  it("rejects the browser of another caller", async () => {
    await using service = await startService();
    const response = await postJson(`${service.url}/tools/whoami/execute`, {}, ANN);
    assertEquals(await service.permit(urlIn(await response.json()), "bob"), 403);
  });

  it("waits over MCP as an elicitation of a URL, in both eras", async () => {
    for (const mode of ["auto", "legacy"] as const) {
      await using service = await startService();
      const client = new Client({ name: "test", version: "1.0.0" }, {
        capabilities: { elicitation: { url: {} } },
        versionNegotiation: { mode },
      });
      const pages: Promise<number>[] = [];
      client.setRequestHandler("elicitation/create", ({ params }) => {
        assert("url" in params && params.mode === "url");
        pages.push(service.permit(params.url, "bob"));
        return { action: "accept" };
      });
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), {
          requestInit: { headers: { authorization: "Bearer bob-at-the-tools" } },
        }),
      );
      const { content } = await client.callTool({ name: "whoami" });
      assertEquals(content, [{ type: "text", text: "bob" }], mode);
      assertEquals(await Promise.all(pages), [200]);
      await client.close();
    }
  });

  it("prints the URL in the command, which waits without a terminal", async () => {
    await using service = await startService();
    const header = `authorization: ${ANN.authorization}`;
    const words = ["call", "-f", service.url, "--header", header, "whoami"];
    let page: Promise<number> | undefined;
    const { code, stdout, stderr } = await plue(words, {
      heard(text) {
        const [url] = /http:\S+\/auth\?\S+/.exec(text) ?? [];
        if (url !== undefined) page = service.permit(url, "ann");
      },
    });
    assertEquals([code, stdout, await page], [0, "ann\n", 200]);
    assertMatch(stderr, /Allow "whoami" to act as you at hub \(repo\)/);
  });

  it("does not count the wait of a service for the permission against the timeout", async () => {
    const resumed = deferred();
    await using service = await startService({
      authorize({ method, url }) {
        if (method === "POST" && url.includes("/calls/")) resumed.resolve();
        return { principal: "ann" };
      },
    });
    const tools = await readService({ url: service.url, headers: {} }, AbortSignal.timeout(30_000));
    const clock = new FakeClock();
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: tools ?? [] }), { clock });
    let url = "";
    const result = dispatcher.dispatch({ name: "whoami" }, {
      onQuestion(question) {
        url = question.url ?? "";
        return { action: "accept" };
      },
    });
    await resumed.promise;
    clock.advance(600_000);
    assertEquals(await service.permit(url, "ann"), 200);
    assertEquals(contentOf(await result), "ann");
  });
});
