import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelCheck } from '../support/check.ts';
import { randomNumbers } from '../support/numbers.ts';
import { transposedValuesKernel, transposedValuesWorkgroups } from '../../copies/transposed-values.ts';

/** In each block, one pair of row and column has this number of ratings. */
const REPEATED = 500;

/**
 * Checks on random blocks with these numbers of rows and columns, some of them empty. Pairs of row and column
 * occur up to three times, and one pair many times.
 */
export const transposedValuesChecks: readonly KernelCheck[] = [
  [1, 1],
  [40, 7],
  [300, 211],
].map(([rows, columns]) => ({
  name: transposedValuesKernel.name,
  variant: `${rows} x ${columns}`,
  run: (gpu) => check(gpu, rows, columns),
}));

interface Rating {
  readonly row: number;
  readonly column: number;
  readonly value: number;
}

async function check(gpu: Gpu, rows: number, columns: number): Promise<{ error: number; limit: number }> {
  const random = randomNumbers(rows + columns);
  const ratings: Rating[] = [];
  for (let row = 0; row < rows; row++) {
    const share = row % 5 === 3 ? 0 : random();
    for (let column = 0; column < columns; column++) {
      const times =
        rows > 1 && (column % 7 === 2 || random() > share)
          ? 0
          : 1 + Math.floor(2.2 * random() ** 4 + (random() < 0.05 ? 1 : 0));
      const repeated = row === Math.floor(rows / 2) && column === Math.floor(columns / 2) ? REPEATED : times;
      for (let k = 0; k < repeated; k++) ratings.push({ row, column, value: random() });
    }
  }
  // The sort must be stable: repeated pairs have the same order in both blocks.
  const transposed = ratings.toSorted((left, right) => left.column - right.column);
  const [one, other] = [
    await compressed(gpu, transposed, columns, 'column', 'row'),
    await compressed(gpu, ratings, rows, 'row', 'column'),
  ];
  const values = await gpu.bufferOf(new Float32Array(ratings.length + 1).fill(-1), 'values');
  const bindings = {
    row_pointers: one.pointers,
    indices: one.indices,
    other_pointers: other.pointers,
    other_indices: other.indices,
    other_values: other.values,
    values,
  };
  await gpu
    .pass('check transposed-values')
    .dispatch(
      await gpu.compile(transposedValuesKernel, {}),
      bindings,
      { count: ratings.length, rows: columns },
      transposedValuesWorkgroups(ratings.length),
    )
    .submit();
  const found = new Float32Array(ratings.length + 1);
  await gpu.download(values, found);
  for (const buffer of [...Object.values(one), ...Object.values(other), values]) buffer.destroy();
  const wanted = Float32Array.from([...transposed.map(({ value }) => value), -1]);
  return {
    error: wanted.reduce((worst, value, k) => Math.max(worst, Math.abs(value - found[k])), 0),
    limit: 0,
  };
}

async function compressed(
  gpu: Gpu,
  ratings: readonly Rating[],
  rows: number,
  row: 'row' | 'column',
  column: 'row' | 'column',
) {
  const pointers = new Uint32Array(rows + 1);
  for (const rating of ratings) pointers[rating[row] + 1]++;
  for (let k = 0; k < rows; k++) pointers[k + 1] += pointers[k];
  return {
    pointers: await gpu.bufferOf(pointers, 'pointers'),
    indices: await gpu.bufferOf(
      Uint32Array.from(ratings, (rating) => rating[column]),
      'indices',
    ),
    values: await gpu.bufferOf(
      Float32Array.from(ratings, ({ value }) => value),
      'values',
    ),
  };
}
