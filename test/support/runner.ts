/** `bun:test` for Node and workerd. */

import { type TestFunctions, testFunctions } from "./suite_tree.ts";

const functions = testFunctions();
export const test: TestFunctions["test"] = functions.test;
export const it: TestFunctions["test"] = functions.test;
export const describe: TestFunctions["describe"] = functions.describe;
export const beforeAll: TestFunctions["beforeAll"] = functions.beforeAll;
export const afterAll: TestFunctions["afterAll"] = functions.afterAll;
export const beforeEach: TestFunctions["beforeEach"] = functions.beforeEach;
export const afterEach: TestFunctions["afterEach"] = functions.afterEach;
