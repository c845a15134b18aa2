import { MOST_FORMED, paddedRank } from '../device/slots.ts';
import { gramProductsKernel, gramProductsWorkgroups } from '../implicit/gram.task.ts';
import { addPriorKernel } from '../solve/prior.ts';
import { shiftValues, solvedRows } from '../solve/row-shifts.ts';
import { BIAS_TOLERANCE, RESIDUAL_TOLERANCE } from '../solve/solve-cg.ts';
import type { SumKernel, UpdateSettings } from '../update/choice/variant.ts';
import type { PreparedRows } from '../update/prepared-rows.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { type Binding, type BuffersOf, type CompiledKernel, kernelOf, range } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';
import { type RatedBuffers, ratingProducts } from './products.ts';
import { vectorQuads } from './vectors.ts';

/**
 * A phase of conjugate gradients; vector-step.wgsl describes them. Between two phases other kernels multiply
 * the rows' matrices by vectors.
 */
export type Phase = VectorStepParams['phase'] | 'end';

type PhaseShape = Omit<VectorStepParams, 'phase'> & {
  /** The phase `end` writes the float16 mirror of the factors. */
  readonly half: boolean;
};

type PhaseBuffers = Readonly<
  Record<BuffersOf<typeof vectorStepKernel> | BuffersOf<typeof endVectorsKernel> | 'multiplied', Binding>
>;

type GivenBuffers = Pick<PhaseBuffers, 'gradients' | 'factors' | 'shifts' | 'status'> & {
  readonly [Name in keyof PhaseBuffers]?: PhaseBuffers[Name] | undefined;
};

/**
 * All buffers of the phases. For a buffer that is not used, a separate one of a few bytes is bound, because
 * WebGPU does not allow two bindings of one writable buffer.
 */
export async function phaseBuffers(gpu: Gpu, given: GivenBuffers): Promise<PhaseBuffers> {
  const names = ['work', 'given', 'gram', 'multiplied', 'direction', 'half', 'bias'] as const;
  const entries = await Promise.all(
    names.map(async (name) => [name, given[name] ?? (await gpu.scratch(`no ${name}`, 16))] as const),
  );
  return { ...given, ...(Object.fromEntries(entries) as Record<(typeof names)[number], Binding>) };
}

/** Most bytes of products with the Gram matrix, where the rows are consecutive. */
const MULTIPLIED_BYTES = 64 << 20;

/**
 * Rows of the buffer `multiplied`, in which gram-products stores the products of the rows' directions with
 * the Gram matrix; 0 if there are none. Listed rows have all of them at once. Others are taken in ranges.
 */
export function multipliedRows(
  { rank, implicit, listed }: Pick<PhaseShape, 'rank' | 'implicit' | 'listed'>,
  count: number,
): number {
  if (!implicit || !isMultiplied(rank)) return 0;
  return listed ? count : Math.min(count, Math.floor(MULTIPLIED_BYTES / (4 * paddedRank(rank))));
}

export class RowPhases {
  readonly #shape: PhaseShape;
  readonly #kernels: ReadonlyMap<Phase, CompiledKernel>;
  /** The kernel that multiplies directions by the Gram matrix, if it is not part of the phases. */
  readonly #gram: CompiledKernel | undefined;

  private constructor(
    shape: PhaseShape,
    kernels: ReadonlyMap<Phase, CompiledKernel>,
    gram: CompiledKernel | undefined,
  ) {
    this.#shape = shape;
    this.#kernels = kernels;
    this.#gram = gram;
  }

  static async compile(gpu: Gpu, shape: PhaseShape, phases: readonly Phase[]): Promise<RowPhases> {
    const { half, ...step } = shape;
    const { rank, biases, listed } = shape;
    const multiplies = multipliedRows(shape, 1) > 0 && phases.some((phase) => needsProducts(phase));
    const [gram, ...compiled] = await Promise.all([
      multiplies ? gpu.compile(gramProductsKernel, { rank }) : undefined,
      ...phases.map(async (phase): Promise<readonly [Phase, CompiledKernel]> => [
        phase,
        phase === 'end'
          ? await gpu.compile(endVectorsKernel, { rank, biases, listed, half })
          : await gpu.compile(vectorStepKernel, { ...step, phase }),
      ]),
    ]);
    return new RowPhases(shape, new Map(compiled), gram);
  }

