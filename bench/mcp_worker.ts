/** Both servers in workerd: `/plue/10`, `/sdk/1000`. */

import { type Handler, plue, sdk } from "./mcp_handlers.ts";

const MAKERS = { plue, sdk };
const handlers = new Map<string, Handler>();
for (const name of ["plue", "sdk"] as const) {
  for (const count of [10, 1_000]) handlers.set(`/${name}/${count}`, MAKERS[name](count));
}

export default {
  fetch(request: Request): Response | Promise<Response> {
    return handlers.get(new URL(request.url).pathname)?.(request) ?? new Response("ok");
  },
};
