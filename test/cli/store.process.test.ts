import { describe, it } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { missing, useServer } from "../adapters/postgres/server.ts";
import { RedisServer, withServer as withRedis } from "../adapters/redis/server.ts";
import { maybe } from "../support/skip.ts";
import { plue, rejects } from "./support.ts";

const folder = mkdtempSync(join(tmpdir(), "plue-store-"));
const SQLITE = `sqlite:${join(folder, "calls.db")}`;

describe("plue store init, and plue doctor --store", () => {
  const server = useServer();
  const withServer = maybe(missing === undefined, missing ?? "");

  /** Checks that the doctor reports a working store. */
  const works = async (url: string, name: string) => {
    const { code, stdout } = await plue(["doctor", "--store", url]);
    assertEquals(code, 0, stdout);
    assertStringIncludes(stdout, `${name}: an entry was written, read and deleted`);
  };

  it("check a file of SQLite", async () => {
    const { code, stdout } = await plue(["store", "init", "--store", SQLITE]);
    assertEquals([code, stdout], [0, "The store in SQLite is ready\n"]);
    const checked = await plue(["doctor", "--json"], { env: { PLUE_STORE: SQLITE } });
    const rows = JSON.parse(checked.stdout) as readonly { part: string; detail: string }[];
    const { detail = "" } = rows.find(({ part }) => part === "store") ?? {};
    assertMatch(detail, /^SQLite: an entry was written, read and deleted in [\d.]+ ms$/);
    rmSync(folder, { recursive: true });
    const missing = await plue(["doctor", "--store", SQLITE]);
    assertStringIncludes(missing.stdout, `run "plue store init --store ${SQLITE}" to create it`);
  });

  withServer("create and check the tables of PostgreSQL", async () => {
    const { url } = server();
    const before = await plue(["doctor", "--store", url]);
    assertEquals(before.code, 1);
    assertStringIncludes(before.stdout, "the tables do not exist");
    const { stdout } = await plue(["store", "init", "--store", url, "--json"]);
    assertEquals(stdout, '{"store":"PostgreSQL"}\n');
    await works(url, "PostgreSQL");
  });

  withRedis("check a server of Redis", async () => {
    await using redis = await RedisServer.start();
    const url = `redis://127.0.0.1:${redis.port}`;
    const { stdout } = await plue(["store", "init", "--store", url]);
    assertEquals(stdout, "The store in Redis is ready\n");
    await works(url, "Redis");
    await using lossy = await RedisServer.start(["--appendonly", "no"]);
    const refused = await plue(["doctor", "--store", `redis://127.0.0.1:${lossy.port}`]);
    assertEquals(refused.code, 1);
    assertStringIncludes(refused.stdout, "the server would lose confirmed writes when it ends");
  });

  it("explain an invalid address, without its password", async () => {
    for (
      const [store, message] of [
        ["mysql://root@host/db", "--store must be sqlite:<path>"],
        ["sqlite:", "--store must be sqlite:<path>"],
        ["sqlite:/no/such/folder/calls.db", "calls.db does not exist"],
        ["postgres://ann:secret-word@127.0.0.1:1/plue", "the server cannot be reached"],
        ["redis://ann:secret-word@127.0.0.1:1", "ECONNREFUSED"],
        ["redis://ann:secret-word@:x", "--store must be sqlite:<path>"],
      ] as const
    ) {
      const { code, stdout, stderr } = await plue(["doctor", "--store", store]);
      assertStringIncludes(stdout + stderr, message);
      assert(code !== 0 && !(stdout + stderr).includes("secret-word"));
    }
    await rejects(["store", "init"], "set --store or PLUE_STORE");
  });
});
