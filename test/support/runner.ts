/** `bun:test` for Node and workerd. */

import { type TestFunctions, testFunctions } from "./suite_tree.ts";

const functions: TestFunctions = testFunctions();
export const { test, describe, beforeAll, afterAll, beforeEach, afterEach } = functions;
export { test as it };
