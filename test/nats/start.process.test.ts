// The errors at the start if NATS cannot be used: of the command, of the doctor, and of programs.

import { once } from "node:events";
import { createServer, type Server } from "node:net";
import process from "node:process";
import { afterAll, beforeAll, describe } from "bun:test";
import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { ToolRegistry } from "@plue/tools";
import { remoteTools, serveTools } from "@plue/tools/nats";
import { RUN, startProgram } from "../support/program.ts";
import { folder, plue, type Ran } from "../cli/support.ts";
import { maybe } from "../support/skip.ts";
import { certificates, decentralised, noCertificates, withKeys } from "./identities.ts";
import { missing, TestServer, withServer } from "./server.ts";

type Environment = Readonly<Record<string, string>>;
type Row = readonly [env: Environment, wanted: RegExp];

const withTls = maybe((missing ?? noCertificates) === undefined, missing ?? noCertificates ?? "");
const files = folder();
const PLUE = [...RUN, "src/cli/main.ts"];
const TOOLS = `export const ping = { name: "ping", description: "Answers.", execute: () => 1 };`;
/** A secret that no message may contain. */
const HIDDEN = /sesame|S[UA][A-Z2-7]{20}|eyJ/;
const NOW = Date.now;
const SECRET = "a-secret-of-the-tests";
const options = { env: { PLUE_NATS_SECRET: SECRET } };

function doctor(env: Environment): Promise<Ran> {
  return plue(["doctor", "--json", "--nats", env["PLUE_NATS"] ?? ""], {
    env: { ...options.env, ...env },
  });
}

/** Checks the messages of an edge, a worker and the doctor. */
async function check([env, wanted]: Row): Promise<void> {
  const file = await files.write("tools.mjs", TOOLS);
  for (const sources of [[file], []]) {
    const words = ["serve", ...sources, "--no-watch", "--port", "0"];
    const { code, stdout, stderr } = await plue(words, { env: { ...options.env, ...env } });
    assertEquals([code, stdout], [2, ""], stderr);
    assertMatch(stderr, /^Cannot serve[^\n]*\n$/);
    assertMatch(stderr, wanted);
    assertEquals(HIDDEN.test(stderr), false, stderr);
  }
  const { code, stdout, stderr } = await doctor(env);
  // A setting that cannot be used is an error of the command.
  assertEquals(code, stdout === "" ? 2 : 1, stdout + stderr);
  assertMatch(`${stdout}${stderr}`.replaceAll("\\", ""), wanted);
  assertEquals(HIDDEN.test(stdout + stderr), false, stdout + stderr);
}

/** Checks that a user may connect. */
async function works(env: Environment): Promise<void> {
  const { code, stdout } = await doctor(env);
  assertEquals(code, 0, stdout);
  assertStringIncludes(stdout, '"part":"nats jetstream","state":"works"');
}

/** A server that reports an old version, or is not NATS. */
async function impostor(
  greeting: string,
): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (data) => {
      if (String(data).includes("PING\r\n")) socket.write("PONG\r\n");
    });
    socket.write(greeting);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { url: `nats://127.0.0.1:${port}`, server };
}

