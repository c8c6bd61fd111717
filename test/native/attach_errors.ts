/** Calls `attachNative` with invalid arguments, and prints each error message on a line. */

import process from "node:process";
import { pathToFileURL } from "node:url";
import { attachNative, type AttachNativeOptions } from "../../src/adapters/native/mod.ts";
import { findKoffi } from "./suite_library.ts";
import { registry } from "./tools.ts";

const [path = ""] = process.argv.slice(2);

async function printError(options: object): Promise<void> {
  const koffi = findKoffi();
  // The types exclude some of these calls.
  const wrong = { library: path, koffi, ...options } as AttachNativeOptions;
  try {
    await attachNative(registry, wrong);
    console.log("nothing was thrown");
  } catch (error) {
    console.log(String(error).split("\n")[0]);
  }
}

await printError({ wake: "pigeon" });
await printError({ dispatcher: {} });
await printError({ library: "/nowhere/libplue.so" });
const attachment = await attachNative(registry, { library: path, koffi: findKoffi() });
await printError({});
await printError({ library: new URL("https://example.com/libplue.so") });
await attachment.detach();
// Here the library is a URL, and the end of the block detaches the runtime.
{
  await using _again = await attachNative(registry, {
    library: pathToFileURL(path),
    koffi: findKoffi(),
  });
}
console.log("attached again");
// Only this attachment could keep the process running, and it must not.
await attachNative(registry, { library: path, koffi: findKoffi(), keepAlive: false });
console.log("at the end");
