// The types of `@std/assert`, which its npm package leaves out: the functions that the tests use.

export type ErrorClass<E extends Error> = abstract new (...args: never[]) => E;

export function assert(value: unknown, message?: string): asserts value;
export function assertFalse(value: unknown, message?: string): void;
export function assertEquals<T>(actual: T, expected: T, message?: string): void;
export function assertNotEquals<T>(actual: T, expected: T, message?: string): void;
export function assertStrictEquals<T>(
  actual: unknown,
  expected: T,
  message?: string,
): asserts actual is T;
export function assertNotStrictEquals<T>(actual: T, expected: T, message?: string): void;
export function assertAlmostEquals(
  actual: number,
  expected: number,
  tolerance?: number,
  message?: string,
): void;
export function assertGreater<T>(actual: T, expected: T, message?: string): void;
export function assertGreaterOrEqual<T>(actual: T, expected: T, message?: string): void;
export function assertLess<T>(actual: T, expected: T, message?: string): void;
export function assertLessOrEqual<T>(actual: T, expected: T, message?: string): void;
export function assertStringIncludes(actual: string, expected: string, message?: string): void;
export function assertMatch(actual: string, expected: RegExp, message?: string): void;
export function assertThrows(fn: () => unknown, message?: string): unknown;
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  ErrorClass: ErrorClass<E>,
  messageIncludes?: string,
  message?: string,
): E;
export function assertRejects(fn: () => PromiseLike<unknown>, message?: string): Promise<unknown>;
export function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  ErrorClass: ErrorClass<E>,
  messageIncludes?: string,
  message?: string,
): Promise<E>;
