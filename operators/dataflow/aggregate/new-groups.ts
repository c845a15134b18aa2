/** The first row of each new group from number `before` on. Groups are numbered in the order of rows. */
export function newGroups(codes: Uint32Array, before: number, groups: number): Uint32Array {
  const positions = new Uint32Array(groups - before);
  for (let i = 0, next = before; next < groups; i++) if (codes[i] === next) positions[next++ - before] = i;
  return positions;
}
