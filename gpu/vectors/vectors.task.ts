/**
 * The tasks of conjugate gradients on several devices (operators/tasks/vector-tasks.ts), each in one
 * submission for all rows of the range. Every device multiplies its ratings by the rows' vectors, the products
 * are summed over the devices, and the device that owns a row takes its step.
 */
import type { DeviceMatrix } from '../device/resources.ts';
import { type EquationsParams, equationValues } from '../equations/equation-slots.ts';
import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';
import { addMatrixShifts } from '../solve/row-shifts.ts';
import { addCentred } from '../update/centred.ts';
import { REGIONS, type UpdateVariant } from '../update/choice/variant.ts';
import { prepareRows } from '../update/prepared-rows.ts';
import { submitSolved } from '../update/solved-pass.ts';
import { kernelOf } from '../webgpu/kernel.ts';
import { ratingProducts } from './products.ts';
import { multipliedRows, type Phase, phaseBuffers, RowPhases } from './row-phases.ts';
import { vectorQuads } from './vectors.ts';

export const addResiduals: GpuTaskHandler<'add-residuals'> = (scope) =>
  addRatingProducts(scope, { vectors: 'previous', sums: 'gradients', first: true });

export const addProducts: GpuTaskHandler<'add-products'> = (scope) =>
  addRatingProducts(scope, { vectors: 'direction', sums: 'products', first: false });

export const equationResiduals: GpuTaskHandler<'equation-residuals'> = (scope) =>
  addEquationProducts(scope, { vectors: 'previous', sums: 'gradients', first: true });

export const equationProducts: GpuTaskHandler<'equation-products'> = (scope) =>
  addEquationProducts(scope, { vectors: 'direction', sums: 'products', first: false });

export const beginGradients: GpuTaskHandler<'begin-gradients'> = async (scope) => {
  await takeStep(scope, ['gather', 'begin'], scope.matrix('previous'));
  return { rows: scope.params.to - scope.params.from };
};

export const stepGradients: GpuTaskHandler<'step-gradients'> = async (scope) => {
  await takeStep(scope, ['step'], scope.matrix('products'));
  return { rows: scope.params.to - scope.params.from };
};

export const endGradients: GpuTaskHandler<'end-gradients'> = async (scope) => {
  const badRow = await takeStep(scope, ['end']);
  return { rows: scope.params.to - scope.params.from, values: { badRow } };
};

/** The names of a task's data: x or the search direction, and gradients (`first`) or products. */
interface ProductNames {
  readonly vectors: 'previous' | 'direction';
  readonly sums: 'gradients' | 'products';
  readonly first: boolean;
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

/** Multiplies the ratings of rows by the rows' vectors, and adds the products to the sums. */
async function addRatingProducts(
  scope: GpuScopeOf<'add-residuals'> | GpuScopeOf<'add-products'>,
  { vectors, sums, first }: ProductNames,
) {
  const { gpu, submitted } = scope;
  const { rank, from, to, implicit, mean = 0 }: GpuScopeOf<'add-residuals'>['params'] = scope.params;
  const [block, fixed, target] = [scope.block('block'), scope.matrix('fixed'), scope.matrix(sums)];
  const fixedBias = scope.has('fixedBias') ? scope.vector('fixedBias') : undefined;
  const biases = fixedBias !== undefined;
  const { gradients, quads } = vectorQuads(rank, biases);
  if (target.stride !== 4 * (first ? gradients : quads))
    throw new Error(
      `sums of rank ${rank}${biases ? ' with biases' : ''} have ${target.stride} numbers a row`,
    );
  const settings = { variant: PARTS, from, to, rank, lambda: 0 };
  const rows = await prepareRows(gpu, block, settings, fixed.rows, biases, true);
  const pass = gpu.pass(first ? 'add-residuals' : 'add-products');
  if (rows.batches.length > 0) {
    const [multiply, add] = await Promise.all([
      ratingProducts(gpu, { rank, precision: 'f32', biases, implicit, first }),
      gpu.compile(addProductsKernel, { rank, biases, first }),
    ]);
    const values = await addCentred(gpu, pass, { block, fixedBias }, { ...settings, mean });
    const slots = await gpu.scratch('slots', rows.slotBytes);
    const ofBlock = multiply({ indices: block.indices, values, fixed: fixed.values });
    for (const batch of rows.batches) {
      ofBlock(pass, batch, scope.matrix(vectors).values, slots);
      pass.dispatch(
        add,
        { work: batch.rows, slots, sums: target.values },
        { count: batch.rowCount },
        batch.rowCount,
      );
    }
  }
  await pass.submit({ submitted });
  return { rows: to - from };
}

/** True if rows of gradients are long enough for the sums that biases need. */
function hasBiases({ stride }: DeviceMatrix, rank: number): boolean {
  return stride > 4 * vectorQuads(rank, false).gradients;
}

/**
 * Runs phases of the kernels on the rows [from, to). Returns the first solved row that is not finite, or -1.
 * `given`: x of the previous iteration, or the products A p.
 */
async function takeStep(
  scope: GpuScopeOf<'begin-gradients'> | GpuScopeOf<'step-gradients'> | GpuScopeOf<'end-gradients'>,
  steps: readonly Phase[],
  given?: DeviceMatrix,
): Promise<number> {
  const { gpu, params, submitted } = scope;
  const { rank, from, to } = params;
  const { stride, values: gradients } = scope.matrix('gradients');
  const biases = hasBiases(scope.matrix('gradients'), rank);
  // Implicit data have a Gram matrix, and shifts that contain λ.
  const implicit = scope.has('gram');
  const shape = { rank, biases, implicit, listed: false };
  const { quads } = vectorQuads(rank, biases);
  const phases = await RowPhases.compile(gpu, { ...shape, half: false }, steps);
  const label = `${steps.at(-1)}-gradients`;
  const { badRow } = await submitSolved(gpu, label, params, { submitted }, async (pass, status) => {
    if (to === from) return;
    const multiplied = multipliedRows(shape, to - from);
    const counts = { matrix: gradients, stride, column: 4 * quads, row: 0 };
    const buffers = await phaseBuffers(gpu, {
      gram: implicit ? scope.matrix('gram').values : undefined,
      multiplied: multiplied > 0 ? await gpu.scratch('gram products', 16 * quads * multiplied) : undefined,
      shifts: implicit ? scope.vector('shifts') : await addMatrixShifts(gpu, pass, counts, params, biases),
      given: given?.values,
      gradients,
      factors: scope.matrix('factors').values,
      // The last step reads no directions.
      direction: given && scope.matrix('direction').values,
      bias: !given && biases ? scope.vector('bias') : undefined,
      status,
    });
    for (const phase of steps) phases.add(pass, phase, buffers, { first: from, count: to - from });
  });
  return badRow;
}

/** Adds the products of A with the rows' vectors, or their residuals, to the sums. */
async function addEquationProducts(
  scope: GpuScopeOf<'equation-residuals'> | GpuScopeOf<'equation-products'>,
  { vectors, sums, first }: ProductNames,
) {
  const { gpu, submitted } = scope;
  const { rank, from, to } = scope.params;
  const target = scope.matrix(sums);
  const { stride, values: equations } = scope.matrix('equations');
  const biases = first && hasBiases(target, rank);
  const kernel = await gpu.compile(equationProductsKernel, { rank, biases, first });
  await gpu
    .pass(first ? 'equation-residuals' : 'equation-products')
    .dispatch(
      kernel,
      { equations, vectors: scope.matrix(vectors).values, sums: target.values },
      { count: to - from, first: from, stride },
      to - from,
    )
    .submit({ submitted });
  return { rows: to - from };
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
