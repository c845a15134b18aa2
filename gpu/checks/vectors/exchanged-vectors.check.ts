/**
 * Checks of half-iterations by conjugate gradients on several devices, each with a range of the rows of θ and
 * the ratings of these columns. The devices exchange vectors: products of their ratings with the rows'
 * vectors. Rows are compared with the same number of CG steps in float64.
 */
import { destroyBuffers, type DeviceMatrix, strideOf } from '../../device/resources.ts';
import { addEquations, type AddSettings, summingNamed } from '../../equations/normal-equations.task.ts';
import { equationValues } from '../../equations/equation-slots.ts';
import {
  addEquationProducts,
  addVectorProducts,
  equationProductsKernel,
  takeStep,
} from '../../vectors/vectors.task.ts';
import { vectorQuads } from '../../vectors/vectors.ts';
import { wideProductsKernel } from '../../vectors/products.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { type KernelCheck, variantOf, CG_BIAS_LIMIT, CG_LIMIT } from '../support/check.ts';
import {
  destroyParts,
  lengthsTo,
  type ProblemPart,
  problemParts,
  commonProblem,
  problemBuffers,
  problemError,
  type RatedProblem,
  uploadImplicit,
} from '../support/rated-problem.ts';

type Shape = {
  readonly rank: number;
  readonly kind: 'explicit' | 'biases' | 'implicit';
  readonly p: number;
  readonly steps: number;
  readonly lanes?: number;
  /** Ratings of the longest row; default LONGEST. */
  readonly longest?: number;
  /**
   * True: each part forms the matrix A of its ratings and multiplies that by the vectors. False: the ratings
   * themselves.
   */
  readonly forms?: boolean;
};

/** Ratings of the longest row, enough for several parts. */
const LONGEST = 5000;

const shapes: readonly Shape[] = [
  { rank: 10, kind: 'explicit', p: 3, steps: 4 },
  { rank: 100, kind: 'explicit', p: 2, steps: 6 },
  { rank: 300, kind: 'explicit', p: 2, steps: 4 },
  { rank: 20, kind: 'explicit', p: 2, steps: 4, lanes: 4 },
  { rank: 65, kind: 'biases', p: 2, steps: 3, lanes: 2 },
  { rank: 33, kind: 'biases', p: 3, steps: 4 },
  { rank: 128, kind: 'biases', p: 1, steps: 3 },
  { rank: 17, kind: 'implicit', p: 2, steps: 3 },
  { rank: 100, kind: 'implicit', p: 3, steps: 3 },
  { rank: 520, kind: 'biases', p: 2, steps: 3, longest: 800 },
  { rank: 520, kind: 'implicit', p: 2, steps: 3, longest: 800 },
  { rank: 10, kind: 'explicit', p: 3, steps: 4, forms: true },
  { rank: 300, kind: 'explicit', p: 2, steps: 4, forms: true },
  { rank: 65, kind: 'biases', p: 2, steps: 3, forms: true },
  { rank: 100, kind: 'implicit', p: 3, steps: 3, forms: true },
];

/** The kernel that multiplies by vectors, on an adapter without subgroups of 32 threads. */
function multiplierOf({ forms }: Shape): { readonly name: string } {
  return forms ? equationProductsKernel : wideProductsKernel;
}

export const exchangedVectorChecks: readonly KernelCheck[] = shapes.map((shape) => ({
  name: multiplierOf(shape).name,
  variant: variantOf(shape),
  run: (gpu: Gpu) => check(gpu, shape),
}));

async function check(gpu: Gpu, shape: Shape): Promise<{ error: number; limit: number }> {
  const { rank, kind, p, steps, longest = LONGEST } = shape;
  const biases = kind === 'biases';
  const problem = commonProblem({
    rank,
    biases,
    precision: 'f32',
    lengths: lengthsTo(longest),
    ...(kind === 'implicit' && { implicit: { alpha: 3 } }),
  });
  const buffers = await problemBuffers(gpu, problem, 'f32');
  const parts = await problemParts(gpu, problem, p);
  const badRow = await solveByExchange(gpu, shape, problem, buffers, parts);
  const error = await problemError(gpu, problem, buffers, false, { steps, exactTo: -1 });
  destroyBuffers({ buffers });
  destroyParts(parts);
  return { error: badRow === -1 ? error : Infinity, limit: biases ? CG_BIAS_LIMIT : CG_LIMIT };
}

