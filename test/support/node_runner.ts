/** `bun:test` for Node: `node:test`, under Bun's names. */

export {
  after as afterAll,
  afterEach,
  before as beforeAll,
  beforeEach,
  describe,
  it,
  test,
} from "node:test";
