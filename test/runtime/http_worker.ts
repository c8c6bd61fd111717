/** The watched app as a worker. */

import { createWatchedApp } from "./http_app.ts";

export default createWatchedApp();
