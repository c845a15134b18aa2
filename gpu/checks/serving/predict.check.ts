import { predictPair } from '../../../cpu/reference/errors.ts';
import { type Partition, sharedArray } from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { predict } from '../../serving/predict.task.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { CHECKED_RANKS, type KernelCheck } from '../support/check.ts';
import { PRODUCT_LIMIT } from '../support/limits.ts';
import { worse } from '../support/numbers.ts';
import { type HostMatrix, randomMatrix, runHandler } from '../support/task-scope.ts';

export const predictChecks: readonly KernelCheck[] = CHECKED_RANKS.map(predictCheck);

function predictCheck(rank: number): KernelCheck {
  return {
    name: 'predict',
    variant: `rank ${rank}`,
    run: async (gpu) => {
      const [rowFactors, columnFactors] = [randomMatrix(50, rank, 5), randomMatrix(300, rank, 6)];
      let error = 0;
      for (const count of [0, 1, 3, 64, 257])
        error = worse(error, await predictionError(gpu, rank, rowFactors, columnFactors, count));
      return { error, limit: PRODUCT_LIMIT };
    },
  };
}

async function predictionError(
  gpu: Gpu,
  rank: number,
  rowFactors: HostMatrix,
  columnFactors: HostMatrix,
  count: number,
): Promise<number> {
  const random = new CounterRandom(count);
  const [rows, columns] = [sharedArray(Uint32Array, count), sharedArray(Uint32Array, count)];
  for (let k = 0; k < count; k++) {
    rows[k] = random.below(2 * k, rowFactors.rows);
    columns[k] = random.below(2 * k + 1, columnFactors.rows);
  }
  const pairs: Partition = { layout: 'pairs', rows: count, columns: { rows, columns } };
  const { partitions } = await runHandler(
    gpu,
    predict,
    { rank },
    { matrices: { rowFactors, columnFactors }, partitions: { pairs } },
  );
  const values = partitions!.predictions.columns.values as Float32Array;
  if (values.length !== count) return Infinity;
  let error = 0;
  for (let k = 0; k < count; k++)
    error = worse(
      error,
      Math.abs(
        values[k] -
          predictPair(rowFactors.values, rows[k], columnFactors.values, columns[k], rowFactors.stride),
      ),
    );
  return error;
}
