import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { bearerCheck } from "./bearer.ts";

describe("bearerCheck()", () => {
  const check = bearerCheck("s3cret");
  const ask = (authorization?: string) =>
    check(
      new Request("http://localhost/", {
        headers: authorization === undefined ? {} : { authorization },
      }),
    );

  it("takes the token, whatever the case of the scheme", () => {
    assertEquals([ask("Bearer s3cret"), ask("bearer s3cret")], [true, true]);
  });

  it("refuses everything else", () => {
    for (const header of [undefined, "", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cret2"]) {
      assertEquals(ask(header), false);
    }
    for (const header of ["Basic s3cret", "s3cret", "Bearer S3CRET", "Bearer s3cret, Bearer x"]) {
      assertEquals(ask(header), false);
    }
  });
});
