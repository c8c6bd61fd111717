import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import type { HttpOperation, ParameterBinding } from "../../../src/adapters/openapi/mod.ts";
import { buildRequest, type BuiltRequest } from "../../../src/adapters/openapi/build_request.ts";
import { UnsendableArgument } from "../../../src/adapters/openapi/serialize.ts";
import { aCharacter } from "../../support/arbitrary_schema.ts";
import { cases } from "../../support/laws.ts";

const SERVER = "https://api.example/v1";

function operation(...parameters: readonly ParameterBinding[]): HttpOperation {
  return { method: "GET", path: "/a/{p}/b", parameters };
}

const PATH: ParameterBinding = { key: "p", name: "p", in: "path", style: "simple", explode: false };

/** A parameter whose argument is `v`, in the default style of its location. */
function parameter(place: "query" | "header" | "cookie", name: string): ParameterBinding {
  const explode = place !== "header";
  return { key: "v", name, in: place, style: explode ? "form" : "simple", explode };
}

function build(operation: HttpOperation, args: Record<string, unknown>): BuiltRequest | undefined {
  try {
    return buildRequest(operation, SERVER, args, {});
  } catch (cause) {
    if (cause instanceof UnsendableArgument) return undefined;
    throw cause;
  }
}

/** Text with the special characters of URLs and headers. */
const text = fc.oneof(
  fc.string({ unit: aCharacter }),
  fc.string({ unit: fc.constantFrom(..."/\\.%2e?#@:&= \r\n\ta") }),
);

describe("buildRequest()", () => {
  it("encodes a path parameter in its segment, or rejects it", () => {
    fc.assert(
      fc.property(text, (value) => {
        const request = build(operation(PATH), { p: value });
        if (request === undefined) {
          assertEquals(
            value === "" || value === "." || value === ".." || !value.isWellFormed(),
            true,
          );
          return;
        }
        const url = new URL(request.url);
        assertEquals(url.origin, "https://api.example");
        assertEquals([url.search, url.hash, url.username], ["", "", ""]);
        const segments = url.pathname.split("/");
        assertEquals([segments.length, segments[1], segments[2], segments[4]], [5, "v1", "a", "b"]);
        assertEquals(decodeURIComponent(segments[3] ?? ""), value);
      }),
      cases(1_000, 1),
    );
  });

  it("writes a query parameter as exactly one parameter", () => {
    fc.assert(
      fc.property(text, text, fc.boolean(), (name, value, allowReserved) => {
        fc.pre(name !== "" && name.isWellFormed() && value.isWellFormed());
        const query = { ...parameter("query", name), allowReserved };
        const request = build(operation(PATH, query), { p: "x", v: value });
        const url = new URL(request?.url ?? "");
        assertEquals([...url.searchParams], [[name, value]]);
        assertEquals([url.pathname, url.hash], ["/v1/a/x/b", ""]);
      }),
      cases(1_000, 2),
    );
  });

  it("writes a header as exactly one line", () => {
    const header = parameter("header", "X-H");
    fc.assert(
      fc.property(fc.oneof(text, fc.array(text), fc.dictionary(text, text)), (value) => {
        const sent = build(operation(PATH, header), { p: "x", v: value })?.headers["x-h"];
        assertEquals(/[^\t\x20-\x7e]/.test(sent ?? ""), false);
      }),
      cases(1_000, 3),
    );
  });

  it("writes a cookie as exactly one cookie", () => {
    const cookie = parameter("cookie", "c");
    fc.assert(
      fc.property(text, (value) => {
        const sent = build(operation(PATH, cookie), { p: "x", v: value })?.headers["cookie"];
        assertEquals(/[;,\s]/.test(sent ?? ""), false);
      }),
      cases(500, 4),
    );
  });
});
