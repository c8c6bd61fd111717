/** The conformance tools as a worker. */

import { app } from "./app.ts";

export default app;
