/**
 * The tasks of conjugate gradients on several devices (operators/tasks/vector-tasks.ts), each in one
 * submission for all rows of the range.
 */
import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';
import type { ImplicitWeights } from '../../operators/tasks/tasks.ts';
import type { RowRegularization } from '../../operators/tasks/task-types.ts';
import type { DeviceBlock, DeviceMatrix } from '../device/resources.ts';
import { ratingProducts, type Teams } from './products.ts';
import { multipliedRows, type Phase, phaseBuffers, RowPhases } from './row-phases.ts';
import { vectorQuads } from './vectors.ts';
import { addMatrixShifts } from '../solve/row-shifts.ts';
import { addCentred } from '../update/centred.ts';
import { prepareRows } from '../update/prepared-rows.ts';
import { submitSolved } from '../update/solved-pass.ts';
import { REGIONS, type UpdateVariant } from '../update/choice/variant.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { KernelTimes, SubmitOptions } from '../webgpu/pass.ts';
import { kernelOf } from '../webgpu/kernel.ts';
import { type EquationsParams, equationValues } from '../equations/equation-slots.ts';

export const addResiduals: GpuTaskHandler<'add-residuals'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  const inputs = {
    block: scope.block('block'),
    fixed: scope.matrix('fixed'),
    fixedBias: scope.has('fixedBias') ? scope.vector('fixedBias') : undefined,
    vectors: scope.matrix('previous'),
    sums: scope.matrix('gradients'),
  };
  await addVectorProducts(gpu, inputs, { ...params, first: true }, { submitted });
  return { rows: params.to - params.from };
};

export const addProducts: GpuTaskHandler<'add-products'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  const inputs = {
    block: scope.block('block'),
    fixed: scope.matrix('fixed'),
    vectors: scope.matrix('direction'),
    sums: scope.matrix('products'),
  };
  await addVectorProducts(gpu, inputs, { ...params, first: false }, { submitted });
  return { rows: params.to - params.from };
};

export const equationResiduals: GpuTaskHandler<'equation-residuals'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  const sums = scope.matrix('gradients');
  const inputs = { equations: scope.matrix('equations'), vectors: scope.matrix('previous'), sums };
  const settings = { ...params, biases: hasBiases(sums, params.rank), first: true };
  await addEquationProducts(gpu, inputs, settings, { submitted });
  return { rows: params.to - params.from };
};

export const equationProducts: GpuTaskHandler<'equation-products'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  const inputs = {
    equations: scope.matrix('equations'),
    vectors: scope.matrix('direction'),
    sums: scope.matrix('products'),
  };
  await addEquationProducts(gpu, inputs, { ...params, biases: false, first: false }, { submitted });
  return { rows: params.to - params.from };
};

/** The buffers of both kinds of steps. Implicit data have a Gram matrix, and shifts that contain λ. */
function stepInputs(scope: GpuScopeOf<'begin-gradients'> | GpuScopeOf<'step-gradients'>) {
  return {
    gradients: scope.matrix('gradients'),
    factors: scope.matrix('factors'),
    direction: scope.matrix('direction'),
    ...(scope.has('gram') ? { gram: scope.matrix('gram').values, shifts: scope.vector('shifts') } : {}),
  };
}

export const beginGradients: GpuTaskHandler<'begin-gradients'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  await takeStep(gpu, { given: scope.matrix('previous'), ...stepInputs(scope) }, 'begin', params, {
    submitted,
  });
  return { rows: params.to - params.from };
};

export const stepGradients: GpuTaskHandler<'step-gradients'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  await takeStep(gpu, { given: scope.matrix('products'), ...stepInputs(scope) }, 'step', params, {
    submitted,
  });
  return { rows: params.to - params.from };
};

export const endGradients: GpuTaskHandler<'end-gradients'> = async (scope) => {
  const { gpu, params, submitted } = scope;
  const gradients = scope.matrix('gradients');
  const inputs = {
    gradients,
    factors: scope.matrix('factors'),
    ...(hasBiases(gradients, params.rank) ? { bias: scope.vector('bias') } : {}),
  };
  const badRow = await takeStep(gpu, inputs, 'end', params, { submitted });
  return { rows: params.to - params.from, values: { badRow } };
};

/**
 * Matrix-free conjugate gradients on several devices, each with the ratings of some columns. Every device
 * multiplies its ratings by the rows' vectors, the products are summed over the devices, and the device that
 * owns a row takes its step (operators/tasks/vector-tasks.ts).
 */

type Submitting = Pick<SubmitOptions, 'timed' | 'submitted'>;

