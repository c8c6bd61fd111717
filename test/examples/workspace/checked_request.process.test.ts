import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { isPublicAddress } from "../../../examples/workspace/checked_request.ts";
import data from "./checked_request.json" with { type: "json" };

describe("isPublicAddress()", () => {
  for (const address of data.public) {
    it(`accepts ${address}`, () => assertEquals(isPublicAddress(address), true));
  }

  for (const address of data.private) {
    it(`rejects ${JSON.stringify(address)}`, () => assertEquals(isPublicAddress(address), false));
  }
});
