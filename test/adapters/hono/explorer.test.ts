import { assertEquals, assertStringIncludes } from "@std/assert";
import { explorer } from "@plue/tools/explorer";
import { describe, it } from "bun:test";
import { BASE, handler, problemOf } from "./support.ts";

describe("GET / with explorer", () => {
  it("serves the page, whose policy names its script and style and no other source", async () => {
    const response = await handler({ explorer }).request(`${BASE}/`);
    assertEquals(response.status, 200);
    assertEquals(response.headers.get("content-type"), "text/html; charset=utf-8");
    assertEquals(await response.text(), explorer.html);
    const policy = response.headers.get("content-security-policy") ?? "";
    assertStringIncludes(policy, "default-src 'none'");
    assertEquals(/unsafe|\*|https?:/.test(policy), false);
    for (const element of ["script", "style"]) {
      const [, own = ""] = explorer.html.split(new RegExp(`<${element}[^>]*>|</${element}>`));
      const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(own));
      const digest = btoa(String.fromCharCode(...new Uint8Array(bytes)));
      assertStringIncludes(policy, `${element}-src 'sha256-${digest}'`);
    }
  });

  it("answers HEAD, and 304 to a client whose copy is current", async () => {
    const app = handler({ explorer });
    const head = await app.request(`${BASE}/`, { method: "HEAD" });
    const { byteLength } = new TextEncoder().encode(explorer.html);
    assertEquals([head.status, head.headers.get("content-length")], [200, String(byteLength)]);
    const etag = head.headers.get("etag") ?? "";
    const again = await app.request(`${BASE}/`, { headers: { "if-none-match": etag } });
    assertEquals([again.status, again.headers.has("content-security-policy")], [304, true]);
    assertEquals((await app.request(`${BASE}/`, { method: "POST" })).status, 405);
  });

  it("checks the host, and does not authorize the caller", async () => {
    const app = handler({ explorer, authorize: () => new Response(null, { status: 401 }) });
    assertEquals((await app.request(`${BASE}/`)).status, 200);
    assertEquals((await app.request(`${BASE}/tools`)).status, 401);
    assertEquals((await app.request("http://rebound.example/")).status, 421);
  });

  it("is missing without the option", async () => {
    assertEquals((await problemOf(await handler().request(`${BASE}/`))).code, "not_found");
  });
});
