/**
 * `bun:test` for Deno, on `Deno.test`. Deno's own `node:test` is not used: after the first
 * registered test, it ignores an error that a test file throws while it is loaded, and the
 * unregistered tests are lost silently.
 */

import {
  type Case,
  isSuite,
  root,
  runCase,
  type Suite,
  type TestFunctions,
  testFunctions,
} from "./suite_tree.ts";

interface Definition {
  readonly name: string;
  readonly ignore: boolean;
  readonly fn: (context: Context) => Promise<void>;
  readonly sanitizeOps: boolean;
  readonly sanitizeResources: boolean;
  readonly sanitizeExit: boolean;
}

type Context = { step(definition: Definition): Promise<boolean> };

declare const Deno: { test(definition: Definition): void };

/** The other runtimes have no such checks, so a test may leave a timer behind. */
const SANITIZERS = { sanitizeOps: false, sanitizeResources: false, sanitizeExit: true };

async function runSuite(suite: Suite, context: Context): Promise<void> {
  for (const hook of suite.hooks.beforeAll) await hook();
  for (const child of suite.children) await context.step(definitionOf(child, suite));
  for (const hook of suite.hooks.afterAll) await hook();
}

function definitionOf(child: Suite | Case, parent: Suite): Definition {
  if (isSuite(child)) {
    return {
      name: child.name,
      ignore: false,
      fn: (context) => runSuite(child, context),
      ...SANITIZERS,
    };
  }
  const { name, run } = child;
  return {
    name,
    ignore: run === undefined,
    fn: () => run === undefined ? Promise.resolve() : runCase(run, parent),
    ...SANITIZERS,
  };
}

const functions: TestFunctions = testFunctions((child) => Deno.test(definitionOf(child, root)));
export const { test, describe, beforeAll, afterAll, beforeEach, afterEach } = functions;
export { test as it };
