import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevices } from '../../engine/run/devices.ts';
import { announceKernels } from '../tasks/announce-kernels.ts';
import type { SgdParams } from './params.ts';
import type { SgdSchedule } from './schedules/schedule.ts';

/**
 * Makes a GPU start to compile the kernels of an epoch while ratings are still being sorted. Only for a
 * single GPU, whose schedule names its kernel.
 */
export async function compileSteps(
  { kind, tile, lanes, precision }: SgdSchedule,
  { rank, biases, rate }: SgdParams,
  ctx: ExecutionContext,
): Promise<void> {
  const [{ info }] = computeDevices(ctx.executor);
  const shared = { rank, biases, adaptive: rate === 'adagrad' };
  if (!info.ownMemory) return;
  if (kind === 'tile' && tile !== undefined) {
    const { places, lanes: team, threads, arithmetic } = tile;
    const steps = { kernel: 'sgd-tiles', places, lanes: team, threads, arithmetic } as const;
    await announceKernels('compile-sgd', { ...shared, precision: tile.precision, steps }, info.place, ctx);
  }
  if (kind === 'wavefront' && lanes !== undefined && precision !== undefined) {
    const steps = { kernel: 'sgd-waves', lanes } as const;
    await announceKernels('compile-sgd', { ...shared, precision, steps }, info.place, ctx);
  }
}
