import type { DeviceBlock } from '../device/resources.ts';
import { subtractBiasKernel, subtractBiasWorkgroups } from '../copies/subtract-bias.ts';
import { centresRatings } from '../equations/tensor-plan.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Pass } from '../webgpu/pass.ts';
import type { UpdateSettings, UpdateVariant } from './choice/variant.ts';

/**
 * True if a variant's kernels do not subtract the mean and the fixed side's biases from ratings: a pass
 * before them must do it.
 */
export function needsCentred({ sum }: Pick<UpdateVariant, 'sum'>, rank: number, biases: boolean): boolean {
  return biases && !(sum.kernel === 'int8' || (sum.kernel === 'tensor' && centresRatings({ rank, biases })));
}

/** Bytes of a block's centred ratings. */
export function centredBytes(ratings: number): number {
  return 16 * Math.ceil(ratings / 4);
}

/**
 * The ratings that the kernels read. If the kernels do not subtract μ and the fixed side's biases, adds a
 * pass that does, and returns its output.
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
