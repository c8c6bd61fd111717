/** Documents for importers, made of the words that importers search for. */

import fc from "fast-check";

/** Words of tool lists and of OpenAPI. */
export const documentWord: fc.Arbitrary<string> = fc.constantFrom(
  ...("tools functions function toolSpec name type object inputSchema input_schema " +
    "parameters functionDeclarations OBJECT openapi 3.1.0 3.0.0 paths /a/{b} get $ref " +
    "#/paths/~1a # schema in query path content application/json requestBody responses " +
    "200 allOf properties items namespace __proto__ toString nullable enum json").split(" "),
);

/** JSON of those words. */
export const documentPart: fc.Arbitrary<unknown> = fc.letrec<{ any: unknown }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 5 },
    documentWord,
    fc.constantFrom<unknown>(null, true, 0, -1.5, "", {}, []),
    fc.array(tie("any"), { maxLength: 4 }),
    fc.dictionary(documentWord, tie("any"), { maxKeys: 5 }),
  ),
})).any;
