import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { describeSchemaEngine } from "../../contract/schema_engine_contract.ts";

// In workerd the first compiles, the second has to interpret, and must not trip over the first.
describeSchemaEngine("typeboxEngine()", (formats) => typeboxEngine({ formats }));
describeSchemaEngine("typeboxEngine()", (formats) => typeboxEngine({ formats }), "inside a test");
describeSchemaEngine(
  "typeboxEngine({ codeGeneration: false })",
  (formats) => typeboxEngine({ formats, codeGeneration: false }),
);
