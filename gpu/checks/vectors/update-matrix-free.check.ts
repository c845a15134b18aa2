import { destroyBuffers } from '../../device/resources.ts';
import { statusBytes } from '../../loss/objective-sums.ts';
import { EntryList } from '../../update/work.ts';
import {
  chooseUpdateMatrixFree,
  updateMatrixFreeKernel,
  type UpdateMatrixFreeParams,
  updateMatrixFreeWorkgroups,
} from '../../vectors/update-matrix-free.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { CHECKED_RANKS, type KernelCheck } from '../support/check.ts';
import { CG_BIAS_LIMIT, CG_LIMIT, NO_ROW } from '../support/limits.ts';
import { commonProblem, problemBuffers, problemError } from '../support/rated-problem.ts';
import { shiftsOf } from '../support/solved-rows.ts';

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

/** Checks of rows of all lengths that a variant supports, against CG in float64 with a matrix A. */
export const updateMatrixFreeChecks: readonly KernelCheck[] = cases.map((params) => {
  const { rank, precision, steps, longest, lanes, rows, biases } = params;
  const variant =
    `rank ${rank}, ${precision}${biases ? ', biases' : ''}, ${steps} steps, rows of ${longest} ratings ` +
    `by ${lanes} threads, ${rows} a workgroup`;
  return { name: updateMatrixFreeKernel.name, variant, run: (gpu) => check(gpu, params) };
});

async function check(gpu: Gpu, { steps, ...params }: Shape): Promise<{ error: number; limit: number }> {
  const { rank, precision, longest, biases } = params;
  const lengths = [longest, longest - 1, Math.min(longest, 2), 1, 0, 1];
  const problem = commonProblem({ rank, biases, precision, lengths });
  const list = new EntryList();
  lengths.forEach((length, row) => list.add(row, problem.ratings.offsets[row], length, 0));
  const { entries, count } = list.list;
  const written = new Float32Array(statusBytes(count) / 4);
  const buffers = {
    ...(await problemBuffers(gpu, problem, precision)),
    work: await gpu.bufferOf(entries, 'work'),
    shifts: await gpu.bufferOf(shiftsOf(lengths, biases, problem.regularization), 'shifts'),
    status: await gpu.bufferOf(new Uint32Array(written.length).fill(NO_ROW), 'status'),
  };
  // The kernel expects the initial x in its output.
  gpu.device.queue.writeBuffer(
    buffers.factors,
    0,
    problem.previous.subarray(0, count * problem.ratings.stride),
  );
  await gpu
    .pass('check update-matrix-free')
    .dispatch(
      await gpu.compile(updateMatrixFreeKernel, params),
      buffers,
      { count, steps },
      updateMatrixFreeWorkgroups(params, count),
    )
    .submit();
  await gpu.download(buffers.status, written);
  const bad = new Uint32Array(written.buffer)[0] !== NO_ROW;
  const error = await problemError(gpu, problem, buffers, false, {
    steps,
    exactTo: -1,
    objectives: written.subarray(4, 4 + count),
  });
  destroyBuffers({ buffers });
  return { error: bad ? Infinity : error, limit: biases ? CG_BIAS_LIMIT : CG_LIMIT };
}
