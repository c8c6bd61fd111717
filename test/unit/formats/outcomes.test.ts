import { describeOutcomes } from "./outcomes.ts";
import calls from "./cases/calls.json" with { type: "json" };
import exports from "./cases/exports.json" with { type: "json" };
import results from "./cases/results.json" with { type: "json" };

describeOutcomes("exports", exports);
describeOutcomes("calls", calls);
describeOutcomes("results", results);
