import { hostDevice } from '../../engine/devices.ts';
import type { Device } from '../../engine/executor.ts';
import { keyHashes } from '../../engine/keys/key-hash.ts';
import type { ExecutionContext } from '../../engine/operator.ts';
import { dataSetName, type Partition, type PartitionRef } from '../../engine/partition.ts';
import { runStage } from '../../engine/run-stage.ts';
import { factorStride } from '../planner/sizes.ts';
import type { SgdData } from './data.ts';
import { biasColumns, fromModelSide, type ModelFactors } from './factors.ts';
import type { SgdParams } from './params.ts';
import type { SgdVersion } from '../sgd-versions.ts';
import { evenRanges } from './shuffle-ratings.ts';
import type { InitializeTask } from '../tasks.ts';

const STAGE = 'initialize';

/**
 * Standard deviation of a factor at the start, on the scale of SgdData. Smaller is better where there are many epochs' worth of
 * ratings (test RMSE at MovieLens-20M's shape, k = 32: 0.739 from 0.03, 0.740 from 0.06, 0.742 from 0.1), larger where there are few
 * (ml-latest-small with biases: 0.848, 0.844, 0.843).
 */
const SPREAD = 0.06;

/**
 * Writes the start of a run: the factors of a model, or Gaussian rows keyed by seed and external id, drawn on the CPU
 * whatever the device. Without biases all factors also get the same shift, so that products begin at the mean rating:
 * k · √(|μ|/σk) · ±√(|μ|/σk) = μ/σ.
 */
export async function initializeSgd(target: SgdVersion, data: SgdData, params: SgdParams, start: ModelFactors | undefined, device: Device, ctx: ExecutionContext): Promise<void> {
  const { rank, seed, biases } = params;
  const features = rank + (biases ? 2 : 0);
  const sides = [[data.rows, target.rows, true], [data.columns, target.columns, false]] as const;
  if (start !== undefined) {
    for (const [side, ref, isRow] of sides) {
      const values = fromModelSide(side.name === 'users' ? start.userFactors : start.itemFactors, side, isRow, data, rank, biases);
      replace(device, ref, { layout: 'factors', rows: side.labels.order.length, columns: { values } });
    }
    return;
  }
  const host = hostDevice(ctx.executor);
  const level = data.scale.mean / data.scale.deviation;
  for (const [side, ref, isRow] of sides) {
    const rows = side.labels.order.length;
    const keys: PartitionRef = { name: dataSetName('keys'), partition: 0, version: 0 };
    host.put(keys, { layout: 'key-hashes', rows, columns: keyHashes(side.ids) });
    if (host !== device) host.allocate(ref, { rows, columns: features, stride: factorStride(features, host.strideStep) });
    const shift = Math.sqrt(Math.abs(level) / rank) * (isRow ? 1 : Math.sign(level));
    const form = biases ? { first: 2, oneAt: biasColumns(isRow).one } : { shift };
    const tasks = evenRanges(rows, 4 * host.parallelism).map(
      (range): InitializeTask => ({ kernel: 'initialize', inputs: { keys }, outputs: { factors: ref }, params: { ...range, rank, seed, norm: SPREAD * Math.sqrt(rank), ...form } }),
    );
    await runStage(ctx, STAGE, host, tasks);
    host.release(keys);
    if (host === device) continue;
    replace(device, ref, await host.fetch(ref));
    host.release(ref);
  }
}

/** A matrix that is put takes memory of its own, so the one that was reserved goes first. */
function replace(device: Device, ref: PartitionRef, factors: Partition): void {
  device.release(ref);
  device.put(ref, factors);
}