  /** Adds a phase of `count` rows to a pass: the rows of `work`, or the rows from `first` on. */
  add(
    pass: Pass,
    phase: Phase,
    buffers: PhaseBuffers,
    { first = 0, count }: { readonly first?: number; readonly count: number },
  ): void {
    const compiled = this.#kernels.get(phase);
    if (compiled === undefined) throw new Error(`the phase ${phase} was not compiled`);
    const { rank } = this.#shape;
    const add = (bindings: Readonly<Record<string, Binding>>, range: { first: number; count: number }) =>
      pass.dispatch(compiled, bindings, range, Math.ceil(range.count / rowLanes(rank).rows));
    const gram = needsProducts(phase) ? this.#gram : undefined;
    if (gram === undefined) return void add(buffers, { first, count });
    const { direction: vectors, gram: matrix, multiplied: products } = buffers;
    const most = multipliedRows(this.#shape, count);
    for (let done = 0; done < count; done += most) {
      const range = { first: first + done, count: Math.min(most, count - done) };
      pass.dispatch(
        gram,
        { vectors, gram: matrix, products },
        range,
        gramProductsWorkgroups({ rank }, range.count),
      );
      add({ ...buffers, gram: products }, range);
    }
  }
}

/** Phases that need the product of A with the rows' directions. */
function needsProducts(phase: Phase): boolean {
  return phase === 'begin' || phase === 'step';
}

/**
 * Most threads of a row at ranks up to MOST_FORMED, and most groups of four features of a thread above, whose
 * registers hold them of five vectors.
 */
const MOST_LANES = 32;
const MOST_OWNED = 4;
const THREADS = 64;
/** A workgroup has more than one row only if their vectors take at most this number of bytes. */
const VECTOR_BYTES = 8192;

/**
 * For kernels of matrix-free conjugate gradients: the number of threads that share a row, and the number of
 * rows in a workgroup.
 */
function rowLanes(rank: number): { readonly lanes: number; readonly rows: number } {
  const quads = paddedRank(rank) / 4;
  const most = rank > MOST_FORMED ? quads / MOST_OWNED : Math.min(MOST_LANES, quads);
  const lanes = 2 ** Math.ceil(Math.log2(most));
  return { lanes, rows: Math.max(1, Math.min(THREADS / lanes, Math.floor(VECTOR_BYTES / (16 * quads)))) };
}

/**
 * Template values of the shaders in parts/conjugate-gradients.wgsl, in which `lanes` threads keep the vectors of a row in
 * registers.
 */
function laneValues(rank: number, { lanes, rows }: { readonly lanes: number; readonly rows: number }) {
  const quads = paddedRank(rank) / 4;
  return {
    QUADS: quads,
    LANES: lanes,
    SHARES: Math.min(lanes, quads),
    ROWS: rows,
    THREADS: lanes * rows,
    // Groups of four features that a thread keeps.
    owned: range(Math.ceil(quads / lanes)),
    tolerances: { residual: RESIDUAL_TOLERANCE, bias: BIAS_TOLERANCE },
  };
}

export type VectorStepParams = {
  readonly rank: number;
  readonly biases: boolean;
  /** With a Gram matrix, which A of implicit data contains. */
  readonly implicit: boolean;
  /**
   * True: rows are taken from a list (row, first slot, number n of ratings, number of slots), and the
   * products are in their slots. False: the rows are consecutive.
   */
  readonly listed: boolean;
  readonly phase: 'gather' | 'begin' | 'step';
};

/**
 * One phase of matrix-free conjugate gradients, on vectors in buffers (layouts: vectors.ts). A row's vectors
 * in `gradients` and `direction` have the index of its entry in the list, or without a list the row's number.
 * `gram` is only read for implicit data and `work` only with a list; otherwise any buffer may be bound.
 *
 * | rank | `gram` |
 * |---|---|
 * | to 128 | the Gram matrix, which each row multiplies by its vector |
 * | above | products of the Gram matrix and the directions of these rows, from gram-products |
 */
export const vectorStepKernel = kernelOf<VectorStepParams>()({
  name: 'vector-step',
  reads: {
    work: 'array<vec4u>',
    /**
     * | phase | listed rows | consecutive rows |
     * |---|---|---|
     * | `gather` | x of the previous iteration | the same |
     * | `begin` | slots of the residual | not read |
     * | `step` | slots of A p | A p of whole rows |
     */
    given: 'array<vec4f>',
    gram: 'array<vec4f>',
    shifts: 'array<f32>',
  },
  writes: { gradients: 'array<vec4f>', factors: 'array<vec4f>', direction: 'array<vec4f>' },
  /** `first`: the first of consecutive rows. */
  uniforms: { count: 'u32', first: 'u32' },
  values(params) {
    const { rank, biases, listed } = params;
    const { quads, gradients, slot } = vectorQuads(rank, biases);
    return {
      ...params,
      ...laneValues(rank, rowLanes(rank)),
      ...shiftValues(biases),
      multiplies: params.implicit && !isMultiplied(rank),
      ROW_QUADS: gradients,
      GIVEN_QUADS: listed ? slot : quads,
    };
  },
  bytes({ rank, implicit }) {
    const { lanes, rows } = rowLanes(rank);
    const vectors = implicit && !isMultiplied(rank) ? 16 * rows * vectorQuads(rank, false).quads : 0;
    return 8 * lanes * rows + vectors;
  },
  samples: (['gather', 'begin', 'step'] as const).flatMap((phase) => [
    { rank: 264, biases: true, implicit: false, listed: true, phase },
    { rank: 40, biases: false, implicit: true, listed: false, phase },
    { rank: 264, biases: false, implicit: true, listed: true, phase },
    { rank: 4096, biases: false, implicit: true, listed: true, phase },
  ]),
});

/**
 * The largest rank at which each row multiplies the Gram matrix by its own vector: it then fits a fast
 * cache.
 */
const MOST_IN_ROW = 128;

/**
 * True at ranks at which gram-products multiplies the vectors of many rows by the Gram matrix. A row alone
 * would read the whole matrix for one product.
 */
function isMultiplied(rank: number): boolean {
  return rank > MOST_IN_ROW;
}

export type EndVectorsParams = {
  readonly rank: number;
  readonly biases: boolean;
  /** True: rows are taken from a list; see vector-step. */
  readonly listed: boolean;
  /** The float16 mirror of the factors is written too. */
  readonly half: boolean;
};

/**
 * The end of matrix-free conjugate gradients, after the last step of vector-step: writes the solved rows to
 * `factors`, `half`, `bias` and `status`, as solve-cholesky does.
 */
export const endVectorsKernel = kernelOf<EndVectorsParams>()({
  name: 'end-vectors',
  reads: { work: 'array<vec4u>', gradients: 'array<vec4f>', shifts: 'array<f32>' },
  writes: solvedRows,
  uniforms: { count: 'u32', first: 'u32' },
  values: (params) => ({
    ...params,
    ...laneValues(params.rank, rowLanes(params.rank)),
    ...shiftValues(params.biases),
    ROW_QUADS: vectorQuads(params.rank, params.biases).gradients,
  }),
  bytes({ rank }) {
    const { lanes, rows } = rowLanes(rank);
    return 8 * lanes * rows;
  },
  samples: [
    { rank: 264, biases: true, listed: true, half: true },
    { rank: 40, biases: false, listed: false, half: false },
  ],
});

/** The buffers of a half-iteration. */
interface RowBuffers extends RatedBuffers {
  readonly previous: Binding;
  /** The Gram matrix; of implicit data only. */
  readonly gram?: Binding;
  readonly shifts: Binding;
  readonly factors: Binding;
  readonly half: Binding;
  readonly bias: Binding;
  readonly status: Binding;
  /** See UpdateInputs. */
  readonly prior?: Binding;
  readonly prior_bias?: Binding;
}

interface VectorSettings extends Omit<UpdateSettings, 'variant'> {
  readonly sum: Extract<SumKernel, { readonly kernel: 'vectors' }>;
  readonly half: boolean;
  readonly biases: boolean;
  readonly steps: number;
}

/**
 * Adds to a pass the kernels that solve batches of rows by matrix-free conjugate gradients, on one device.
 * The phases are the same as with several devices (vectors.task.ts), but products stay in the parts'
 * slots. The ratings are read once for the residual, and once in each step.
 */
export async function addVectorSteps(
  gpu: Gpu,
  pass: Pass,
  { batches, slotBytes }: PreparedRows,
  settings: VectorSettings,
  { previous, ...bindings }: RowBuffers,
): Promise<void> {
  const { rank, biases, steps, implicit } = settings;
  const { prior, prior_bias } = bindings;
  const [residuals, products, phases, addPrior] = await compileVectorSteps(gpu, {
    ...settings,
    prior: prior !== undefined,
  });
  const most = batches.reduce((rows, { rowCount }) => Math.max(rows, rowCount), 1);
  const { quads, gradients } = vectorQuads(rank, biases);
  const slots = await gpu.scratch('slots', slotBytes);
  const multiplied = multipliedRows({ rank, implicit: implicit !== undefined, listed: true }, most);
  const buffers = await phaseBuffers(gpu, {
    ...bindings,
    given: slots,
    gradients: await gpu.scratch('gradients', 16 * gradients * most),
    direction: await gpu.scratch('directions', 16 * quads * most),
    ...(multiplied > 0 ? { multiplied: await gpu.scratch('gram products', 16 * quads * multiplied) } : {}),
  });
  const multiply = { residuals: residuals(bindings), products: products(bindings) };
  for (const batch of batches) {
    const own = { ...buffers, work: batch.rows };
    const rows = { count: batch.rowCount };
    phases.add(pass, 'gather', { ...own, given: previous }, rows);
    multiply.residuals(pass, batch, own.direction, slots);
    if (addPrior && prior && prior_bias)
      pass.dispatch(addPrior, { ...own, previous, prior, prior_bias, slots }, rows, rows.count);
    phases.add(pass, 'begin', own, rows);
    for (let step = 0; step < steps; step++) {
      multiply.products(pass, batch, own.direction, slots);
      phases.add(pass, 'step', own, rows);
    }
    phases.add(pass, 'end', own, rows);
  }
}

/**
 * Compiles the kernels of addVectorSteps: the product for the residual, the product of a step, and the
 * phases between them.
 */
export function compileVectorSteps(
  gpu: Gpu,
  {
    rank,
    sum,
    half,
    biases,
    implicit,
    prior,
  }: Pick<VectorSettings, 'rank' | 'sum' | 'half' | 'biases' | 'implicit'> & { readonly prior?: boolean },
) {
  const { threads, lanes, width } = sum;
  const precision = half ? 'f16' : 'f32';
  const shape = { rank, precision, biases, implicit, teams: { threads, lanes, width } } as const;
  return Promise.all([
    ratingProducts(gpu, { ...shape, first: true }),
    ratingProducts(gpu, { ...shape, first: false }),
    RowPhases.compile(gpu, { rank, biases, half, implicit: implicit !== undefined, listed: true }, [
      'gather',
      'begin',
      'step',
      'end',
    ]),
    prior ? gpu.compile(addPriorKernel, { rank, biases, vectors: true }) : undefined,
  ]);
}