interface ProductInputs {
  readonly block: DeviceBlock;
  readonly fixed: DeviceMatrix;
  readonly fixedBias?: GPUBuffer;
  /** x, or the search direction. */
  readonly vectors: DeviceMatrix;
  /** Gradients, or products. */
  readonly sums: DeviceMatrix;
}

interface RowRange {
  readonly rank: number;
  readonly from: number;
  readonly to: number;
}

interface ProductSettings extends RowRange {
  readonly first: boolean;
  readonly mean?: number;
  readonly implicit?: ImplicitWeights;
  readonly teams?: Teams;
}

/**
 * Settings by which rows are cut into parts: of at most `partRatings` ratings, and by regions of θ. They
 * serve only for the lists of parts; the kernels are chosen elsewhere.
 */
const PARTS: UpdateVariant = {
  name: 'exchanged-vectors',
  precision: 'f32',
  sum: { kernel: 'vectors', threads: 64, lanes: 1, width: 1, byRow: true },
  short: 0,
  halfA: false,
  registers: false,
  partRatings: 2048,
  regions: REGIONS,
};

/**
 * Multiplies the ratings of the rows [from, to) of a block by the rows' vectors, and adds the products to
 * `sums`, in one submission.
 */
export async function addVectorProducts(
  gpu: Gpu,
  { block, fixed, fixedBias, vectors, sums }: ProductInputs,
  settings: ProductSettings,
  options: Submitting = {},
): Promise<KernelTimes> {
  const { rank, from, to, first, mean = 0 } = settings;
  const biases = fixedBias !== undefined;
  const { gradients, quads } = vectorQuads(rank, biases);
  if (sums.stride !== 4 * (first ? gradients : quads))
    throw new Error(`sums of rank ${rank}${biases ? ' with biases' : ''} have ${sums.stride} numbers a row`);
  const rows = await prepareRows(
    gpu,
    block,
    { variant: PARTS, from, to, rank, lambda: 0 },
    fixed.rows,
    biases,
    true,
  );
  const pass = gpu.pass(first ? 'add-residuals' : 'add-products');
  if (rows.batches.length > 0) {
    const [multiply, add] = await Promise.all([
      ratingProducts(gpu, { ...settings, precision: 'f32', biases }),
      gpu.compile(addProductsKernel, { rank, biases, first }),
    ]);
    const values = await addCentred(
      gpu,
      pass,
      { block, fixedBias },
      { from, to, rank, mean, variant: PARTS },
    );
    const slots = await gpu.scratch('slots', rows.slotBytes);
    const ofBlock = multiply({ indices: block.indices, values, fixed: fixed.values });
    for (const batch of rows.batches) {
      ofBlock(pass, batch, vectors.values, slots);
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

/** True if rows of gradients are long enough for the sums that biases need. */
function hasBiases({ stride }: DeviceMatrix, rank: number): boolean {
  return stride > 4 * vectorQuads(rank, false).gradients;
}

interface StepInputs {
  /** x of the previous iteration (for `begin`), or the products A p (for `step`); not used for `end`. */
  readonly given?: DeviceMatrix;
  readonly gradients: DeviceMatrix;
  readonly factors: DeviceMatrix;
  readonly direction?: DeviceMatrix;
  readonly bias?: GPUBuffer;
  readonly gram?: GPUBuffer;
  readonly shifts?: GPUBuffer;
}

/** The kernels' phases that make up each task. */
const PHASES = { begin: ['gather', 'begin'], step: ['step'], end: ['end'] } as const satisfies Readonly<
  Record<string, readonly Phase[]>
>;

/**
 * Runs the phases of one task on the rows [from, to). Returns the first solved row that is not finite, or -1.
 */
export async function takeStep(
  gpu: Gpu,
  { given, gradients, factors, direction, ...inputs }: StepInputs,
  taken: keyof typeof PHASES,
  settings: RowRegularization & RowRange,
  options: Submitting = {},
): Promise<number> {
  const { rank, from, to } = settings;
  const biases = hasBiases(gradients, rank);
  const shape = { rank, biases, implicit: inputs.gram !== undefined, listed: false };
  const { quads } = vectorQuads(rank, biases);
  const counts = { matrix: gradients.values, stride: gradients.stride, column: 4 * quads, row: 0 };
  const phases = await RowPhases.compile(gpu, { ...shape, half: false }, PHASES[taken]);
  const { badRow } = await submitSolved(
    gpu,
    `${taken}-gradients`,
    settings,
    options,
    async (pass, status) => {
      if (to === from) return;
      const multiplied = multipliedRows(shape, to - from);
      const buffers = await phaseBuffers(gpu, {
        ...inputs,
        ...(multiplied > 0
          ? { multiplied: await gpu.scratch('gram products', 16 * quads * multiplied) }
          : {}),
        shifts: inputs.shifts ?? (await addMatrixShifts(gpu, pass, counts, settings, biases)),
        given: given?.values,
        gradients: gradients.values,
        factors: factors.values,
        direction: direction?.values,
        status,
      });
      for (const phase of PHASES[taken]) phases.add(pass, phase, buffers, { first: from, count: to - from });
    },
  );
  return badRow;
}

type AddProductsParams = {
  readonly rank: number;
  readonly biases: boolean;
  /**
   * True: `sums` has gradients (residuals and the numbers n, t, along and s, see
   * operators/tasks/vector-tasks.ts). False: `sums` has products of A with vectors.
   */
  readonly first: boolean;
};

const THREADS = 64;

/**
 * Adds to each listed row of `sums` the row's slots, in order. A row's ratings are cut into parts, and a slot
 * has the sum over one part (layout: vectors.ts). An entry of `work`: row, first slot, number n of ratings,
 * number of slots.
 */
export const addProductsKernel = kernelOf<AddProductsParams>()({
  name: 'add-products',
  reads: { work: 'array<vec4u>', slots: 'array<vec4f>' },
  writes: { sums: 'array<vec4f>' },
  uniforms: { count: 'u32' },
  values({ rank, biases, first }) {
    const { quads, gradients, slot } = vectorQuads(rank, biases);
    return {
      THREADS,
      QUADS: quads,
      ROW_QUADS: first ? gradients : quads,
      SLOT_QUADS: slot,
      USED: first ? slot : quads,
      FIRST: first,
    };
  },
  samples: [
    { rank: 40, biases: true, first: true },
    { rank: 40, biases: false, first: false },
  ],
});

type EquationProductsParams = EquationsParams & {
  /**
   * True: computes the residual b - A x, and the sums that are stored with it
   * (operators/tasks/vector-tasks.ts). False: computes products of A with search directions.
   */
  readonly first: boolean;
};

function threadsOf(rank: number): number {
  return Math.min(256, Math.max(32, Math.ceil(rank / 32) * 32));
}

/**
 * Multiplies each row's matrix A, which was formed from its ratings before, by the row's vector, and adds the
 * result to the row of `sums`.
 */
export const equationProductsKernel = kernelOf<EquationProductsParams>()({
  name: 'equation-products',
  reads: { equations: 'array<f32>', vectors: 'array<f32>' },
  writes: { sums: 'array<f32>' },
  uniforms: {
    count: 'u32',
    first: 'u32',

    /** Numbers of a row of `equations`. */
    stride: 'u32',
  },
  values({ rank, biases, first }) {
    const { RANK, PADDED, B, N } = equationValues({ rank, biases });
    const { quads, gradients } = vectorQuads(rank, biases);
    return {
      RANK,
      PADDED,
      B,
      N,
      S: 4 * quads + 16,
      FIRST: first,
      BIASES: biases,
      SUM_STRIDE: 4 * (first ? gradients : quads),
      THREADS: threadsOf(rank),
    };
  },
  bytes: ({ rank }) => 4 * (equationValues({ rank, biases: false }).PADDED + threadsOf(rank)),
  samples: [
    { rank: 40, biases: true, first: true },
    { rank: 512, biases: false, first: true },
    { rank: 100, biases: true, first: false },
  ],
});

interface EquationProductInputs {
  readonly equations: DeviceMatrix;
  /** x, or the search direction. */
  readonly vectors: DeviceMatrix;
  /** Gradients, or products. */
  readonly sums: DeviceMatrix;
}

/**
 * Adds the products of A with the vectors of the rows [from, to), or their residuals, to `sums`, in one
 * submission.
 */
export async function addEquationProducts(
  gpu: Gpu,
  { equations, vectors, sums }: EquationProductInputs,
  { rank, biases, first, from, to }: EquationProductsParams & { readonly from: number; readonly to: number },
  options: Pick<SubmitOptions, 'timed' | 'submitted'> = {},
): Promise<KernelTimes> {
  const kernel = await gpu.compile(equationProductsKernel, { rank, biases, first });
  const pass = gpu.pass(first ? 'equation-residuals' : 'equation-products');
  if (to > from)
    pass.dispatch(
      kernel,
      { equations: equations.values, vectors: vectors.values, sums: sums.values },
      { count: to - from, first: from, stride: equations.stride },
      to - from,
    );
  return (await pass.submit(options)).times;
}
