import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { createEdgeApp } from "./app.ts";

const call = (tool: string, args: unknown, token?: string, app = createEdgeApp("s3cret")) =>
  app.request(`https://tools.example/tools/${tool}/execute`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ arguments: args }),
  });

const content = async (tool: string, args: unknown): Promise<unknown> =>
  (await (await call(tool, args, "s3cret")).json()).content;

describe("createEdgeApp()", () => {
  it("lists its tools for whoever presents the token", async () => {
    const headers = { authorization: "Bearer s3cret" };
    const response = await createEdgeApp("s3cret").request("https://tools.example/tools", {
      headers,
    });
    const { tools } = await response.json();
    assertEquals(tools.map(({ id }: { id: string }) => id), [
      "echo",
      "json:get",
      "text:digest",
      "text:stats",
    ]);
  });

  it("turns everybody else away", async () => {
    for (const token of [undefined, "", "wrong", "s3cret2"]) {
      const response = await call("echo", { message: "x" }, token);
      assertEquals([response.status, response.headers.get("www-authenticate")], [401, "Bearer"]);
      assertEquals(response.headers.get("content-type"), "application/problem+json");
      assertEquals((await response.json()).code, "unauthorized");
    }
  });

  it("lets nobody call when no token is configured", async () => {
    for (const none of [undefined, ""]) {
      const app = createEdgeApp(none);
      assertEquals((await app.request("https://tools.example/tools")).status, 200);
      assertEquals((await call("echo", { message: "x" }, "", app)).status, 403);
    }
  });

  it("runs its tools", async () => {
    assertEquals(await content("echo", { message: "häh" }), { message: "häh" });
    assertEquals(
      await content("text:digest", { text: "abc" }),
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    );
    assertEquals(await content("text:stats", { text: "Two words. Three more words!\nA 👩‍👩‍👧" }), {
      characters: 32,
      words: 6,
      sentences: 3,
      lines: 2,
    });
    const document = { "a/b": { "m~n": ["x", "y"] } };
    assertEquals(await content("json:get", { document, pointer: "/a~1b/m~0n/1" }), "y");
    assertEquals(await content("json:get", { document, pointer: "" }), document);
  });

  it("finds no members that a document only inherits", async () => {
    for (const pointer of ["/constructor", "/__proto__", "/length", "/0", "/-1", "/01"]) {
      for (const document of [{}, [], "text"]) {
        const response = await call("json:get", { document, pointer }, "s3cret");
        assertStringIncludes(await response.text(), "Cannot find");
      }
    }
  });
});
