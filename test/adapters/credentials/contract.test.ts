/** The layer of credentials through the contract of layers. */

import { credentials, fromContext } from "@plue/tools/credentials";
import { describeLayer, ran, stopped } from "../../contract/layer_contract.ts";
import { broken, never } from "../../unit/execute/support.ts";

const source = fromContext(() => "a token");
const tool = { credentials: { hub: {} } };

describeLayer(
  "credentials",
  () => ({ layers: [credentials(fromContext(() => "token-1"))], tool }),
  [
    stopped("denies a call without a credential", "denied", {
      layers: [credentials(fromContext(() => undefined))],
      tool,
    }),
    stopped("fails a call whose source throws", "unavailable", {
      layers: [credentials(fromContext(broken))],
      tool,
    }, 1),
    stopped("fails a call whose token does not fit into a header", "unavailable", {
      layers: [credentials(source)],
      tool,
    }, 1),
    stopped("fails a call whose source returns another value", "unavailable", {
      layers: [credentials({ get: () => 7 as never })],
      tool,
    }, 1),
    stopped("ends a call whose source does not return in time", "timeout", {
      layers: [credentials({ get: never })],
      tool,
    }),
    ran("runs a tool that declares no credential, without its sources", "done", {
      layers: [credentials(fromContext(broken))],
      tool: {},
    }),
  ],
);
