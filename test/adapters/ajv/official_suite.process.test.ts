import { ajvEngine } from "../../../src/adapters/ajv/mod.ts";
import { describeOfficialSuite } from "../../contract/official_suite.ts";

describeOfficialSuite("ajvEngine()", (formats) => ajvEngine({ formats }));
