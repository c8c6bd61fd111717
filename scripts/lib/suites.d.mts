export interface Run {
  readonly suite: string;
  readonly runtime: string;
  readonly files: readonly string[];
  readonly noEval?: boolean;
  readonly coverage?: boolean;
  readonly together?: boolean;
}
export function planRuns(filter?: {
  readonly only?: readonly string[] | undefined;
  readonly on?: readonly string[] | undefined;
  readonly match?: readonly string[] | undefined;
}): readonly Run[];
