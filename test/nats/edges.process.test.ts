// Two edges and a worker as separate programs: one edge resumes the other's calls.

import { readFile } from "node:fs/promises";
import process from "node:process";
import { describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { RUN, startProgram } from "../support/program.ts";
import { folder } from "../cli/support.ts";
import { type TestServer, useServer, withServer } from "./server.ts";

const files = folder();
const PLUE = [...RUN, "src/cli/main.ts"];
const TOKEN = "the-right-token-of-the-test";
const YES = { sure: { action: "accept" } };

/** Starts `plue serve`, and waits until it serves. */
async function serve(server: TestServer, env: Readonly<Record<string, string>>, ...args: string[]) {
  const program = startProgram(
    process.execPath,
    [...PLUE, "serve", ...args, "--no-watch", "--port", "0", "--nats", server.url],
    { PLUE_NATS_SECRET: "a-secret-of-the-tests", ...env },
  );
  const [, url = ""] = await program.printed(/ on (http:\S+)\n/);
  return {
    async ask(
      method: string,
      place: string,
      body?: unknown,
      headers: Readonly<Record<string, string>> = {},
    ) {
      const response = await fetch(url + place, {
        method,
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${TOKEN}`,
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json() };
    },
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

describe("Two edges of plue serve --nats", () => {
  const server = useServer();

  withServer("continue each other's calls", async () => {
    const ran = await files.write("ran", "");
    const env = { PLUE_TOKEN: TOKEN };
    await using _worker = await serve(server, { RAN: ran }, "test/cli/state_tools.mjs");
    const starting = [serve(server, env), serve(server, env)] as const;
    await using a = await starting[0];
    await using b = await starting[1];
    const pay = "/tools/pay/execute";
    const erase = "/tools/erase/execute";

    const key = { "idempotency-key": "order-7" };
    assertEquals((await a.ask("POST", pay, {}, key)).body.content, "paid");
    const again = await b.ask("POST", pay, {}, key);
    assertEquals([again.body.content, again.body.replayed], ["paid", true]);

    const { status, body: { ticket, callId } } = await a.ask("POST", erase, {});
    assertEquals(status, 202);
    const resumed = await b.ask("POST", `/calls/${callId}`, { ticket, answers: YES });
    assertEquals(resumed.body.content, "erased");
    const used = await a.ask("POST", `/calls/${callId}`, { ticket, answers: YES });
    assertEquals([used.status, used.body.code], [410, "ticket_refused"]);

    const { body: { id } } = await a.ask("POST", erase, {}, { prefer: "respond-async" });
    let task = (await b.ask("GET", `/calls/${id}`)).body;
    while (task.status === "working") task = (await b.ask("GET", `/calls/${id}`)).body;
    assertEquals(task.status, "input_required");
    await b.ask("POST", `/calls/${id}`, { answers: YES });
    do task = (await a.ask("GET", `/calls/${id}`)).body; while (task.status === "working");
    assertEquals(task.result.content, "erased");

    const lines = (await readFile(ran, "utf8")).trim().split("\n");
    assertEquals(lines, ["pay", "look", "erase", "look", "erase"]);

    // The limit of ten invalid tokens counts for both edges together.
    const wrong = { authorization: "Bearer wrong" };
    const statuses: number[] = [];
    for (let count = 0; count < 12; count++) {
      statuses.push(
        (await (count % 2 === 0 ? a : b).ask("GET", "/tools", undefined, wrong)).status,
      );
    }
    assertEquals(statuses, [...Array.from({ length: 10 }, () => 401), 429, 429]);
  });
});
