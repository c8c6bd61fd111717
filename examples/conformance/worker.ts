/**
 * The conformance tools as a worker.
 *
 * @module
 */

import { answer } from "./app.ts";

export default { fetch: answer };
