/**
 * The conformance tools as a worker.
 *
 * @module
 */

import { app } from "./app.ts";

export default app;
