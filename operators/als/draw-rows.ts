import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { keyHashes } from '../../engine/keys/key-hash.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { addSliced } from '../tasks/run-tasks.ts';
import { contracts } from '../tasks/tasks.ts';
import type { AlsParams } from './als-params.ts';
import { startNorm } from './rating-unit.ts';

const STAGE = 'draw-rows';

/**
 * Draws the initial factors of rows, which depend only on the seed and on each row's external id. They equal
 * the rows that a plan's task `initialize` draws. Returns keys x rank numbers in shared memory. `slices`: row
 * ranges, one for each task.
 */
export async function drawRows(
  column: KeyColumn,
  { rank, seed, nonnegative, start }: AlsParams,
  unit: number,
  slices: readonly RowRange[],
  ctx: ExecutionContext,
): Promise<Float32Array> {
  const { place } = hostDevice(ctx.executor).info;
  const absolute = nonnegative || start === 'level';
  const rows = keyCount(column);
  const name = dataSetName('drawn');
  const [keys, drawn] = ['keys', 'factors'].map((part): PartitionRef => ({
    name: `${name}/${part}`,
    partition: 0,
    version: 0,
  }));
  const steps = new StepList(contracts);
  const norm = unit === 1 || absolute ? {} : { norm: startNorm(unit) };
  addSliced(
    steps,
    STAGE,
    place,
    {
      kernel: 'initialize',
      inputs: { keys },
      outputs: { factors: drawn },
      params: { rank, seed, nonnegative: absolute, ...norm },
    },
    slices,
  );
  steps.free(STAGE, place, [keys, drawn]);
  // The output is a plain array in place of a device's matrix, so its rows have no padding.
  const values = sharedArray(Float32Array, rows * rank);
  const given = [
    [keys, { layout: 'key-hashes', rows, columns: { ...keyHashes(column) } }, place],
    [drawn, { layout: 'values', rows, columns: { values } }, place],
  ] as const;
  await runSteps(steps.steps, ctx, { given });
  return values;
}
