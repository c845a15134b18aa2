/**
 * Positions of the rows that start a new group: for each group from number `before` on, its first row. Groups
 * are numbered in order of first occurrence.
 */
export function newGroups(codes: Uint32Array, before: number, groups: number): Uint32Array {
  const positions = new Uint32Array(groups - before);
  for (let i = 0, next = before; next < groups; i++) if (codes[i] === next) positions[next++ - before] = i;
  return positions;
}
