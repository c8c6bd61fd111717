/**
 * `bun:test` where Bun is not: `node:test`, under Bun's names. Node 24 and Deno both have it.
 *
 * @module
 */

export {
  after as afterAll,
  afterEach,
  before as beforeAll,
  beforeEach,
  describe,
  it,
  test,
} from "node:test";
