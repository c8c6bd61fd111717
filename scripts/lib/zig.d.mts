export function findZig(): {
  readonly env?: { readonly [name: string]: string };
  readonly missing?: string;
};
