/** 0, 1, ... count - 1: for the loops of templates. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}
