/** The layer of credentials through the contract of layers. */

import { credentials, fromContext } from "@plue/tools/credentials";
import { describeLayer, ran, stopped } from "../../contract/layer_contract.ts";
import { broken, never } from "../../unit/execute/support.ts";

const tool = { credentials: { hub: {} } };
const from = (get: Parameters<typeof fromContext>[0]) => ({
  layers: [credentials(fromContext(get))],
  tool,
});

describeLayer("credentials", () => from(() => "token-1"), [
  stopped("denies a call without a credential", "denied", from(() => undefined)),
  stopped("fails a call whose source throws", "unavailable", from(broken), 1),
  stopped("fails a call whose token does not fit a header", "unavailable", from(() => "a b"), 1),
  stopped("fails a call whose source returns another value", "unavailable", {
    layers: [credentials({ get: () => 7 as never })],
    tool,
  }, 1),
  stopped("ends a call whose source does not return in time", "timeout", from(never)),
  ran("runs a tool that declares no credential, without its sources", "done", {
    ...from(broken),
    tool: {},
  }),
]);
