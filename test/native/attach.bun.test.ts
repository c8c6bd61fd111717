import { assertEquals, assertStringIncludes } from "@std/assert";
import { afterEach, describe } from "bun:test";
import { attachNative, type NativeAttachment } from "../../src/adapters/native/mod.ts";
import { loadSuite } from "./suite_library.ts";
import { buildPrograms, SUITE_LIBRARY, unless } from "./support.ts";
import { dispatch, registry } from "./tools.ts";

const unbuilt = buildPrograms();
const withLibrary = unless(unbuilt);
// No suite without a library: the tests are skipped then.
const suite = unbuilt === undefined ? await loadSuite(SUITE_LIBRARY) : undefined;

/** Runs parts of the host suite on a thread of their own, against this very process. */
async function passes(parts: string): Promise<boolean> {
  suite?.start(parts);
  for (;;) {
    const status = suite?.status();
    if (status !== -1) return status === 0;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

let attachment: NativeAttachment | undefined;
afterEach(() => attachment?.detach());

describe("attachNative(), in this process", () => {
  for (const wake of ["callback", "fd"] as const) {
    withLibrary(`answers native threads that wake it by ${wake}`, async () => {
      attachment = await attachNative(registry, {
        library: SUITE_LIBRARY,
        dispatch,
        wake,
      });
      assertEquals(attachment.wake, wake);
      assertEquals(await passes("basic tools questions stress:4:200:echo stress:2:50:later"), true);
    });
  }

  withLibrary("has tools that can be called as soon as it is there", async () => {
    attachment = await attachNative(registry, {
      library: SUITE_LIBRARY,
      dispatch,
    });
    assertStringIncludes(suite?.callHere() ?? "", "would_deadlock");
    assertEquals(await passes("stress:1:1:echo"), true);
  });
});
