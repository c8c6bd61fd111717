/** The measured app as a worker. */

import { fetch } from "./app.ts";

export default { fetch };
