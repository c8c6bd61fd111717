/** Serves the measured app on the runtime that runs this file, and prints the address. */

import { serve } from "../../test/runtime/serve.ts";
import { fetch } from "./app.ts";

console.log((await serve(fetch)).url);
