import { assertEquals, assertRejects } from "@std/assert";
import { describe, it } from "bun:test";
import * as plue from "@plue/tools";
import { searchToolsetAsync } from "@plue/tools";
import { fuseIndexes } from "@plue/tools/search";
import { describeToolIndex } from "../contract/tool_index_contract.ts";
import { createEmbeddingIndex, type Embed, openAiEmbed } from "../../examples/embedding_search.ts";
import data from "./embedding_search.json" with { type: "json" };

/** Ideas with their words, which replace the knowledge of a model. */
const IDEAS = data.ideas;

/** A fake of a provider's embeddings. Stores its requests. */
function fakeEmbed(): Embed & { readonly requests: (readonly string[])[] } {
  const requests: (readonly string[])[] = [];
  const embed = (texts: readonly string[]) => {
    requests.push(texts);
    return Promise.resolve(texts.map((text) => {
      const words: readonly string[] = text.toLowerCase().match(/[\w]+/g) ?? [];
      return IDEAS.map((idea) => words.filter((word) => idea.includes(word)).length);
    }));
  };
  return Object.assign(embed, { requests });
}

describeToolIndex("createEmbeddingIndex()", () => createEmbeddingIndex(fakeEmbed(), 0));

const tools = [
  plue.defineTool({ name: "file-write", description: "Writes text to a file." }),
  plue.defineTool({ name: "file-read", description: "Reads a file." }),
  plue.defineTool({ name: "mail-send", description: "Sends a mail." }),
];

describe("a registry with words and embeddings", () => {
  it("finds a tool by meaning without a common word, and a tool by its name", async () => {
    const embed = fakeEmbed();
    const registry = new plue.ToolRegistry({
      tools,
      index: () =>
        fuseIndexes<plue.ToolAnswer>(plue.createToolIndex(), createEmbeddingIndex(embed)),
    });
    const first = async (query: string) =>
      (await searchToolsetAsync(registry.select(), query))[0]?.id;
    assertEquals(await first("jot down a document"), "file-write");
    assertEquals(await first("a letter"), "mail-send");
    assertEquals(await first("fileRead"), "file-read");
  });

  it("embeds each tool once, the new ones together", async () => {
    const embed = fakeEmbed();
    const registry = new plue.ToolRegistry({ tools, index: () => createEmbeddingIndex(embed) });
    await searchToolsetAsync(registry.select(), "a letter");
    registry.registerTool(plue.defineTool({ name: "git-log", description: "Lists commits." }));
    await searchToolsetAsync(registry.select(), "the history");
    assertEquals(embed.requests.map((texts) => texts.length), [1, 3, 1, 1]);
  });

  it("calls the provider again after a failure", async () => {
    const working = fakeEmbed();
    let fails = true;
    const index = createEmbeddingIndex((texts) =>
      fails ? Promise.reject(new Error("no network")) : working(texts)
    );
    const registry = new plue.ToolRegistry({ tools, index: () => index });
    await assertRejects(
      () => searchToolsetAsync(registry.select(), "a letter"),
      Error,
      "no network",
    );
    fails = false;
    assertEquals((await searchToolsetAsync(registry.select(), "a letter"))[0]?.id, "mail-send");
  });
});

describe("openAiEmbed()", () => {
  it("embeds all texts in one request, in their order", async () => {
    const received: unknown[] = [];
    const embed = openAiEmbed({
      apiKey: "k",
      fetch: ((url: string, init: RequestInit) => {
        received.push(url, JSON.parse(String(init.body)));
        const data = [{ index: 1, embedding: [2] }, { index: 0, embedding: [1] }];
        return Promise.resolve(Response.json({ data }));
      }) as typeof fetch,
    });
    assertEquals(await embed(["a", "b"]), [[1], [2]]);
    assertEquals(received, [
      "https://api.openai.com/v1/embeddings",
      { model: "text-embedding-3-small", input: ["a", "b"] },
    ]);
  });

  it("rejects with the provider's status, and without its answer", async () => {
    const embed = openAiEmbed({
      apiKey: "k",
      fetch: (() =>
        Promise.resolve(new Response("secret", { status: 401 }))) as unknown as typeof fetch,
    });
    await assertRejects(() => embed(["a"]), Error, "Cannot embed: the provider answered 401");
  });
});
