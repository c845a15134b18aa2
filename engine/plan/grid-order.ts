import { CounterRandom, randomOrder } from '../random.ts';
import type { Work } from './stages.ts';

/** Block (row band, column band) of the grid. */
export interface GridBlock {
  readonly row: number;
  readonly column: number;
}

/**
 * The blocks of an i x j grid in waves: no two blocks of a wave share a row band or a column band, and every block is in
 * exactly one wave (cuMF_SGD, Figure 8). There are max(i, j) waves, with min(i, j) blocks each. The sequence of columns of each row
 * is one of a Latin square: cyclic, with rows, columns and waves permuted at random.
 *
 *     2 x 4, before permuting     wave 0: (0, 0) (1, 3)    wave 1: (0, 1) (1, 0)    wave 2: (0, 2) (1, 1)    wave 3: (0, 3) (1, 2)
 */
export function blockWaves(rowBands: number, columnBands: number, random: CounterRandom): GridBlock[][] {
  const waves = Math.max(rowBands, columnBands);
  const rowPlace = randomOrder(waves, random.derive(0));
  const columnAt = randomOrder(waves, random.derive(1));
  const shift = randomOrder(waves, random.derive(2));
  return Array.from(shift, (place) => {
    const wave: GridBlock[] = [];
    for (let row = 0; row < rowBands; row++) {
      const column = columnAt[(place + waves - rowPlace[row]) % waves];
      if (column < columnBands) wave.push({ row, column });
    }
    return wave;
  });
}

/** The stream of the generator that draws the order of a grid's blocks. */
const ORDER_STREAM = 0xb10c;

/** The blocks of a grid in the order of a stage's work; see Work. */
export function gridOrder(order: Extract<Work, { readonly kind: 'blocks' }>['order'], { rows, columns }: { readonly rows: number; readonly columns: number }, seed: number, round: number): GridBlock[] {
  if (order === 'latin') return blockWaves(rows, columns, new CounterRandom(seed, ORDER_STREAM).derive(round)).flat();
  if (order === 'rows') return Array.from({ length: rows * columns }, (_, k) => ({ row: Math.floor(k / columns), column: k % columns }));
  return Array.from({ length: rows * columns }, (_, k) => ({ row: k % rows, column: (Math.floor(k / rows) + (k % rows)) % columns }));
}
