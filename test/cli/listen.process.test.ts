import { describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { connect } from "node:net";
import process from "node:process";
import { listen } from "../../src/cli/serve/settings.ts";
import { maybe } from "../support/skip.ts";

describe("a server of the command", () => {
  maybe(process.versions["deno"] === undefined, "Deno needs a proxy for that")(
    "disconnects a client that does not read, and not one whose call is silent",
    async () => {
      const part = new Uint8Array(1_048_576);
      let left = (): void => {};
      const hasLeft = new Promise<void>((resolve) => left = resolve);
      const server = await listen(async (request, env) => {
        if (request.url.endsWith("/endless")) {
          return new Response(
            new ReadableStream({ pull: (stream) => stream.enqueue(part), cancel: left }),
          );
        }
        // As the handler does it on Bun.
        (env as { timeout?(request: unknown, seconds: number): void }).timeout?.(request, 0);
        await hasLeft;
        return new Response("done");
      }, { host: "127.0.0.1", port: 0 });
      const call = fetch(`http://127.0.0.1:${server.port}/call`);
      const client = connect(server.port, "127.0.0.1").on("error", () => {}).pause();
      client.write("GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n");
      await hasLeft;
      assertEquals(await (await call).text(), "done");
      client.destroy();
      await server.close();
    },
  );
});
