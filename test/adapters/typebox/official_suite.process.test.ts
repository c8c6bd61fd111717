import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { describeOfficialSuite } from "../../contract/official_suite.ts";

describeOfficialSuite("typeboxEngine()", (formats) => typeboxEngine({ formats }));
describeOfficialSuite(
  "typeboxEngine(), interpreted,",
  (formats) => typeboxEngine({ formats, codeGeneration: false }),
);
