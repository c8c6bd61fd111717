/**
 * The formats that the handler serves, handed in: whoever does not use them does not load them.
 *
 * @module
 */

import type { decodeCalls, dispatchCalls, exportTools } from "../../formats/mod.ts";

/**
 * The functions of `@plue/tools/formats` that the handler needs. The whole module is one:
 * `import * as formats from "@plue/tools/formats"`.
 */
export interface HandlerFormats {
  readonly exportTools: typeof exportTools;
  readonly decodeCalls: typeof decodeCalls;
  readonly dispatchCalls: typeof dispatchCalls;
}
