import type { GpuTaskHandler } from '../handler.ts';
import { countBeforeKernel } from './count-before.ts';
import { discountExcludedKernel } from './discount-excluded.ts';
import { listedScoresKernel } from './listed-scores.ts';
import { topNKernel } from '../serving/top-n.ts';

/** See `compile-search` of KernelTasks: it does not wait, so that the next inputs go up meanwhile. */
export const compileSearch: GpuTaskHandler<'compile-search'> = async ({
  gpu,
  params: { search, excluding },
}) => {
  const compiling =
    search === 'top-n'
      ? [gpu.compile(topNKernel, { excluding, bounded: true, ordered: true })]
      : [
          gpu.compile(listedScoresKernel, {}),
          gpu.compile(countBeforeKernel, {}),
          ...(excluding ? [gpu.compile(discountExcludedKernel, {})] : []),
        ];
  // The task that wants a kernel tells what is wrong with it.
  for (const kernel of compiling) kernel.catch(() => undefined);
  return { rows: 0 };
};
