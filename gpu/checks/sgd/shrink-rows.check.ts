import { shrinkInPlace } from '../../../cpu/reference/sgd.ts';
import { shrinkRows } from '../../sgd/shrink-rows.task.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelCheck } from '../support/check.ts';
import { deviation } from '../support/numbers.ts';
import { hostMatrix, openScope, randomMatrix } from '../support/task-scope.ts';
import { shrinkRowsKernel } from '../../sgd/shrink-rows.ts';

const LIMIT = 1e-6;

export const shrinkRowsChecks: readonly KernelCheck[] = [true, false].flatMap((biases) =>
  [false, true].map((adaptive) => ({
    name: shrinkRowsKernel.name,
    variant: `${biases ? 'biases' : 'no biases'}${adaptive ? ', AdaGrad' : ''}`,
    run: (gpu: Gpu) => check(gpu, biases, adaptive),
  })),
);

async function check(
  gpu: Gpu,
  biases: boolean,
  adaptive: boolean,
): Promise<{ error: number; limit: number }> {
  const factors = randomMatrix(301, 13, 5);
  const sums = hostMatrix(factors.rows, 1, (row) => (7 * row) % 5);
  const params = {
    from: 0,
    to: factors.rows,
    rate: 0.08,
    offset: 10,
    damping: 3,
    adaptive,
    ...(biases ? { own: 1, one: 0 } : {}),
  };
  const opened = await openScope(gpu, params, { matrices: { factors, sums } });
  try {
    await shrinkRows(opened.scope);
    const expected = Float64Array.from(factors.values);
    shrinkInPlace(
      expected,
      factors.stride,
      params,
      adaptive
        ? Float64Array.from({ length: factors.rows }, (_, row) => sums.values[row * sums.stride])
        : undefined,
    );
    return { error: deviation(await opened.read('factors'), expected), limit: LIMIT };
  } finally {
    opened.close();
  }
}
