import type { ImplicitWeights } from '../../../operators/tasks/tasks.ts';
import type { DeviceBlock, DeviceMatrix } from '../../device/resources.ts';
import { addProductsKernel } from './add-products.ts';
import { gradientStepKernel, type GradientStepParams } from './gradient-step.ts';
import { gradientQuads } from './gradients.ts';
import { partProductsKernel } from './part-products.ts';
import { addRowShifts } from '../../solve/row-shifts.ts';
import { chooseVectorProducts, vectorProductsKernel, type VectorProductsParams } from '../vector-products.ts';
import { addCentred } from '../../update/centred.ts';
import { prepareRows } from '../../update/prepared-rows.ts';
import { submitSolved } from '../../update/solved-pass.ts';
import type { UpdateVariant } from '../../update/choice/variant.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { CompiledKernel, KernelTimes, SubmitOptions } from '../../webgpu/pass.ts';
import type { RowRegularization } from '../../../operators/tasks/task-types.ts';

type Submitting = Pick<SubmitOptions, 'timed' | 'submitted'>;

type Teams = Pick<VectorProductsParams, 'threads' | 'lanes' | 'width'>;

export interface ProductInputs {
  readonly block: DeviceBlock;
  readonly fixed: DeviceMatrix;
  readonly fixedBias?: GPUBuffer;
  /** x, or the direction. */
  readonly vectors: DeviceMatrix;
  /** Gradients, or products. */
  readonly sums: DeviceMatrix;
}

export interface ProductSettings {
  readonly rank: number;
  readonly from: number;
  readonly to: number;
  readonly first: boolean;
  readonly mean?: number;
  readonly implicit?: ImplicitWeights;
  /** The teams of the kernel with subgroups; default: those that it chooses, where the adapter has them. */
  readonly teams?: Teams;
}

/** Rows are cut into parts of as many ratings, and no row is solved on the way. */
const PARTS: UpdateVariant = {
  name: 'exchanged-vectors',
  precision: 'f32',
  sum: { kernel: 'vectors', threads: 64, lanes: 1, width: 1, byRow: true },
  short: 0,
  free: false,
  halfA: false,
  registers: false,
  partRatings: 2048,
  regionBytes: 24 << 20,
  regionRatings: 2048,
  sorted: true,
};

/**
 * Adds the products of the rows [from, to) of a block with their vectors to the rows of the sums, in one
 * submission.
 */
export async function addVectorProducts(
  gpu: Gpu,
  { block, fixed, fixedBias, vectors, sums }: ProductInputs,
  settings: ProductSettings,
  options: Submitting = {},
): Promise<KernelTimes> {
  const { rank, from, to, first, mean = 0, implicit } = settings;
  const biases = fixedBias !== undefined;
  const { gradients, quads } = gradientQuads(rank, biases);
  if (sums.stride !== 4 * (first ? gradients : quads))
    throw new Error(`sums of rank ${rank}${biases ? ' with biases' : ''} have ${sums.stride} numbers a row`);
  const rows = await prepareRows(
    gpu,
    block,
    { variant: PARTS, from, to, rank, lambda: 0, solver: 'cholesky' },
    fixed.rows,
    biases,
    true,
  );
  const pass = gpu.pass(first ? 'add-residuals' : 'add-products');
  if (rows.batches.length > 0) {
    const [multiply, add] = await Promise.all([
      compileProducts(gpu, settings, biases),
      gpu.compile(addProductsKernel, { rank, biases, first }),
    ]);
    const values = await addCentred(
      gpu,
      pass,
      { block, fixedBias },
      { from, to, rank, mean, variant: PARTS },
    );
    const slots = await gpu.scratch('slots', rows.slotBytes);
    for (const batch of rows.batches) {
      pass.dispatch(
        multiply,
        {
          work: batch.parts,
          indices: block.indices,
          values,
          fixed: fixed.values,
          vectors: vectors.values,
          state: vectors.values,
          slots,
        },
        { count: batch.partCount, ...(implicit ?? { alpha: 0, base: 0 }) },
        batch.partCount,
      );
      pass.dispatch(
        add,
        { work: batch.rows, slots, sums: sums.values },
        { count: batch.rowCount },
        batch.rowCount,
      );
    }
  }
  return (await pass.submit(options)).times;
}

/** The kernel that multiplies: for plain products that with subgroups, where the adapter has them. */
async function compileProducts(
  gpu: Gpu,
  { rank, first, implicit, teams = chooseVectorProducts(rank, 'f32') }: ProductSettings,
  biases: boolean,
): Promise<CompiledKernel> {
  const byTeams = { rank, precision: 'f32', biases: false, apart: true, first: false, ...teams } as const;
  if (!first && implicit === undefined && gpu.admits(vectorProductsKernel, byTeams))
    return gpu.compile(vectorProductsKernel, byTeams);
  return gpu.compile(partProductsKernel, { rank, biases, implicit: implicit !== undefined, first });
}

/** True where gradients have room for those of biases. */
export function hasBiases({ stride }: DeviceMatrix, rank: number): boolean {
  return stride > 4 * gradientQuads(rank, false).gradients;
}

export interface StepInputs {
  /** x of the last version, or products; the phase `end` reads none. */
  readonly given?: DeviceMatrix;
  readonly gradients: DeviceMatrix;
  readonly factors: DeviceMatrix;
  readonly direction?: DeviceMatrix;
  readonly bias?: GPUBuffer;
  readonly gram?: GPUBuffer;
  readonly shifts?: GPUBuffer;
}

/**
 * One phase of the steps of the rows [from, to). Gives the first row that is not finite at the end, or -1.
 */
export async function takeStep(
  gpu: Gpu,
  { given, gradients, factors, direction, bias, gram, shifts }: StepInputs,
  phase: GradientStepParams['phase'],
  {
    rank,
    from,
    to,
    ...regularization
  }: RowRegularization & { readonly rank: number; readonly from: number; readonly to: number },
  options: Submitting = {},
): Promise<number> {
  const biases = hasBiases(gradients, rank);
  const compiled = await gpu.compile(gradientStepKernel, {
    rank,
    biases,
    implicit: gram !== undefined,
    phase,
  });
  const counts = {
    matrix: gradients.values,
    stride: gradients.stride,
    column: 4 * gradientQuads(rank, biases).quads,
    row: 0,
  };
  // A written buffer may be bound only once, so each missing one has a buffer of its own.
  const [noGiven, noGram, noDirection, noBias] = await Promise.all(
    ['no vectors', 'no gram', 'no direction', 'no bias'].map((name) => gpu.scratch(name, 16)),
  );
  const bindings = {
    given: given?.values ?? noGiven,
    gram: gram ?? noGram,
    gradients: gradients.values,
    factors: factors.values,
    direction: direction?.values ?? noDirection,
    bias: bias ?? noBias,
  };
  const { badRow } = await submitSolved(
    gpu,
    `${phase}-gradients`,
    { from, to },
    options,
    async (pass, status) => {
      if (to === from) return;
      const own = shifts ?? (await addRowShifts(gpu, pass, counts, { from, to, ...regularization }, biases));
      pass.dispatch(
        compiled,
        { ...bindings, shifts: own, status },
        { count: to - from, first: from },
        to - from,
      );
    },
  );
  return badRow;
}