describe("The start with NATS", () => {
  let plain: TestServer;
  let guarded: TestServer;
  let simple: TestServer;
  const all: TestServer[] = [];
  const start = async (...args: Parameters<typeof TestServer.start>): Promise<TestServer> => {
    const server = await TestServer.start(...args);
    all.push(server);
    return server;
  };
  beforeAll(async () => {
    if (missing !== undefined) return;
    [plain, guarded, simple] = await Promise.all([
      start(),
      start({ lines: 'authorization { users: [{ user: "ann", password: "sesame1" }] }' }),
      start({ config: "" }),
    ]);
  });
  afterAll(async () => {
    Date.now = NOW;
    await Promise.all(all.map((server) => server.stop()));
  });

  withServer("names a server that does not respond, and its missing features", async () => {
    const info = { server_id: "X", version: "2.8.4", proto: 1, headers: true, jetstream: true };
    const old = await impostor(`INFO ${JSON.stringify({ ...info, max_payload: 1_048_576 })}\r\n`);
    try {
      await check([
        { PLUE_NATS: "nats://127.0.0.1:1" },
        /no NATS server answers at nats:\/\/127\.0\.0\.1:1 \(connection refused\)/,
      ]);
      await check([{ PLUE_NATS: simple.url }, /the server has no JetStream: start it with "-js"/]);
      await check([
        { PLUE_NATS: old.url },
        /the server is NATS 2\.8\.4, but 2\.9 or later is required/,
      ]);
    } finally {
      old.server.close();
    }
  });

  withServer("describes an invalid user", async () => {
    const token = await start({ lines: 'authorization { token: "sesame3" }' });
    const user = (one: string, { url }: TestServer) => ({
      PLUE_NATS: url.replace("//", `//${one}@`),
    });
    await check([
      { PLUE_NATS: guarded.url },
      /NATS at nats:\S+ requires a user: .* PLUE_NATS_CREDS/,
    ]);
    await check([
      user("ann:sesame2", guarded),
      /NATS at nats:\S+ rejects the user or the token in its URL/,
    ]);
    await check([
      user("sesame4", token),
      /NATS at nats:\S+ rejects the user or the token in its URL/,
    ]);
    await works(user("ann:sesame1", guarded));
    await works(user("sesame3", token));
  });

  withServer("describes an invalid file of credentials", async () => {
    const { lines, files: creds } = decentralised();
    const keys = withKeys();
    const [jwts, seeds] = await Promise.all([start({ lines }), start({ lines: keys.lines })]);
    const file = async (text: string, { url }: TestServer) => ({
      PLUE_NATS: url,
      PLUE_NATS_CREDS: await files.write("user.creds", text),
    });
    const refused = /NATS at nats:\S+ rejects the credentials in PLUE_NATS_CREDS/;
    await check([await file(creds.wrongSeed, jwts), /user\.creds", and cannot be used: nkeys: /]);
    for (const text of [creds.expired, creds.otherSeed, creds.otherAccount]) {
      await check([await file(text, jwts), refused]);
    }
    await check([await file(keys.other, seeds), refused]);
    await works(await file(creds.right, jwts));
    await works(await file(`${keys.right}\n`, seeds));
  });

  withTls("describes an invalid TLS configuration, and uses TLS", async () => {
    const right = certificates(files.path, "IP:127.0.0.1,DNS:localhost");
    const other = certificates(files.path, "DNS:other.example");
    const [server, foreign] = await Promise.all([start(right), start(other)]);
    const tls = ({ url }: TestServer) => url.replace("nats:", "tls:");
    await check([{ PLUE_NATS: tls(plain) }, /no TLS with NATS at tls:/]);
    const untrusted = /the certificate of NATS at \S+ is not trusted; .* NODE_EXTRA_CA_CERTS/;
    for (const url of [server.url, tls(server)]) await check([{ PLUE_NATS: url }, untrusted]);

    // The file is read when a process starts.
    const run = (words: readonly string[], url: string, { ca }: { readonly ca: string }) =>
      startProgram(process.execPath, [...PLUE, ...words], {
        ...{ ...options.env, PLUE_NATS: url, NODE_EXTRA_CA_CERTS: ca },
      });
    await using refused = run(["serve", "--no-watch"], tls(foreign), other);
    assertEquals((await refused.ended).code, 2);
    assertMatch(
      refused.output.stderr,
      /^Cannot serve: the certificate of NATS at \S+ is for another host/,
    );
    await using taken = run(["doctor", "--json", "--nats", tls(server)], tls(server), right);
    assertEquals((await taken.ended).code, 0, taken.output.stdout);
  });

  withServer("does not start with a wrong clock", async () => {
    const served = await serveTools(new ToolRegistry(), await plain.connect(), { secret: SECRET });
    const connection = await plain.connect();
    const using = { registry: new ToolRegistry(), secret: SECRET };
    for (const [skewMs, where] of [[60_000, "ahead of"], [-60_000, "behind"]] as const) {
      const wanted = new RegExp(
        `the clock of this machine is (60|59|61)\\.\\d s ${where} that of the server`,
      );
      Date.now = () => NOW() + skewMs;
      try {
        for (
          const begin of [
            () => remoteTools(connection, using),
            () => serveTools(new ToolRegistry(), connection, { secret: SECRET }),
          ]
        ) {
          const { message } = await assertRejects(begin, Error);
          assertMatch(message, wanted);
        }
        await check([
          { PLUE_NATS: plain.url },
          new RegExp(`clock.* 60\\.0 s ${where}|${wanted.source}`),
        ]);
      } finally {
        Date.now = NOW;
      }
    }
    await served.close();
  });

  withServer("reports while it serves that the connection is lost, and restored", async () => {
    const own = await start();
    await using program = startProgram(
      process.execPath,
      [...PLUE, "serve", "--no-watch", "--port", "0"],
      { ...options.env, PLUE_NATS: own.url },
    );
    await program.printed(/mcpServers/);
    await own.kill();
    await program.printed(/The connection to NATS at nats:\S+ is lost; calls are unavailable/);
    await own.start();
    await program.printed(/The connection to NATS at nats:\S+ is open again/);
  });
});
