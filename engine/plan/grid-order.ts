import { CounterRandom, randomOrder } from '../random.ts';
import type { Turns, Work } from './stages.ts';

export interface GridBlock {
  readonly row: number;
  readonly column: number;
}

/**
 * The blocks of an i x j grid in waves. No two blocks of a wave share a band of rows or a band of columns,
 * and every block is in exactly one wave (cuMF_SGD, Figure 8). There are max(i, j) waves of min(i, j) blocks
 * each. The order in which rows visit columns is a Latin square: cyclic, with rows, columns and waves
 * permuted at random.
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

/**
 * Returns the grid rows that visit a column during a round with the order `turns`, in the order of their
 * visits.
 *
 * Columns form groups, one for each row of the grid: column c is in group c mod rows. A round has one step
 * for each group, and in each step every row is at a different group. The group at which a row starts is
 * drawn for each round; if a row always started where it had ended, it would visit the same blocks twice in a
 * row. With `stays`, rows do start where they ended, and no column is moved between two rounds.
 *
 *     2 rows     A B / B A     or     B A / A B
 */
export function turnsOf(rows: number, column: number, turns: Turns, round: number): number[] {
  const group = column % rows;
  const first = turnStart(rows, turns, round);
  return turnSteps(rows, turns, round).map((step) => (group + 2 * rows - first - step) % rows);
}

/**
 * The order of a round's steps. In step k each row visits the k-th group after its first group. Step 0 is
 * always first.
 */
function turnSteps(rows: number, { seed, stays }: Turns, round: number): number[] {
  if (stays) return Array.from({ length: rows }, (_, step) => step);
  return [
    0,
    ...Array.from(
      randomOrder(rows - 1, new CounterRandom(seed, ORDER_STREAM).derive(round).derive(0)),
      (step) => step + 1,
    ),
  ];
}

function turnStart(rows: number, { seed, stays }: Turns, round: number): number {
  // The last group of a row is the one before its first group, so with `stays` the first group moves back by
  // one in each round.
  if (stays) return (rows - (round % rows)) % rows;
  return new CounterRandom(seed, ORDER_STREAM).derive(round).below(0, rows);
}

function turnBlocks(rows: number, columns: number, turns: Turns, round: number): GridBlock[] {
  const random = new CounterRandom(turns.seed, ORDER_STREAM).derive(round);
  const groups = Array.from({ length: rows }, (_, group) => {
    const size = Math.max(0, Math.ceil((columns - group) / rows));
    return Array.from(randomOrder(size, random.derive(1 + group)), (place) => group + rows * place);
  });
  const first = turnStart(rows, turns, round);
  // All rows visit the columns of a group in the same order, so a column that is visited early is also sent
  // to the next row early.
  return turnSteps(rows, turns, round).flatMap((step) =>
    Array.from({ length: Math.ceil(columns / rows) }, (_, slot) =>
      Array.from({ length: rows }, (_, row) => ({
        row,
        column: groups[(row + first + step) % rows][slot],
      })).filter(({ column }) => column !== undefined),
    ).flat(),
  );
}

/** The blocks of a grid in the order of a stage's work; see Work. */
export function gridOrder(
  order: Extract<Work, { readonly kind: 'blocks' }>['order'],
  { rows, columns }: { readonly rows: number; readonly columns: number },
  turns: Turns,
  round: number,
): GridBlock[] {
  const { seed } = turns;
  if (order === 'latin')
    return blockWaves(rows, columns, new CounterRandom(seed, ORDER_STREAM).derive(round)).flat();
  if (order === 'turns') return turnBlocks(rows, columns, turns, round);
  if (order === 'rows')
    return Array.from({ length: rows * columns }, (_, k) => ({
      row: Math.floor(k / columns),
      column: k % columns,
    }));
  return Array.from({ length: rows * columns }, (_, k) => ({
    row: k % rows,
    column: (Math.floor(k / rows) + (k % rows)) % columns,
  }));
}