/**
 * Solves all rows as the tasks do: products with each part's ratings, their sums, and CG steps between them.
 */
async function solveByExchange(
  gpu: Gpu,
  { rank, kind, steps, lanes, forms = false }: Shape,
  problem: RatedProblem,
  buffers: Readonly<Record<'previous' | 'factors' | 'bias', GPUBuffer>>,
  parts: readonly ProblemPart[],
): Promise<number> {
  const { ratings, lengths, regularization, implicit } = problem;
  const rows = lengths.length;
  const biases = kind === 'biases';
  const zeros = async (quads: number): Promise<DeviceMatrix> => ({
    rows,
    columns: 4 * quads,
    stride: 4 * quads,
    values: await gpu.bufferOf(new Float32Array(4 * quads * rows), 'zeros'),
  });
  const { quads, gradients: gradientQuads } = vectorQuads(rank, biases);
  const [gradients, direction, products] = await Promise.all([gradientQuads, quads, quads].map(zeros));
  const given = (values: GPUBuffer): DeviceMatrix => ({ ...direction, columns: rank, values });
  const [previous, factors] = [given(buffers.previous), given(buffers.factors)];
  const more = implicit ? await uploadImplicit(gpu, problem) : {};
  const settings = { rank, from: 0, to: rows, ...regularization };
  const teams = lanes === undefined ? {} : { teams: { threads: 64, lanes, width: 4 } };
  const weights = implicit ? { implicit: implicit.weights } : {};
  const equations = forms
    ? await equationsOf(gpu, parts, { ...settings, mean: ratings.mean, ...weights }, biases)
    : undefined;
  const addAll = async (first: boolean, vectors: DeviceMatrix, sums: DeviceMatrix) => {
    if (equations !== undefined) {
      for (const own of equations)
        await addEquationProducts(gpu, { equations: own, vectors, sums }, { ...settings, biases, first });
      return;
    }
    for (const { block, fixed, fixedBias } of parts)
      await addVectorProducts(
        gpu,
        { block, fixed, vectors, sums, ...(first && fixedBias ? { fixedBias } : {}) },
        { ...settings, first, mean: ratings.mean, ...teams, ...weights },
      );
  };
  await addAll(true, previous, gradients);
  await takeStep(gpu, { given: previous, gradients, factors, direction, ...more }, 'begin', settings);
  for (let step = 0; step < steps; step++) {
    gpu.device.queue.writeBuffer(products.values, 0, new Float32Array(4 * quads * rows));
    await addAll(false, direction, products);
    await takeStep(gpu, { given: products, gradients, factors, direction, ...more }, 'step', settings);
  }
  const bias = biases ? { bias: buffers.bias } : {};
  const badRow = await takeStep(gpu, { gradients, factors, ...bias }, 'end', settings);
  destroyBuffers({ more, own: [gradients, direction, products], equations: equations ?? [] });
  return badRow;
}

/** The equations of all rows over the ratings of each part, in float32. */
async function equationsOf(
  gpu: Gpu,
  parts: readonly ProblemPart[],
  settings: Omit<AddSettings, 'variant' | 'rowStart' | 'scale'>,
  biases: boolean,
): Promise<DeviceMatrix[]> {
  const { rank, to: rows, implicit } = settings;
  const variant = summingNamed(gpu, 'tiled8-f32', { rank, biases, implicit: implicit !== undefined });
  const columns = equationValues({ rank, biases }).COLUMNS;
  const stride = strideOf(columns);
  const all: DeviceMatrix[] = [];
  for (const part of parts) {
    const values = await gpu.bufferOf(new Float32Array(rows * stride), 'equations');
    const equations = { rows, columns, stride, values };
    await addEquations(
      gpu,
      { fixedBias: undefined, ...part, equations },
      { ...settings, variant, rowStart: 0, scale: 1 },
    );
    all.push(equations);
  }
  return all;
}
