import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { testWorkspace } from "./testing.ts";

describe("echo", () => {
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
