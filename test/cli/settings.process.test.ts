import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { connect } from "node:net";
import process from "node:process";
import { listen, readSettings, urlOf } from "../../src/cli/serve/settings.ts";
import { CommandError } from "../../src/cli/terminal.ts";
import { maybe } from "../support/skip.ts";
import rows from "./commands.json" with { type: "json" };

const read = (environment: Record<string, string> = {}) => readSettings(environment);

describe("readSettings()", () => {
  it("serves the current folder on loopback, up to medium risk, when nothing is set", () => {
    assertEquals(read(), {
      port: 8787,
      host: "127.0.0.1",
      isLoopback: true,
      maxRisk: "medium",
      role: undefined,
      token: undefined,
    });
  });

  it("accepts every valid value", () => {
    assertEquals(
      read({
        PORT: "0",
        HOST: "0.0.0.0",
        PLUE_MAX_RISK: "high",
        PLUE_ROLE: "impl",
        PLUE_TOKEN: "s3cret-s3cret-s3cret",
      }),
      {
        port: 0,
        host: "0.0.0.0",
        isLoopback: false,
        maxRisk: "high",
        role: "impl",
        token: "s3cret-s3cret-s3cret",
      },
    );
  });

  it("treats an empty variable as not set", () => {
    assertEquals(read({ PORT: "", HOST: " ", PLUE_MAX_RISK: "" }), read());
  });

  for (const [name, value, wanted] of rows.settings as [string, string, string][]) {
    it(`rejects ${name}=${value} with its name, its value and the valid form`, () => {
      const error = assertThrows(() => read({ [name]: value }), CommandError);
      const start = `Cannot serve: ${name} is "${value}", and must be`;
      assertEquals(error.message.slice(0, start.length), start);
      assertStringIncludes(error.message, wanted);
      assertEquals(error.message.includes("\n"), false);
    });
  }

  it("rejects an invalid or short token without showing it", () => {
    for (const token of ["my secret secret secret", "secret", "a-secret-of-15c"]) {
      const error = assertThrows(() => read({ PLUE_TOKEN: token }), CommandError);
      assertEquals(error.message.includes("secret"), false);
      assertStringIncludes(error.message, "16 to 1024");
    }
  });

  it("rejects hosts other than loopback without a token", () => {
    for (const host of ["0.0.0.0", "::", "192.168.1.5", "example.org", "127.0.0.1.example.org"]) {
      assertThrows(() => read({ HOST: host }), CommandError, "set PLUE_TOKEN");
      const env = { HOST: host, PLUE_TOKEN: "correct-horse-battery" };
      assertEquals(read(env).isLoopback, false);
      // Others cannot reach a server over stdio.
      assertEquals(readSettings(env, { stdio: true }).token, undefined);
    }
  });

  it("recognises the spellings of loopback", () => {
    for (const host of ["127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]"]) {
      assertEquals(read({ HOST: host }).isLoopback, true);
    }
  });
});

describe("urlOf()", () => {
  it("returns an address that a client can use", () => {
    assertEquals(urlOf("0.0.0.0", 80), "http://127.0.0.1:80");
    assertEquals(urlOf("::", 80), "http://[::1]:80");
    assertEquals(urlOf("localhost", 80), "http://localhost:80");
  });
});

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
        // Sets the timeout as the handler does on Bun.
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
