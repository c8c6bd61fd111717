/**
 * The measured app as a worker.
 *
 * @module
 */

import { fetch } from "./app.ts";

export default { fetch };
