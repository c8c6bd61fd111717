/** The callers of the soak. */
export const CALLERS: readonly string[] = Array.from(
  { length: 20 },
  (_, index) => `caller-${index}`,
);

/** The token that a caller presents. */
export const tokenOf = (principal: string): string => `a-token-of-the-soak-for-${principal}`;
