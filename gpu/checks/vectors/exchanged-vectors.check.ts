/**
 * Checks of half-iterations whose devices exchange vectors, from vertical parts of θ: the rows after a number
 * of steps against as many in float64.
 */
import { conjugateGradient } from '../../../cpu/reference/conjugate-gradient.ts';
import { gramMatrix, implicitEquations } from '../../../cpu/reference/implicit.ts';
import { verticalParts } from '../../../cpu/reference/vertical-parts.ts';
import type { ImplicitWeights } from '../../../operators/tasks/tasks.ts';
import { destroyBuffers, type DeviceMatrix } from '../../device/resources.ts';
import {
  addVectorProducts,
  type ProductSettings,
  takeStep,
} from '../../vectors/exchanged/exchanged-vectors.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { type KernelCheck, variantOf } from '../support/check.ts';
import { CG_BIAS_LIMIT, CG_LIMIT } from '../support/limits.ts';
import { deviation, worse } from '../support/numbers.ts';
import { commonProblem, problemBuffers, problemError } from '../support/rated-problem.ts';
import { uploadAll } from '../support/rated-rows.ts';
import { downloadOutputs, solvedRow } from '../support/solved-rows.ts';
import { gradientQuads } from '../../vectors/exchanged/gradients.ts';
import { partProductsKernel } from '../../vectors/exchanged/part-products.ts';

type Shape = {
  readonly rank: number;
  readonly kind: 'explicit' | 'biases' | 'implicit';
  readonly p: number;
  readonly steps: number;
  readonly lanes?: number;
};

const WEIGHTS: ImplicitWeights = { alpha: 3, base: 1 };
const GRAM_WEIGHT = 0.7;

/** Ratings of the longest row: several parts. */
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
];

export const exchangedVectorChecks: readonly KernelCheck[] = shapes.map((shape) => ({
  name: partProductsKernel.name,
  variant: variantOf(shape),
  run: (gpu: Gpu) => check(gpu, shape),
}));

async function check(
  gpu: Gpu,
  { rank, kind, p, steps, lanes }: Shape,
): Promise<{ error: number; limit: number }> {
  const [biases, implicit] = [kind === 'biases', kind === 'implicit'];
  const lengths = [1, 0, 64, 65, LONGEST, 33, 32, 2, 700, 16, 7, 0, 130, 1];
  const rows = lengths.length;
  const problem = commonProblem({ rank, biases, precision: 'f32', lengths });
  const { ratings } = problem;
  const { stride } = ratings;
  const { quads, gradients: rowQuads } = gradientQuads(rank, biases);
  const zeros = {
    gradients: new Float32Array(4 * rowQuads * rows),
    direction: new Float32Array(4 * quads * rows),
    products: new Float32Array(4 * quads * rows),
  };
  const buffers = { ...(await problemBuffers(gpu, problem, 'f32')), ...(await uploadAll(gpu, zeros)) };
  const matrix = (values: GPUBuffer, columns = rank, own = stride): DeviceMatrix => ({
    rows,
    columns,
    stride: own,
    values,
  });
  const [gradients, direction, products, factors] = [
    matrix(buffers.gradients, 4 * rowQuads, 4 * rowQuads),
    matrix(buffers.direction),
    matrix(buffers.products),
    matrix(buffers.factors),
  ];
  const previous = matrix(buffers.previous);

  const parts = await Promise.all(
    verticalParts(ratings, ratings.columns, p).map(
      async ({ first, last, offsets, indices: columns, values: rated }) => {
        const {
          offsets: rowPointers,
          indices,
          values,
          theta,
          bias,
        } = await uploadAll(gpu, {
          offsets,
          indices: columns,
          values: rated,
          theta: ratings.theta.slice(first * stride, last * stride),
          bias: ratings.fixedBias.slice(first, last),
        });
        const block = {
          rows,
          ratings: columns.length,
          offsets,
          columns,
          rowPointers,
          indices,
          values,
          prepared: new Map<string, unknown>(),
        };
        return { block, fixed: { rows: last - first, columns: rank, stride, values: theta }, bias };
      },
    ),
  );
  const addAll = async (
    settings: Pick<ProductSettings, 'first'>,
    vectors: DeviceMatrix,
    sums: DeviceMatrix,
  ) => {
    for (const { block, fixed, bias } of parts)
      await addVectorProducts(
        gpu,
        { block, fixed, vectors, sums, ...(biases && settings.first ? { fixedBias: bias } : {}) },
        {
          ...settings,
          ...(lanes === undefined ? {} : { teams: { threads: 64, lanes, width: 4 } }),
          rank,
          from: 0,
          to: rows,
          mean: ratings.mean,
          ...(implicit ? { implicit: WEIGHTS } : {}),
        },
      );
  };
  const shifts = Float32Array.from(lengths, (_, row) => 0.5 + row);
  const gram = gramMatrix(ratings.theta, stride, rank, ratings.columns, GRAM_WEIGHT);
  const more = implicit ? await uploadAll(gpu, { shifts, gram: padded(gram, rank, stride) }) : {};
  const settings = { rank, from: 0, to: rows, ...problem.regularization };
  await addAll({ first: true }, previous, gradients);
  await takeStep(gpu, { given: previous, gradients, factors, direction, ...more }, 'begin', settings);
  for (let step = 0; step < steps; step++) {
    gpu.device.queue.writeBuffer(buffers.products, 0, zeros.products);
    await addAll({ first: false }, direction, products);
    await takeStep(gpu, { given: products, gradients, factors, direction, ...more }, 'step', settings);
  }
  const badRow = await takeStep(
    gpu,
    { gradients, factors, ...(biases ? { bias: buffers.bias } : {}) },
    'end',
    settings,
  );
  let error = badRow === -1 ? 0 : Infinity;
  if (implicit) {
    const outputs = await downloadOutputs(gpu, buffers, problem);
    lengths.forEach((length, row) => {
      const { x, wrong } = solvedRow({ rank, stride }, row, { factors: outputs.factors });
      const start = Float64Array.from(problem.previous.subarray(row * stride, row * stride + rank));
      const expected = () => {
        const { matrix: a, bias: b } = implicitEquations(
          gram,
          ratings.theta,
          stride,
          rank,
          ratings.part(ratings.offsets[row], length),
          WEIGHTS,
          shifts[row],
        );
        return conjugateGradient(a, b, start, steps);
      };
      error = worse(error, worse(wrong, length === 0 ? Math.hypot(...x) : deviation(x, expected())));
    });
  } else error = worse(error, await problemError(gpu, problem, buffers, false, { steps, exactTo: -1 }));
  destroyBuffers({
    buffers,
    more,
    parts: parts.flatMap(({ block, fixed, bias }) => [
      block.rowPointers,
      block.indices,
      block.values,
      fixed.values,
      bias,
      ...block.prepared.values(),
    ]),
  });
  return { error, limit: biases ? CG_BIAS_LIMIT : CG_LIMIT };
}

function padded(gram: Float64Array, rank: number, stride: number): Float32Array {
  const values = new Float32Array(stride * stride);
  gram.forEach((value, at) => (values[Math.floor(at / rank) * stride + (at % rank)] = value));
  return values;
}
