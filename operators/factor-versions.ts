import type { Device } from '../engine/executor.ts';
import { dataSetName, partitionKey, type PartitionRef, sharedArray } from '../engine/partition.ts';
import { factorStride } from './partition.ts';

/** One version of a side's factors on a device: the matrix and, with biases, the bias of each row beside it. */
export interface FactorVersion {
  /** rows x features; with biases the last feature is 1. */
  readonly matrix: PartitionRef;
  /** Layout bias. */
  readonly bias?: PartitionRef;
}

/** Makes and frees the versions that a training run writes; whatever is left is freed by `releaseAll`. */
export class FactorVersions {
  readonly #device: Device;
  readonly #features: number;
  readonly #biases: boolean;
  readonly #name = dataSetName('factors');
  readonly #live = new Map<string, PartitionRef>();

  constructor(device: Device, features: number, biases: boolean) {
    this.#device = device;
    this.#features = features;
    this.#biases = biases;
  }

  /** A zeroed version. Throws CapacityError when it doesn't fit. */
  create(side: string, version: number, rows: number): FactorVersion {
    const matrix: PartitionRef = { name: `${this.#name}/${side}`, partition: 0, version };
    this.#device.allocate(matrix, { rows, columns: this.#features, stride: factorStride(this.#features, this.#device.strideStep) });
    this.#live.set(partitionKey(matrix), matrix);
    if (!this.#biases) return { matrix };
    const bias: PartitionRef = { name: `${this.#name}/${side}-bias`, partition: 0, version };
    this.#device.put(bias, { layout: 'bias', rows, columns: { values: sharedArray(Float32Array, rows) } });
    this.#live.set(partitionKey(bias), bias);
    return { matrix, bias };
  }

  release({ matrix, bias }: FactorVersion): void {
    for (const ref of [matrix, bias]) {
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
