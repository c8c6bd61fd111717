/** A server that simulates a provider for the tests of one file. */

import { afterAll, beforeAll } from "bun:test";
import { createServer } from "node:http";
import { defineTool } from "../../src/tool/mod.ts";

/** The tool that the simulated model calls. */
export const add = defineTool({
  namespace: "math",
  name: "add",
  description: "Adds two numbers.",
  parameters: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  execute: ({ a, b }) => ({ sum: a + b }),
});

/** The provider's response. */
export interface ProviderAnswer {
  /** @default {200} */
  readonly status?: number;
  /** @default {"application/json"} */
  readonly type?: string;
  /** The body. The parts of a list are written one after the other. */
  readonly body: string | readonly (string | Uint8Array)[];
}

/**
 * Simulates a provider while the tests of the file run.
 *
 * @param answer Receives the JSON of each request; `undefined` for a request without a body.
 * @returns A function that returns the address while the tests run.
 */
export function playProvider(answer: (sent: unknown) => ProviderAnswer): { readonly url: string } {
  const provider = { url: "" };
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part) => text += part);
    request.on("end", () => {
      const { status = 200, type = "application/json", body } = answer(
        text === "" ? undefined : JSON.parse(text),
      );
      response.writeHead(status, { "content-type": type });
      for (const part of [body].flat()) response.write(part);
      response.end();
    });
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (typeof address !== "object" || address === null) {
      throw new Error("Cannot find the server: it has no address");
    }
    provider.url = `http://127.0.0.1:${address.port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return provider;
}
