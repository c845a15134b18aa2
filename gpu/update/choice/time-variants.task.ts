import type { Gpu } from '../../webgpu/gpu.ts';
import type { GpuTaskHandler } from '../../handler.ts';
import type { DeviceBlock } from '../../device/resources.ts';
import { variantNamed } from './choose.ts';
import { type HostRatings, sampleRows } from './sample-block.ts';
import { solverNamed } from './variant.ts';
import { timeEach } from './time-variants.ts';

const LAMBDA = 0.05;
const MEAN = 3;

export const timeVariants: GpuTaskHandler<'time-variants'> = async (scope) => {
  const { gpu } = scope;
  const { rank, solver, cgSteps, biases, implicit, columns, ratingScale, variants, sample, seconds, best } =
    scope.params;
  const whole = scope.partition('block').columns as unknown as HostRatings;
  const taken = sampleRows(whole, sample);
  const block = taken === whole ? scope.block('block') : await blockOf(gpu, taken);
  const { rows, ratings } = block;
  const weights = implicit ? { implicit: { alpha: 1, base: 1 } } : {};
  const settings = {
    ...weights,
    from: 0,
    to: rows,
    rank,
    lambda: implicit ? 0 : LAMBDA,
    mean: biases ? MEAN : 0,
    solver: solverNamed(scope.params),
    scale: ratingScale,
  };
  const named = variants.map((name) =>
    variantNamed(name, gpu.info, { rank, solver, cgSteps, biases, implicit }),
  );
  try {
    const times = await timeEach(gpu, { block, columns, biases, settings }, named, {
      seconds,
      best,
      cancelled: scope.cancelled,
    });
    return { rows, values: { times, rows, ratings, clock: gpu.info.timestamps ? 'gpu' : 'host' } };
  } finally {
    if (taken !== whole)
      for (const buffer of [block.rowPointers, block.indices, block.values]) buffer.destroy();
  }
};

async function blockOf(gpu: Gpu, { offsets, indices, values }: HostRatings): Promise<DeviceBlock> {
  return {
    rows: offsets.length - 1,
    ratings: indices.length,
    offsets,
    columns: indices,
    rowPointers: await gpu.bufferOf(offsets, 'sample offsets'),
    indices: await gpu.bufferOf(indices, 'sample indices'),
    values: await gpu.bufferOf(values, 'sample values'),
    prepared: new Map(),
  };
}
