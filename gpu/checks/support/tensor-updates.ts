/** Runs kernels that sum and solve rows on tensor cores, and measures their errors. */
import { EntryList } from '../../update/deal-rows.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelDescriptor, KernelParams } from '../../webgpu/kernel.ts';
import { type KernelCheck, NO_ROW } from './check.ts';
import { halfBits } from './float16.ts';
import { centresRatings } from '../../equations/tensor-plan.ts';
import {
  type Expectation,
  problemBuffers,
  problemError,
  ratedProblem,
  type RatedProblem,
} from './rated-problem.ts';
import { shiftsOf } from './solved-rows.ts';

interface UpdateCheck {
  readonly scale: number;
  readonly expectation: Expectation;
  /** Precision of the factors that the kernel reads. */
  readonly precision?: 'f16' | 'int8';
  /**
   * True: the kernel itself subtracts mean and biases from the ratings. False: they are subtracted before, as
   * for kernels that only sum.
   */
  readonly centre?: boolean;
}

/** Runs a kernel whose three workgroups share all rows, and returns the largest error. */
export async function updateError<Params extends KernelParams>(
  gpu: Gpu,
  kernel: KernelDescriptor<Params>,
  params: Params,
  problem: RatedProblem,
  { scale, expectation, precision, centre }: UpdateCheck,
): Promise<number> {
  const { status, buffers } = await runUpdate(
    gpu,
    kernel,
    params,
    problem,
    scale,
    expectation.steps,
    precision,
    centre,
  );
  const error =
    status === NO_ROW
      ? await problemError(gpu, problem, buffers, true, {
          ...expectation,
          objectives: await writtenObjectives(gpu, buffers.status, problem.lengths.length),
        })
      : Infinity;
  for (const buffer of Object.values(buffers)) buffer.destroy();
  return error;
}

async function runUpdate<Params extends KernelParams>(
  gpu: Gpu,
  kernel: KernelDescriptor<Params>,
  params: Params,
  problem: RatedProblem,
  scale: number,
  steps: number,
  precision: 'f16' | 'int8' = 'f16',
  centre?: boolean,
) {
  const { ratings, lengths, regularization } = problem;
  const work = new EntryList();
  lengths.forEach((length, row) => work.add(row, ratings.offsets[row], length, 0));
  const { entries, count } = work.list;
  const raw =
    centre ??
    (precision === 'int8' ? problem.biases : centresRatings({ rank: ratings.rank, biases: problem.biases }));
  const buffers = {
    ...(await problemBuffers(gpu, problem, precision, raw)),
    work: await gpu.bufferOf(entries, 'work'),
    shifts: await gpu.bufferOf(shiftsOf(lengths, problem.biases, regularization), 'shifts'),
    status: await gpu.bufferOf(new Uint32Array(4 + lengths.length).fill(NO_ROW), 'status'),
  };
  const uniforms = {
    count,
    zero_row: ratings.columns,
    scale,
    unscale: 1 / scale,
    mean: ratings.mean,
    steps,
  };
  const compiled = await gpu.compile(kernel, params);
  const { bytes } = await gpu
    .pass(`check ${kernel.name}`)
    .dispatch(compiled, buffers, uniforms, 3)
    .submit({ read: { buffer: buffers.status, bytes: 4 } });
  return { status: new Uint32Array(bytes)[0], buffers };
}

/** The objectives that a kernel wrote after the lowest bad row. */
async function writtenObjectives(gpu: Gpu, status: GPUBuffer, rows: number): Promise<Float32Array> {
  const words = new Uint32Array(4 + rows);
  await gpu.download(status, words);
  return new Float32Array(words.buffer, 16);
}

/** Makes a check that a kernel reports a row if an infinite factor belongs to one of the row's columns. */
export function notFinite<Params extends KernelParams>(
  kernel: KernelDescriptor<Params>,
  params: Params,
): KernelCheck {
  return {
    name: kernel.name,
    variant: 'a factor that is not finite',
    admitted: (gpu) => gpu.admits(kernel, params),
    run: async (gpu) => {
      const problem = ratedProblem({ rank: 20, biases: false, precision: 'f16', lengths: [30, 20, 9, 5] });
      const { offsets, indices, columns, mirror, stride } = problem.ratings;
      const bad = columns - 1;
      for (let k = 0; k < offsets[4]; k++) if (indices[k] === bad) indices[k]--;
      indices[offsets[3] - 1] = bad;
      mirror[(bad * stride) / 2] = halfBits(Infinity);
      const { status, buffers } = await runUpdate(gpu, kernel, params, problem, 1, 6);
      for (const buffer of Object.values(buffers)) buffer.destroy();
      return { error: status === 2 ? 0 : Infinity, limit: 0 };
    },
  };
}
