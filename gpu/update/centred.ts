import type { DeviceBlock } from '../device/resources.ts';
import { centresRatings } from '../equations/tensor-plan.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { kernelOf, range } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';
import type { UpdateSettings, UpdateVariant } from './choice/variant.ts';

/** Groups of four ratings that a thread handles. */
export const FOURS = 4;

/**
 * Subtracts the mean rating μ and the column's bias γ_v from each rating r_uv, and writes the results to
 * `centred` at the same positions. It handles groups of four ratings, from group `first` on, `fours` groups.
 *
 * This is a separate pass before a half-iteration. In a kernel that reads rows of θ, each rating would first
 * wait for its column index and then for the column's bias.
 */
export const subtractBiasKernel = kernelOf()({
  name: 'subtract-bias',
  reads: { indices: 'array<vec4u>', values: 'array<vec4f>', fixed_bias: 'array<f32>' },
  writes: { centred: 'array<vec4f>' },
  uniforms: { first: 'u32', fours: 'u32', mean: 'f32' },
  values: () => ({ THREADS: 256, FOURS, each: range(FOURS) }),
});

/**
 * True if a separate pass must subtract the mean rating and the fixed side's biases from the ratings. False
 * without biases, and for kernels that subtract them when they load ratings: `int8`, and some ranks of
 * `tensor`.
 */
export function needsCentred({ sum }: Pick<UpdateVariant, 'sum'>, rank: number, biases: boolean): boolean {
  return biases && !(sum.kernel === 'int8' || (sum.kernel === 'tensor' && centresRatings({ rank, biases })));
}

/** Bytes of the buffer for centred ratings: float32, rounded up to whole vec4f. */
export function centredBytes(ratings: number): number {
  return 16 * Math.ceil(ratings / 4);
}

/**
 * Returns the buffer of ratings that the kernels of this half-iteration must read: the block's own ratings,
 * or ratings with the mean μ and the fixed side's biases subtracted. In the second case, adds the dispatch
 * that computes them to `pass`; they are in a scratch buffer of the GPU.
 */
export async function addCentred(
  gpu: Gpu,
  pass: Pass,
  { block, fixedBias }: { readonly block: DeviceBlock; readonly fixedBias?: GPUBuffer },
  { from, to, rank, mean, variant }: Pick<UpdateSettings, 'from' | 'to' | 'rank' | 'mean' | 'variant'>,
): Promise<GPUBuffer> {
  if (fixedBias === undefined || !needsCentred(variant, rank, true)) return block.values;
  const first = Math.floor(block.offsets[from] / 4);
  const fours = Math.ceil(block.offsets[to] / 4) - first;
  const centred = await gpu.scratch('centred ratings', centredBytes(block.ratings));
  const bindings = { indices: block.indices, values: block.values, fixed_bias: fixedBias, centred };
  if (fours > 0)
    pass.dispatch(
      await gpu.compile(subtractBiasKernel, {}),
      bindings,
      { first, fours, mean },
      { threads: fours / FOURS },
    );
  return centred;
}
