import type { DeviceMatrix } from '../device/resources.ts';
import { type EquationsParams, equationValues } from '../equations/exchange/slot-columns.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import type { KernelTimes, SubmitOptions } from '../webgpu/pass.ts';
import { vectorQuads } from './vectors.ts';

export type EquationProductsParams = EquationsParams & {
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
  bindings: [...reads({ equations: 'array<f32>', vectors: 'array<f32>' }), ...writes({ sums: 'array<f32>' })],
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
  workgroup: ({ rank }) => ({
    threads: threadsOf(rank),
    bytes: 4 * (equationValues({ rank, biases: false }).PADDED + threadsOf(rank)),
  }),
  samples: [
    { rank: 40, biases: true, first: true },
    { rank: 512, biases: false, first: true },
    { rank: 100, biases: true, first: false },
  ],
});

export interface EquationProductInputs {
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
