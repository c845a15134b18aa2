/** Checks of the kernels that convert, pack and reorder numbers. */
import { fromHalf, fromHalves, toHalf } from '../../engine/numbers/half.ts';
import { type KernelCheck, randomNumbers } from '../checks/support/check.ts';
import { runKernel, uploadAll } from '../checks/support/run-kernel.ts';
import { destroyBuffers, strideOf } from '../device/resources.ts';
import { FOURS, subtractBiasKernel } from '../update/centred.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { transposedValuesKernel, unpaddedRowsKernel } from './matrix-rows.ts';
import {
  fromHalfKernel,
  addHalf,
  toHalfKernel,
  addPacked,
  addUnpacked,
  packRowsKernel,
  unpackRowsKernel,
} from './to-half.ts';

type Result = Promise<{ readonly error: number; readonly limit: number }>;

export const copiesChecks: readonly KernelCheck[] = [
  ...[1, 100].map((rows) => ({
    name: toHalfKernel.name,
    variant: `${rows} rows`,
    run: (gpu: Gpu) => toHalfError(gpu, rows),
  })),
  { name: fromHalfKernel.name, variant: 'every half', run: fromHalfError },
  ...[
    { name: packRowsKernel.name, variant: 'to 8 bits and back' },
    { name: unpackRowsKernel.name, variant: 'to 8 bits and back, placed after other rows' },
  ].map((check) => ({ ...check, run: packedError })),
  // Ranges of groups of four ratings. The largest range is divided among many workgroups.
  ...[
    { first: 0, fours: 1 },
    { first: 3, fours: 70 },
    { first: 0, fours: 5000 },
  ].map(({ first, fours }) => ({
    name: subtractBiasKernel.name,
    variant: `${fours} groups of four from ${first}`,
    run: (gpu: Gpu) => subtractBiasError(gpu, first, fours),
  })),
  ...[
    { rows: 1, columns: 1 },
    { rows: 40, columns: 7 },
    { rows: 300, columns: 211 },
  ].map(({ rows, columns }) => ({
    name: transposedValuesKernel.name,
    variant: `${rows} x ${columns}`,
    run: (gpu: Gpu) => transposedError(gpu, rows, columns),
  })),
  ...[
    { rows: 1, columns: 1, stride: 16, first: 0 },
    { rows: 700, columns: 5, stride: 16, first: 13 },
    { rows: 333, columns: 100, stride: 112, first: 1999 },
    { rows: 50, columns: 16, stride: 16, first: 0 },
  ].map((shape) => ({
    name: unpaddedRowsKernel.name,
    variant: `${shape.rows} x ${shape.columns}, ${shape.stride} apart, from ${shape.first}`,
    run: (gpu: Gpu) => unpaddedError(gpu, shape),
  })),
];

/**
 * Rounds numbers of all magnitudes. The limit allows rounding towards zero; it is relative for normal numbers,
 * and absolute for numbers below the smallest normal one.
 */
async function toHalfError(gpu: Gpu, rows: number): Result {
  const stride = 48;
  const random = randomNumbers(rows);
  const factors = Float32Array.from({ length: rows * stride }, (_, i) =>
    i % 5 === 0 ? 0 : (2 * random() - 1) * 10 ** (8 * random() - 4),
  );
  const words = new Uint32Array(((rows + 1) * stride) / 2).fill(0x7bff7bff);
  const buffers = await uploadAll(gpu, { values: factors, half: words });
  const pass = gpu.pass('check to-half');
  await addHalf(gpu, pass, { rows, stride, ...buffers });
  await pass.submit();
  await gpu.download(buffers.half, words);
  destroyBuffers(buffers);
  // The row after the last one must be 0.
  const errors = Array.from(fromHalves(new Uint16Array(words.buffer)), (found, i) => {
    const expected = factors[i] ?? 0;
    return Math.abs(found - expected) / Math.max(Math.abs(expected), 2 ** -14);
  });
  return { error: Math.max(...errors), limit: 2 ** -10 };
}

/** Converts every finite normal float16 number to float32, which must be exact. */
async function fromHalfError(gpu: Gpu): Result {
  // Some adapters do not keep NaN, infinities and subnormal numbers: they become 0 here.
  const halves = Uint16Array.from({ length: 0x10000 }, (_, bits) => {
    const exponent = (bits >> 10) & 31;
    return exponent === 31 || exponent === 0 ? 0 : bits;
  });
  const quads = halves.length / 4;
  const { factors } = await runKernel(
    gpu,
    fromHalfKernel,
    {},
    { half: new Uint32Array(halves.buffer), factors: new Float32Array(halves.length) },
    { uniforms: { quads }, workgroups: { threads: quads } },
  );
  return { error: factors.filter((value, at) => value !== fromHalf(halves[at])).length, limit: 0 };
}

/**
 * Rounds a matrix to 8 bits and back, into another matrix after other rows, which must not change. An element
 * may differ by half a step, 1/254 of its column's largest |x|, and by the rounding to float16. `error`: the
 * largest difference in these units.
 */
