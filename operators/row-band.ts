import type { Device } from '../engine/executor.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { dataSetName, type Partition, partitionKey, type PartitionRef } from '../engine/partition.ts';
import { runStage } from '../engine/run-stage.ts';
import { factorStride } from './partition.ts';
import type { RowRange } from './row-ranges.ts';
import type { CopyRowsTask, UploadTask } from './tasks.ts';

/** Ratings as a device gets them. */
export interface RatingsPart {
  readonly ref: PartitionRef;
  readonly partition: Partition;
  readonly ratings: number;
}

/** The factors of a band's rows after an epoch, with AdaGrad their sums too. */
export interface BandVersion {
  readonly rows: PartitionRef;
  readonly rowSums?: PartitionRef;
}

/**
 * A band of rows on the device where its factors stay for a whole run. Blocks of ratings come there once where they all have room,
 * else before each use. Whatever is left is freed by `releaseAll`.
 */
export class RowBand {
  readonly device: Device;
  readonly range: RowRange;
  /** Whether blocks of ratings stay. */
  readonly resident: boolean;
  readonly #features: number;
  readonly #adaptive: boolean;
  readonly #name = dataSetName('band');
  readonly #live = new Map<string, PartitionRef>();
  #made = 0;

  constructor(device: Device, range: RowRange, { features, adaptive, resident }: { readonly features: number; readonly adaptive: boolean; readonly resident: boolean }) {
    this.device = device;
    this.range = range;
    this.resident = resident;
    this.#features = features;
    this.#adaptive = adaptive;
  }

  get rows(): number {
    return this.range.to - this.range.from;
  }

  /** A version of these factors (rows x features, no padding); sums begin at 0. Throws CapacityError. */
  start(values: Float32Array): BandVersion {
    const version = this.#made++;
    const rows = this.#ref('rows', version);
    this.put(rows, { layout: 'factors', rows: this.rows, columns: { values } });
    return this.#adaptive ? { rows, rowSums: this.#allocate('row-sums', version, 1) } : { rows };
  }

  /** A new version with the numbers of another. */
  async copy(source: BandVersion, stage: string, ctx: ExecutionContext): Promise<BandVersion> {
    const version = this.#made++;
    const rows = this.#allocate('rows', version, this.#features);
    const target: BandVersion = this.#adaptive ? { rows, rowSums: this.#allocate('row-sums', version, 1) } : { rows };
    const task = (from: PartitionRef, to: PartitionRef): CopyRowsTask => ({ kernel: 'copy-rows', inputs: { source: from }, outputs: { target: to }, params: { from: 0, to: this.rows } });
    const sums = source.rowSums && target.rowSums ? [task(source.rowSums, target.rowSums)] : [];
    await runStage(ctx, stage, this.device, [task(source.rows, rows), ...sums]);
    return target;
  }

  /** Makes a host partition known to the device. */
  put(ref: PartitionRef, partition: Partition): void {
    this.device.put(ref, partition);
    this.#live.set(partitionKey(ref), ref);
  }

  /** Sends ratings to the device, where they are not there already. */
  async stage({ ref, partition }: RatingsPart, stage: string, ctx: ExecutionContext, signal: AbortSignal): Promise<void> {
    if (this.#live.has(partitionKey(ref))) return;
    this.put(ref, partition);
    const task: UploadTask = { kernel: 'upload', inputs: { ratings: ref }, outputs: {}, params: {} };
    ctx.metrics.add(stage, (await this.device.run(task, signal)).metrics);
  }

  /** Ratings that were stepped or measured: they stay where there is room for all. */
  leave({ ref }: RatingsPart): void {
    if (!this.resident) this.release(ref);
  }

  release(...refs: readonly (PartitionRef | undefined)[]): void {
    for (const ref of refs) {
      if (ref === undefined || !this.#live.delete(partitionKey(ref))) continue;
      this.device.release(ref);
    }
  }

  releaseAll(): void {
    this.release(...this.#live.values());
  }

  #ref(part: string, version: number): PartitionRef {
    return { name: `${this.#name}/${part}`, partition: 0, version };
  }

  #allocate(part: string, version: number, columns: number): PartitionRef {
    const ref = this.#ref(part, version);
    this.device.allocate(ref, { rows: this.rows, columns, stride: columns === 1 ? 1 : factorStride(columns, this.device.strideStep) });
    this.#live.set(partitionKey(ref), ref);
    return ref;
  }
}
