import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { createGuard } from "../../../src/adapters/http/mod.ts";

describe("createGuard()", () => {
  it("judges each host by itself, whichever came before", () => {
    const guard = createGuard({});
    const codeOf = (url: string): string | undefined => guard(new Request(url))?.code;
    const hosts = ["localhost", "localhost.example", "localhost:8080", "localhostile", "127.0.0.1"];
    for (let round = 0; round < 2; round++) {
      assertEquals(hosts.map((host) => codeOf(`http://${host}/tools`)), [
        undefined,
        "forbidden_host",
        undefined,
        "forbidden_host",
        undefined,
      ]);
    }
  });

  it("compares the origin with the requested host", () => {
    const guard = createGuard({});
    const codeOf = (url: string, origin: string): string | undefined =>
      guard(new Request(url, { headers: { origin } }))?.code;
    assertEquals(codeOf("http://localhost:1/", "http://localhost:1"), undefined);
    assertEquals(codeOf("http://localhost:12/", "http://localhost:1"), "forbidden_origin");
    assertEquals(codeOf("http://localhost:1/", "http://localhost:12"), "forbidden_origin");
  });

  it("rejects a request with two hosts", () => {
    // The form in which workerd combines two headers; no program can send such a request.
    const request = { url: "http://localhost, evil.example/tools", headers: new Headers() };
    for (const allowedHosts of [["localhost"], "any"] as const) {
      const problem = createGuard({ allowedHosts })(request as Request);
      assertEquals([problem?.status, problem?.code], [400, "bad_request"]);
    }
  });
});
