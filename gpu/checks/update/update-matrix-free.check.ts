import { EntryList } from '../../update/work.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { CHECKED_RANKS, type KernelCheck } from '../support/check.ts';
import { CG_BIAS_LIMIT, CG_LIMIT, NO_ROW } from '../support/limits.ts';
import { deviation, randomNumbers } from '../support/numbers.ts';
import { partEquations, ratedBuffers, ratedRows, uploadAll } from '../support/rated-rows.ts';
import { expectedSteps, regularizationFor, regularized, shiftsOf } from '../support/solved-rows.ts';
import {
  chooseUpdateMatrixFree,
  updateMatrixFreeKernel,
  type UpdateMatrixFreeParams,
  updateMatrixFreeWorkgroups,
} from '../../update/update-matrix-free.ts';

type Shape = UpdateMatrixFreeParams & { readonly steps: number };

function choose(
  rank: number,
  precision: 'f32' | 'f16',
  biases: boolean,
  changes: Partial<Shape> = {},
): Shape {
  return { ...chooseUpdateMatrixFree(rank, precision, biases), steps: 6, ...changes };
}

const cases: readonly Shape[] = [
  ...[...CHECKED_RANKS, 512].map((rank) => choose(rank, 'f32', false)),
  ...[10, 64, 128].map((rank) => choose(rank, 'f16', false)),
  ...[10, 64].map((rank) => choose(rank, 'f32', true)),
  choose(48, 'f16', true),
  choose(20, 'f32', false, { lanes: 4, rows: 5, longest: 9 }),
  choose(20, 'f32', false, { lanes: 64, rows: 2, longest: 20, steps: 30 }),
];

/** Checks of rows of all lengths that a variant takes, against CG on the formed A in float64. */
export const updateMatrixFreeChecks: readonly KernelCheck[] = cases.map((params) => {
  const { rank, precision, steps, longest, lanes, rows, biases } = params;
  const variant = `rank ${rank}, ${precision}${biases ? ', biases' : ''}, ${steps} steps, rows of ${longest} ratings by ${lanes} threads, ${rows} a workgroup`;
  return { name: updateMatrixFreeKernel.name, variant, run: (gpu) => check(gpu, params) };
});

async function check(gpu: Gpu, { steps, ...params }: Shape): Promise<{ error: number; limit: number }> {
  const { rank, precision, longest, biases } = params;
  const lengths = [longest, longest - 1, Math.min(longest, 2), 1, 0, 1].map((length) => Math.max(0, length));
  const regularization = regularizationFor(biases);
  const rows = ratedRows({ rank, biases, precision, lengths });
  const { stride } = rows;
  const random = randomNumbers(rank);
  const start = new Float32Array(lengths.length * stride);
  const list = new EntryList();
  lengths.forEach((length, row) => {
    for (let k = 0; k < rank; k++) start[row * stride + k] = random() - 0.5;
    list.add(row, rows.offsets[row], length, 0);
  });
  const { entries, count } = list.list;
  const buffers = {
    ...(await ratedBuffers(gpu, rows, precision)),
    ...(await uploadAll(gpu, {
      work: entries,
      shifts: shiftsOf(lengths, biases, regularization),
      factors: start,
      bias: new Float32Array(lengths.length).fill(1e9),
      status: new Uint32Array(4 + lengths.length).fill(NO_ROW),
    })),
  };
  const compiled = await gpu.compile(updateMatrixFreeKernel, params);
  const { bytes } = await gpu
    .pass('check update-matrix-free')
    .dispatch(compiled, buffers, { count, steps }, updateMatrixFreeWorkgroups(params, count))
    .submit({ read: { buffer: buffers.status, bytes: 4 } });
  const factors = new Float32Array(start.length);
  const bias = new Float32Array(lengths.length);
  await gpu.download(buffers.factors, factors);
  await gpu.download(buffers.bias, bias);
  for (const buffer of Object.values(buffers)) buffer.destroy();
  let error = new Uint32Array(bytes)[0] === NO_ROW ? 0 : Infinity;
  for (let row = 0; row < lengths.length; row++) {
    const found = Float64Array.from(factors.subarray(row * stride, (row + 1) * stride));
    const from = Float64Array.from(start.subarray(row * stride, row * stride + rank));
    const equations = regularized(
      partEquations(rows, rows.offsets[row], lengths[row]),
      lengths[row],
      biases,
      regularization,
    );
    const expected =
      lengths[row] === 0 ? new Float64Array(rank + 1) : expectedSteps(equations, biases, from, steps);
    // The padding must be 0.
    const padded = new Float64Array(stride);
    padded.set(expected.subarray(0, rank));
    error = Math.max(
      error,
      deviation([...found, ...(biases ? [bias[row]] : [])], [...padded, ...(biases ? [expected[rank]] : [])]),
    );
  }
  return { error, limit: biases ? CG_BIAS_LIMIT : CG_LIMIT };
}
