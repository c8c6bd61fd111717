// The types of `@std/assert`, which its npm package leaves out: the functions that the tests use.

// deno-lint-ignore no-explicit-any -- TypeScript wants `any` for the arguments of "any constructor".
export type AnyConstructor = new (...args: any[]) => any;
export type ErrorClass<E extends Error> = abstract new (...args: never[]) => E;

export class AssertionError extends Error {}

export function assert(value: unknown, message?: string): asserts value;
export function assertFalse(value: unknown, message?: string): void;
export function assertExists<T>(actual: T, message?: string): asserts actual is NonNullable<T>;
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
export function assertArrayIncludes<T>(
  actual: ArrayLike<T>,
  expected: ArrayLike<T>,
  message?: string,
): void;
export function assertStringIncludes(actual: string, expected: string, message?: string): void;
export function assertMatch(actual: string, expected: RegExp, message?: string): void;
export function assertNotMatch(actual: string, expected: RegExp, message?: string): void;
export function assertObjectMatch(actual: object, expected: object, message?: string): void;
export function assertInstanceOf<T extends AnyConstructor>(
  actual: unknown,
  expected: T,
  message?: string,
): asserts actual is InstanceType<T>;
export function assertNotInstanceOf<T extends AnyConstructor>(
  actual: unknown,
  unexpected: T,
  message?: string,
): void;
export function assertIsError<E extends Error = Error>(
  error: unknown,
  ErrorClass?: ErrorClass<E>,
  messageMatches?: string | RegExp,
  message?: string,
): asserts error is E;
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
export function equal(a: unknown, b: unknown): boolean;
export function fail(message?: string): never;
export function unreachable(message?: string): never;
