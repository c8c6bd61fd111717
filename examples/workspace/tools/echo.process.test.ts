import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { echo } from "./echo.ts";
import { testWorkspace } from "../testing.ts";

describe("echo", () => {
  it("is described as the specification describes it, and needs no transaction", () => {
    assertEquals(
      [echo.name, echo.description, echo.requiresTransaction],
      ["echo", "Echoes back the input message (for testing)", false],
    );
  });

  it("answers what it is given", async () => {
    await using test = await testWorkspace();
    assertEquals(await test.ok("echo", { message: "häh\0😀" }), { message: "häh\0😀" });
  });

  it("refuses what is no message", async () => {
    await using test = await testWorkspace();
    for (const args of [{}, { message: 1 }, { message: "a", more: 1 }]) {
      assertEquals((await test.fails("echo", args)).code, "invalid_arguments");
    }
  });
});
