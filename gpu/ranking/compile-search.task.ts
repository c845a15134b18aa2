import type { GpuTaskHandler } from '../handler.ts';
import { countBeforeKernel } from './count-before.ts';
import { discountExcludedKernel } from './discount-excluded.ts';
import { listedScoresKernel } from './listed-scores.ts';
import { topNKernel } from '../serving/top-n.ts';

/**
 * See `compile-search` of KernelTasks. Does not wait until the kernels are compiled, so that the next inputs
 * can be uploaded meanwhile.
 */
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
  // The task that needs a kernel reports its errors.
  for (const kernel of compiling) kernel.catch(() => undefined);
  return { rows: 0 };
};
