import { vectorProductsKernel } from './vector-products.ts';
import { vectorStepKernel } from './vector-step.ts';
import { stateQuads } from './vectors.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { BuffersOf } from '../webgpu/kernel.ts';
import type { Binding, Pass } from '../webgpu/pass.ts';
import type { PreparedRows } from '../update/prepared-rows.ts';
import type { SumKernel, UpdateSettings } from '../update/choice/variant.ts';

/** The buffers of a half-iteration that both kernels of a step use. */
type RowBuffer = Exclude<
  BuffersOf<typeof vectorProductsKernel | typeof vectorStepKernel>,
  'work' | 'slots' | 'state' | 'given'
>;

interface VectorSettings extends Omit<UpdateSettings, 'variant'> {
  readonly sum: Extract<SumKernel, { readonly kernel: 'vectors' }>;
  readonly half: boolean;
  readonly biases: boolean;
  readonly steps: number;
}

/**
 * Adds the kernels that solve batches of rows by conjugate gradients without A: a pass over the ratings for
 * the residual, and one for each step, whose products then take all rows of the batch a step further.
 *
 */
export async function addVectorSteps(
  gpu: Gpu,
  pass: Pass,
  { batches, slotBytes }: PreparedRows,
  settings: VectorSettings,
  bindings: Readonly<Record<RowBuffer | 'previous', Binding>>,
): Promise<void> {
  const { rank, biases, steps } = settings;
  const [residuals, directions, begin, residual, step] = await compileVectorSteps(gpu, settings);
  const most = batches.reduce((rows, { rowCount }) => Math.max(rows, rowCount), 1);
  const buffers = {
    ...bindings,
    slots: await gpu.scratch('slots', slotBytes),
    state: await gpu.scratch('vector state', 16 * stateQuads(rank, biases) * most),
  };
  for (const { parts, partCount, rows, rowCount } of batches) {
    const add = (compiled: typeof begin, last = 0) =>
      pass.dispatch(
        compiled,
        { ...buffers, given: compiled === begin ? bindings.previous : buffers.slots, work: rows },
        { count: rowCount, last },
        rowCount,
      );
    const multiply = (compiled: typeof directions) =>
      pass.dispatch(compiled, { ...buffers, work: parts }, { count: partCount }, partCount);
    add(begin);
    multiply(residuals);
    add(residual);
    for (let number = 1; number <= steps; number++) {
      multiply(directions);
      add(step, number === steps ? 1 : 0);
    }
  }
}

/** The kernels of addVectorSteps: products for the residual and of a step, and the three phases of a step. */
export function compileVectorSteps(
  gpu: Gpu,
  { rank, sum, half, biases }: Pick<VectorSettings, 'rank' | 'sum' | 'half' | 'biases'>,
) {
  const products = {
    rank,
    precision: half ? 'f16' : 'f32',
    biases,
    threads: sum.threads,
    lanes: sum.lanes,
    width: sum.width,
  } as const;
  return Promise.all([
    gpu.compile(vectorProductsKernel, { ...products, first: true }),
    gpu.compile(vectorProductsKernel, { ...products, first: false }),
    gpu.compile(vectorStepKernel, { rank, biases, half, phase: 'begin' }),
    gpu.compile(vectorStepKernel, { rank, biases, half, phase: 'residual' }),
    gpu.compile(vectorStepKernel, { rank, biases, half, phase: 'step' }),
  ]);
}
