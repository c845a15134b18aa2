import { computeDevice } from '../engine/devices.ts';
import { CancelledError, DeviceLostError } from '../engine/errors.ts';
import type { KernelTuning } from '../engine/executor.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import type { AlsParams } from './als-params.ts';
import { type ChoiceProfile, updateProblems } from './kernel-choices.ts';
import { placeBlock } from './place-block.ts';
import type { RatingBlocks } from './rating-blocks.ts';

/** By the side whose rows are solved; undefined where nothing was measured. */
export interface SideTunings {
  readonly users?: KernelTuning;
  readonly items?: KernelTuning;
}

/**
 * Has a device that chooses among kernels time them on the blocks, so that chooseKernels takes the fastest; see Device.tune. The
 * blocks stay where training needs them. `where-it-pays`: what goes wrong is told, and the rule decides.
 */
export async function tuneKernels(blocks: Pick<RatingBlocks, 'byUser' | 'byItem'>, profile: ChoiceProfile, params: AlsParams, how: 'where-it-pays' | 'thorough', ctx: ExecutionContext): Promise<SideTunings> {
  const device = computeDevice(ctx.executor);
  if (device.tune === undefined) return {};
  const problems = updateProblems(profile, params);
  const tunings: { users?: KernelTuning; items?: KernelTuning } = {};
  for (const [side, block] of [['users', blocks.byUser], ['items', blocks.byItem]] as const) {
    const start = performance.now();
    try {
      placeBlock(block, ctx.executor);
      const tuning = await device.tune(problems[side], block.ref, how, ctx.signal);
      if (tuning === undefined) continue;
      tunings[side] = tuning;
      const seconds = ((performance.now() - start) / 1000).toFixed(1);
      ctx.events({ type: 'note', text: `${tuning.times.length} kernels for ${side} timed in ${seconds} s: ${tuning.variant} is taken${tuning.note === undefined ? '' : `; ${tuning.note}`}` });
    } catch (error) {
      if (how === 'thorough' || error instanceof CancelledError || error instanceof DeviceLostError) throw error;
      ctx.events({ type: 'note', text: `kernels for ${side} could not be timed, the rule decides: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}` });
    }
  }
  return tunings;
}
