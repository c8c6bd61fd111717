/**
 * The tests of the official suite in which plue's verdict differs: `folder/file: group: test`. The
 * suite's test fails if a listed verdict no longer differs, so the list stays correct.
 *
 * Referenced documents are first inserted into a schema, because nothing is fetched.
 */

/** By design, with every engine: `checkSchema` rejects these schemas. */
const REFUSED: readonly string[] = [
  // A document's URI on the server differs from its `$id`, which a compound document uses.
  "draft2020-12/refRemote.json: remote HTTP ref with different $id: number is invalid",
  "draft2020-12/refRemote.json: remote HTTP ref with different $id: string is valid",
  "draft2020-12/refRemote.json: remote HTTP ref with different URN $id: number is invalid",
  "draft2020-12/refRemote.json: remote HTTP ref with different URN $id: string is valid",
  // A custom `$schema`. plue supports draft-07 and 2020-12 only.
  "draft2020-12/vocabulary.json: ignore unrecognized optional vocabulary: number value",
  "draft2020-12/vocabulary.json: ignore unrecognized optional vocabulary: string value",
  "draft2020-12/vocabulary.json: schema that uses custom metaschema with with no validation vocabulary: applicator vocabulary still works",
  "draft2020-12/vocabulary.json: schema that uses custom metaschema with with no validation vocabulary: no validation: invalid number, but it still validates",
  "draft2020-12/vocabulary.json: schema that uses custom metaschema with with no validation vocabulary: no validation: valid number",
];

/** TypeBox's formats, which both engines use. */
const FORMATS: readonly string[] = [
  "draft2020-12/optional/format/iri.json: validation of IRIs: an IPvFuture host with an uppercase version letter is valid",
  "draft7/optional/format/iri.json: validation of IRIs: an IPvFuture host with an uppercase version letter is valid",
];

const AJV: readonly string[] = [
  // Ajv counts the items that `contains` or a lone `if` has evaluated differently.
  "draft2020-12/unevaluatedItems.json: unevaluatedItems and contains interact to control item dependency relationship: only a's and c's are invalid",
  "draft2020-12/unevaluatedItems.json: unevaluatedItems and contains interact to control item dependency relationship: only b's and c's are invalid",
  "draft2020-12/unevaluatedItems.json: unevaluatedItems and contains interact to control item dependency relationship: only b's are invalid",
  "draft2020-12/unevaluatedItems.json: unevaluatedItems and contains interact to control item dependency relationship: only c's are invalid",
  "draft2020-12/unevaluatedItems.json: unevaluatedItems can see annotations from if without then and else: valid in case if is evaluated",
  "draft2020-12/unevaluatedItems.json: unevaluatedItems depends on adjacent contains: contains passes, second item is not evaluated",
  "draft2020-12/unevaluatedItems.json: unevaluatedItems depends on multiple nested contains: 7 not evaluated, fails unevaluatedItems",
  "draft2020-12/unevaluatedItems.json: unevaluatedItems with minContains = 0: all items evaluated by contains",
  "draft2020-12/unevaluatedItems.json: unevaluatedItems with nested items: with invalid additional item",
  "draft2020-12/unevaluatedItems.json: unevaluatedItems with nested items: with no additional items",
  "draft2020-12/unevaluatedProperties.json: unevaluatedProperties can see annotations from if without then and else: valid in case if is evaluated",
  "draft2020-12/unevaluatedProperties.json: unevaluatedProperties with if/then/else, then not defined: when if is false and has unevaluated properties",
  "draft2020-12/unevaluatedProperties.json: unevaluatedProperties with if/then/else, then not defined: when if is true and has no unevaluated properties",
];

/** The known differences of each engine, by its name. */
export const KNOWN_DIFFERENCES: ReadonlyMap<string, readonly string[]> = new Map([
  ["typebox", [...REFUSED, ...FORMATS]],
  ["ajv", [...REFUSED, ...FORMATS, ...AJV]],
]);
