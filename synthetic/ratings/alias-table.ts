import { sharedArray } from '../../engine/partition.ts';

/**
 * Draws from a fixed discrete distribution with one look-up (A. J. Walker 1977; constructed as by M. D. Vose,
 * 1991). The high part of a 32-bit number picks slot i; another number is compared with the slot's threshold:
 * below gives i, else its alias.
 */
export interface AliasTable {
  readonly size: number;
  /** P(stay in slot) * 2^32, rounded. A full slot is its own alias. */
  readonly threshold: Uint32Array;
  readonly alias: Uint32Array;
}

export function buildAliasTable(weights: Float64Array): AliasTable {
  const size = weights.length;
  let sum = 0;
  for (let i = 0; i < size; i++) sum += weights[i];
  const threshold = sharedArray(Uint32Array, size).fill(0xffff_ffff);
  const alias = sharedArray(Uint32Array, size);
  for (let i = 0; i < size; i++) alias[i] = i;
  const share = Float64Array.from(weights, (weight) => (weight / sum) * size);
  // Slots below the average are stacked at the front of `stack`, the others at its end.
  const stack = new Uint32Array(size);
  let below = 0;
  let above = size;
  for (let i = 0; i < size; i++) {
    if (share[i] < 1) stack[below++] = i;
    else stack[--above] = i;
  }
  while (below > 0 && above < size) {
    const poor = stack[--below];
    const rich = stack[above];
    threshold[poor] = Math.min(0xffff_ffff, Math.floor(share[poor] * 2 ** 32));
    alias[poor] = rich;
    share[rich] -= 1 - share[poor];
    if (share[rich] < 1) {
      above++;
      stack[below++] = rich;
    }
  }
  return { size, threshold, alias };
}

/** The slot or its alias for two independent uniform 32-bit numbers. */
export function drawAlias(table: AliasTable, pick: number, stay: number): number {
  const slot = Math.floor((pick >>> 0) * (table.size / 2 ** 32));
  return stay >>> 0 < table.threshold[slot] ? slot : table.alias[slot];
}
