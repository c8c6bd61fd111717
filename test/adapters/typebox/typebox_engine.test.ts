import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { describeSchemaEngine } from "../../contract/schema_engine_contract.ts";

// In workerd the first engine generates code, and the second must interpret the schemas.
describeSchemaEngine("typeboxEngine()", (formats) => typeboxEngine({ formats }));
describeSchemaEngine("typeboxEngine()", (formats) => typeboxEngine({ formats }), "inside a test");
describeSchemaEngine(
  "typeboxEngine({ codeGeneration: false })",
  (formats) => typeboxEngine({ formats, codeGeneration: false }),
);
