/**
 * Search by meaning: an index with a provider's embeddings, which can be fused with the index of
 * words. The index of words finds names and identifiers, the vectors find synonyms.
 */

import type { Tool, ToolHit, ToolIndex, ToolSearchScope } from "../mod.ts";

/** Returns a vector for each text, all of one length. Calls your provider. */
export type Embed = (texts: readonly string[]) => Promise<readonly (readonly number[])[]>;

/**
 * Makes an index that ranks by the cosine between the vectors of the query and of each tool. New
 * tools are embedded together, with the next search.
 *
 * @param embed Calls the provider. If it rejects, the search rejects.
 * @param minScore The minimum cosine of a hit. Each model has its own scale: measure it.
 */
export function createEmbeddingIndex(
  embed: Embed,
  minScore = 0.3,
): ToolIndex<Promise<readonly ToolHit[]>> {
  const tools = new Map<string, Tool>();
  const vectors = new WeakMap<Tool, Promise<readonly number[]>>();

  /** Returns the vectors of tools. New tools are embedded in one request. */
  function vectorsOf(wanted: readonly Tool[]): Promise<readonly (readonly number[])[]> {
    const fresh = wanted.filter((tool) => !vectors.has(tool));
    if (fresh.length > 0) {
      const answer = embed(
        fresh.map(({ title, name, description }) => `${title ?? name}: ${description}`),
      );
      fresh.forEach((tool, place) => {
        const vector = answer.then((all) => all[place] ?? []);
        vectors.set(tool, vector);
        // After a failure the next search calls the provider again.
        vector.catch(() => vectors.delete(tool));
      });
    }
    return Promise.all(wanted.map(async (tool) => await vectors.get(tool) ?? []));
  }

  return {
    add(tool: Tool): void {
      tools.set(tool.id, tool);
    },
    remove(id: string): void {
      tools.delete(id);
    },
    async search(query: string, limit: number, scope: ToolSearchScope = {}) {
      if (!(limit >= 1) || !/[\p{L}\p{N}]/u.test(query)) return [];
      const among = scope.among ?? [...tools.values()];
      const known = among.filter(({ id }) => tools.has(id));
      const [[queryVector = []], own] = await Promise.all([embed([query]), vectorsOf(known)]);
      return known
        .map(({ id }, place): ToolHit => ({ id, score: cosine(queryVector, own[place] ?? []) }))
        .filter(({ score }) => score > 0 && score >= (scope.minScore ?? minScore))
        .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
        .slice(0, Math.floor(limit));
    },
  };
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (one: readonly number[], two: readonly number[]): number =>
    one.reduce((sum, value, place) => sum + value * (two[place] ?? 0), 0);
  return dot(a, b) / (Math.sqrt(dot(a, a) * dot(b, b)) || 1);
}

/** An {@linkcode Embed} for any provider with OpenAI's `/embeddings`. */
export function openAiEmbed(options: {
  readonly apiKey: string;
  readonly model?: string;
  readonly baseUrl?: string;
  readonly fetch?: typeof fetch;
}): Embed {
  const { apiKey, model = "text-embedding-3-small", baseUrl = "https://api.openai.com/v1" } =
    options;
  const send = options.fetch ?? fetch;
  return async (texts) => {
    const response = await send(`${baseUrl}/embeddings`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ model, input: texts }),
    });
    if (!response.ok) throw new Error(`Cannot embed: the provider answered ${response.status}`);
    const { data }: { data: { index: number; embedding: number[] }[] } = await response.json();
    return data.sort((a, b) => a.index - b.index).map(({ embedding }) => embedding);
  };
}
