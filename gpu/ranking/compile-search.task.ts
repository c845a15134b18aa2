import type { GpuTaskHandler } from '../handler.ts';
import { topNKernel } from '../serving/top-n.task.ts';
import { countBeforeKernel, discountExcludedKernel, listedScoresKernel } from './rank-listed.task.ts';

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
