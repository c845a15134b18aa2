/** Partitions of every layout, for the tests of tasks. */
import { equationsOfRow } from '../../../cpu/reference/normal-equations.ts';
import { type Partition, sharedArray } from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { equationColumns } from '../../../operators/tasks/equation-tasks.ts';
import { missingColumns, ratingBlock, rowOf } from '../../cpu/scope.ts';

export const [ROWS, COLUMNS, RANK] = [12, 20, 9];
const lengths = [0, 1, 2, 3, 4, 5, 6, 0, 20, 9, 1, 7];

export function matrix(rows: number, seed: number): Partition {
  const values = sharedArray(Float32Array, rows * RANK);
  const random = new CounterRandom(seed);
  for (let i = 0; i < values.length; i++) values[i] = 2 * random.uniform(i) - 1;
  return { layout: 'factors', rows, columns: { values } };
}

export const zeros = (rows: number, columns: number): Partition => ({
  layout: 'factors',
  rows,
  columns: { values: sharedArray(Float32Array, rows * columns) },
});

export const block = ratingBlock(lengths, COLUMNS, 2);

/** `block`, by columns. */
export const transposed = transposeOf(block);

function transposeOf({ columns }: Partition): Partition {
  const { offsets, indices } = columns as { offsets: Int32Array; indices: Uint32Array };
  const rows = Array.from({ length: COLUMNS }, (): number[] => []);
  for (let row = 0; row < ROWS; row++)
    for (let k = offsets[row]; k < offsets[row + 1]; k++) rows[indices[k]].push(row);
  let sum = 0;
  return {
    layout: 'rating-block',
    rows: COLUMNS,
    columns: {
      offsets: Int32Array.from([0, ...rows.map(({ length }) => (sum += length))]),
      indices: Uint32Array.from(rows.flat()),
      values: new Float32Array(0),
    },
  };
}

/** The first column that is not in the row of `block`. */
export const listed = missingColumns(block, COLUMNS);

export const whole = { from: 0, to: ROWS };
export const [x, theta] = [matrix(ROWS, 1), matrix(COLUMNS, 2)];
export const equations = equationsOf(block);
export const gram = matrix(16, 4);
for (let i = 0; i < 9; i++) for (let j = 0; j < 9; j++) gram.columns.values[9 * i + j] = i === j ? 5 : 0.1;

export const shifts: Partition = {
  layout: 'row-shifts',
  rows: ROWS,
  columns: { values: sharedArray(Float32Array, ROWS).fill(0.3) },
};

export const ids = {
  type: 'int32',
  values: Int32Array.from({ length: 30 }, (_, i) => (7 * i) % 11),
} as const;

export const codes: Partition = {
  layout: 'coded-pairs',
  rows: 30,
  columns: { users: Uint32Array.from(ids.values), items: Uint32Array.from(ids.values) },
};

export const bands: Partition = {
  layout: 'row-bands',
  rows: COLUMNS,
  columns: {
    placeOf: Uint32Array.from({ length: COLUMNS }, (_, i) => 16 * (i % 2) + (i >> 1)),
    partOf: Uint16Array.from({ length: COLUMNS }, (_, i) => i % 2),
    firstRow: Int32Array.of(0, 10, 20),
  },
};

export const hashes: Partition = {
  layout: 'key-hashes',
  rows: ROWS,
  columns: { low: Uint32Array.from({ length: ROWS }, (_, i) => i), high: new Uint32Array(ROWS) },
};

export const pairs: Partition = {
  layout: 'pairs',
  rows: 40,
  columns: {
    rows: Uint32Array.from({ length: 40 }, (_, k) => (7 * k) % ROWS),
    columns: Uint32Array.from({ length: 40 }, (_, k) => (11 * k) % COLUMNS),
  },
};

export function equationsOf(ratings: Partition): Partition {
  const columns = equationColumns(RANK, false);
  const values = sharedArray(Float32Array, ROWS * columns);
  lengths.forEach((_, row) =>
    values.set(
      equationsOfRow(theta.columns.values as Float32Array, RANK, RANK, rowOf(ratings, row)),
      row * columns,
    ),
  );
  return { layout: 'factors', rows: ROWS, columns: { values } };
}

export function map(numbers: readonly number[]): Partition {
  return { layout: 'map', rows: numbers.length, columns: { map: Uint32Array.from(numbers) } };
}