async function packedError(gpu: Gpu): Result {
  const [rows, before, columns] = [37, 3, 20];
  const stride = strideOf(columns);
  const halvesOf = (count: number, value: (row: number, column: number) => number) =>
    toHalf(
      Float32Array.from({ length: count * stride }, (_, at) => value(Math.floor(at / stride), at % stride)),
    );
  const given = halvesOf(rows + 1, (row, column) =>
    column === 5 || column >= columns ? 0 : (((row * 31 + column * 17) % 101) - 50) / (1 + column),
  );
  const buffers = await uploadAll(gpu, {
    half: new Uint32Array(given.buffer as ArrayBuffer),
    target: new Uint32Array(halvesOf(before + rows + 1, () => 1).buffer as ArrayBuffer),
  });
  const pass = gpu.pass('check pack-rows');
  const packed = await addPacked(gpu, pass, { rows, stride, half: buffers.half });
  await addUnpacked(gpu, pass, { packed, rows }, { stride, half: buffers.target }, before);
  await pass.submit();
  const halves = new Uint16Array((before + rows) * stride);
  await gpu.download(buffers.target, halves);
  destroyBuffers(buffers);
  const [found, expected] = [fromHalves(halves), fromHalves(given)];
  let error = 0;
  for (let column = 0; column < stride; column++) {
    let largest = 0;
    for (let row = 0; row < rows; row++)
      largest = Math.max(largest, Math.abs(expected[row * stride + column]));
    const unit = largest === 0 ? 1 : largest / 254 + largest / 2048;
    for (let row = 0; row < before + rows; row++) {
      const wanted = row < before ? 1 : expected[(row - before) * stride + column];
      const difference = Math.abs(found[row * stride + column] - wanted);
      error = Math.max(error, row < before ? difference : difference / unit);
    }
  }
  return { error, limit: 1.01 };
}

async function subtractBiasError(gpu: Gpu, first: number, fours: number): Result {
  const random = randomNumbers(fours);
  const count = 4 * (first + fours + 2);
  const [stale, mean] = [1e9, 3.25];
  const fixed_bias = Float32Array.from({ length: 300 }, () => random() - 0.5);
  const indices = Uint32Array.from({ length: count }, () => Math.floor(random() * fixed_bias.length));
  const values = Float32Array.from({ length: count }, () => 5 * random());
  const { centred } = await runKernel(
    gpu,
    subtractBiasKernel,
    {},
    { indices, values, fixed_bias, centred: new Float32Array(count).fill(stale) },
    { uniforms: { first, fours, mean }, workgroups: { threads: fours / FOURS } },
  );
  const errors = Array.from(centred, (value, k) => {
    const isInside = k >= 4 * first && k < 4 * (first + fours);
    return Math.abs(value - (isInside ? values[k] - mean - fixed_bias[indices[k]] : stale));
  });
  return { error: Math.max(...errors), limit: 1e-6 };
}

/** Random ratings, without some rows and columns. A pair occurs up to three times, and one pair 500 times. */
async function transposedError(gpu: Gpu, rows: number, columns: number): Result {
  const random = randomNumbers(rows + columns);
  const ratings: { readonly row: number; readonly column: number; readonly value: number }[] = [];
  for (let row = 0; row < rows; row++) {
    const share = row % 5 === 3 ? 0 : random();
    for (let column = 0; column < columns; column++) {
      const isEmpty = rows > 1 && (column % 7 === 2 || random() > share);
      const times = isEmpty ? 0 : 1 + Math.floor(2.2 * random() ** 4 + (random() < 0.05 ? 1 : 0));
      const isRepeated = row === Math.floor(rows / 2) && column === Math.floor(columns / 2);
      for (let k = 0; k < (isRepeated ? 500 : times); k++) ratings.push({ row, column, value: random() });
    }
  }
  // The sort must be stable: repeated pairs have the same order in both blocks.
  const transposed = ratings.toSorted((left, right) => left.column - right.column);
  const count = ratings.length;
  const pointersOf = (side: 'row' | 'column', length: number) => {
    const pointers = new Int32Array(length + 1);
    for (const rating of ratings) pointers[rating[side] + 1]++;
    for (let k = 0; k < length; k++) pointers[k + 1] += pointers[k];
    return pointers;
  };
  const { values } = await runKernel(
    gpu,
    transposedValuesKernel,
    {},
    {
      row_pointers: pointersOf('column', columns),
      indices: Uint32Array.from(transposed, ({ row }) => row),
      other_pointers: pointersOf('row', rows),
      other_indices: Uint32Array.from(ratings, ({ column }) => column),
      other_values: Float32Array.from(ratings, ({ value }) => value),
      values: new Float32Array(count + 1).fill(-1),
    },
    { uniforms: { count, rows: columns }, workgroups: { threads: count } },
  );
  const wanted = Float32Array.from([...transposed.map(({ value }) => value), -1]);
  return { error: wanted.filter((value, k) => value !== values[k]).length, limit: 0 };
}

async function unpaddedError(
  gpu: Gpu,
  shape: { readonly rows: number; readonly columns: number; readonly stride: number; readonly first: number },
): Result {
  const { columns, stride, first } = shape;
  const count = shape.rows * columns - first;
  // Some of the bits are NaN.
  const padded = Uint32Array.from({ length: shape.rows * stride }, (_, k) =>
    k % 11 === 3 ? 0x7fc00000 + k : Math.imul(k + 1, 0x9e3779b1),
  );
  const { rows } = await runKernel(
    gpu,
    unpaddedRowsKernel,
    {},
    { padded, rows: new Uint32Array(count + 1).fill(7) },
    { uniforms: { first, count, columns, stride }, workgroups: { threads: count } },
  );
  const wanted = (at: number) => padded[Math.floor(at / columns) * stride + (at % columns)];
  return {
    error: rows.filter((value, k) => value !== (k < count ? wanted(first + k) : 7)).length,
    limit: 0,
  };
}
