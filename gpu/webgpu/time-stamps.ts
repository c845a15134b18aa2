/** Time stamps at the beginning and the end of each dispatch. */
export class TimeStamps {
  readonly bytes: number;
  readonly #count: number;
  readonly #set: GPUQuerySet;
  readonly #resolved: GPUBuffer;

  constructor(device: GPUDevice, count: number) {
    this.bytes = 16 * count;
    this.#count = count;
    this.#set = device.createQuerySet({ type: 'timestamp', count: 2 * count });
    this.#resolved = device.createBuffer({
      size: this.bytes,
      usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
    });
  }

  of(at: number): GPUComputePassTimestampWrites {
    return { querySet: this.#set, beginningOfPassWriteIndex: 2 * at, endOfPassWriteIndex: 2 * at + 1 };
  }

  /** Writes the stamps to the beginning of `target`. */
  resolve(encoder: GPUCommandEncoder, target: GPUBuffer): void {
    encoder.resolveQuerySet(this.#set, 0, 2 * this.#count, this.#resolved, 0);
    encoder.copyBufferToBuffer(this.#resolved, 0, target, 0, this.bytes);
  }

  destroy(): void {
    this.#resolved.destroy();
    this.#set.destroy();
  }
}

/**
 * Measures when the last kernel of a submission ended, by the GPU's clock. All submissions of a queue share
 * one object, since each writes and copies its time before the next begins.
 */
export class EndStamp {
  readonly bytes = 8;
  readonly writes: GPUComputePassTimestampWrites;
  readonly #set: GPUQuerySet;
  readonly #resolved: GPUBuffer;

  constructor(device: GPUDevice) {
    this.#set = device.createQuerySet({ type: 'timestamp', count: 1 });
    this.#resolved = device.createBuffer({
      label: 'end of kernels',
      size: this.bytes,
      usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
    });
    this.writes = { querySet: this.#set, endOfPassWriteIndex: 0 };
  }

  /** Writes the time to the beginning of `target`. */
  resolve(encoder: GPUCommandEncoder, target: GPUBuffer): void {
    encoder.resolveQuerySet(this.#set, 0, 1, this.#resolved, 0);
    encoder.copyBufferToBuffer(this.#resolved, 0, target, 0, this.bytes);
  }

  destroy(): void {
    this.#resolved.destroy();
    this.#set.destroy();
  }
}
