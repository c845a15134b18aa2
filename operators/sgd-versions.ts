import type { Device } from '../engine/executor.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { dataSetName, partitionKey, type PartitionRef } from '../engine/partition.ts';
import { runStage } from '../engine/run-stage.ts';
import { factorStride } from './partition.ts';
import { evenRanges } from './shuffled-ratings.ts';
import type { CopyRowsTask } from './tasks.ts';

/** Both sides' factors after one epoch, with AdaGrad the sums of squared gradients too. */
export interface SgdVersion {
  readonly rows: PartitionRef;
  readonly columns: PartitionRef;
  readonly rowSums?: PartitionRef;
  readonly columnSums?: PartitionRef;
}

/** Makes, copies and frees the versions that a run of SGD steps; whatever is left is freed by `releaseAll`. */
export class SgdVersions {
  readonly #device: Device;
  readonly #counts: { readonly rows: number; readonly columns: number };
  readonly #features: number;
  readonly #adaptive: boolean;
  readonly #name = dataSetName('sgd');
  readonly #live = new Map<string, PartitionRef>();
  #made = 0;

  constructor(device: Device, counts: { readonly rows: number; readonly columns: number }, features: number, adaptive: boolean) {
    this.#device = device;
    this.#counts = counts;
    this.#features = features;
    this.#adaptive = adaptive;
  }

  /** A version whose factors may be anything: a start, a copy or an epoch fills them. Sums are 0. Throws CapacityError when it doesn't fit. */
  create(): SgdVersion {
    const version = this.#made++;
    const make = (part: string, rows: number, columns: number, stride: number, contents: 'zeros' | 'any'): PartitionRef => {
      const ref: PartitionRef = { name: `${this.#name}/${part}`, partition: 0, version };
      this.#device.allocate(ref, { rows, columns, stride, contents });
      this.#live.set(partitionKey(ref), ref);
      return ref;
    };
    const { rows, columns } = this.#counts;
    const stride = factorStride(this.#features, this.#device.strideStep);
    const factors = { rows: make('rows', rows, this.#features, stride, 'any'), columns: make('columns', columns, this.#features, stride, 'any') };
    return this.#adaptive ? { ...factors, rowSums: make('row-sums', rows, 1, 1, 'zeros'), columnSums: make('column-sums', columns, 1, 1, 'zeros') } : factors;
  }

  /** A new version with the numbers of another: what an epoch steps, so that it can be thrown away. */
  async copy(source: SgdVersion, stage: string, ctx: ExecutionContext): Promise<SgdVersion> {
    const target = this.create();
    const copies = (from: PartitionRef | undefined, to: PartitionRef | undefined, rows: number): CopyRowsTask[] =>
      from && to ? evenRanges(rows, this.#device.parallelism).map((range) => ({ kernel: 'copy-rows', inputs: { source: from }, outputs: { target: to }, params: { ...range } })) : [];
    const { rows, columns } = this.#counts;
    await runStage(ctx, stage, this.#device, [
      ...copies(source.rows, target.rows, rows),
      ...copies(source.columns, target.columns, columns),
      ...copies(source.rowSums, target.rowSums, rows),
      ...copies(source.columnSums, target.columnSums, columns),
    ]);
    return target;
  }

  release(version: SgdVersion): void {
    for (const ref of [version.rows, version.columns, version.rowSums, version.columnSums]) {
      if (ref === undefined) continue;
      this.#device.release(ref);
      this.#live.delete(partitionKey(ref));
    }
  }

  releaseAll(): void {
    for (const ref of this.#live.values()) this.#device.release(ref);
    this.#live.clear();
  }
}
