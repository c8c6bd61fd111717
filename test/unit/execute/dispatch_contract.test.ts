import { describeDispatch } from "../../contract/dispatch_contract.ts";

describeDispatch(
  "This process",
  (registry) => Promise.resolve({ registry, close: () => registry.dispose() }),
);
