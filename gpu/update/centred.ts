import type { DeviceBlock } from '../device/resources.ts';
import { subtractBiasKernel, subtractBiasWorkgroups } from '../copies/subtract-bias.ts';
import { centresRatings } from '../equations/tensor-plan.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Pass } from '../webgpu/pass.ts';
import type { UpdateSettings, UpdateVariant } from './choice/variant.ts';

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
      subtractBiasWorkgroups(fours),
    );
  return centred;
}
