import type { FileMemory } from '../../engine/partition.ts';
import { PIECE_BYTES, type GpuHost, type PieceCopies } from './host.ts';
import { nextTurn, pacedTurn } from './polls.ts';

/** Transfers between host and GPU memory, counted on submission. */
export class TransferCounters {
  bytesUp = 0;
  bytesDown = 0;
  readbacks = 0;

  up(bytes: number): void {
    this.bytesUp += bytes;
  }

  down(bytes: number): void {
    this.bytesDown += bytes;
    this.readbacks++;
  }

  /** The bytes so far, less those of an earlier call. */
  bytes(before = { bytesUp: 0, bytesDown: 0 }): { readonly bytesUp: number; readonly bytesDown: number } {
    return { bytesUp: this.bytesUp - before.bytesUp, bytesDown: this.bytesDown - before.bytesDown };
  }
}

/**
 * Size of a staging buffer for uploads: large enough for the full speed of the bus, and small enough that one
 * is filled while another is copied.
 */
export const STAGING_BYTES = 16 << 20;

/** Size of a staging buffer for downloads. */
export const READBACK_BYTES = 4 << 20;

/** Buffers for uploads and for downloads. */
export interface StagingSizes {
  readonly up: StagingSize;
  readonly down: StagingSize;
}

/**
 * Sizes for uploads and downloads of whole partitions. Buffers for downloads are small: creating one of 16
 * MiB blocks the thread for 4 ms, and copying from it for longer, while answers to tasks wait.
 */
export const BULK: StagingSizes = {
  up: { bytes: STAGING_BYTES, buffers: 4 },
  down: { bytes: READBACK_BYTES, buffers: 8 },
};

/**
 * Sizes for exchanges with other GPUs. The buffers are small, so that they stay in the processor's caches.
 * There are many, since a copy occupies its buffer while it waits in the queue for kernels that were
 * submitted before it.
 */
export const EXCHANGE: StagingSizes = {
  up: { bytes: PIECE_BYTES, buffers: 96 },
  down: { bytes: PIECE_BYTES, buffers: 96 },
};

/** Most concurrent reads of an upload from files. */
const READS = 16;

/**
 * A range of a GPU buffer. It is downloaded in pieces of the size of a staging buffer. `offset` and `bytes`
 * are multiples of 4.
 */
export interface DownloadRange {
  readonly offset: number;
  readonly bytes: number;
  /**
   * For data that a kernel produces piece by piece in a small buffer: submits the work that writes the next
   * piece to the start of the buffer. The piece is the `bytes` bytes from byte `at` of the range on.
   */
  readonly fill?: (at: number, bytes: number) => void;
}

/** Receives the pieces of a download, one at a time. */
export interface PieceTaker {
  /**
   * Resolves when `take` can accept the `bytes` bytes from byte `at` of the range on. A view of the piece's
   * staging memory is only made after that; if it were made earlier, losing the device meanwhile would detach
   * it.
   */
  ready?(at: number, bytes: number): Promise<void>;
  /** Receives a piece, which starts at byte `at` of the range. */
  take(piece: ArrayBuffer, at: number): void;
}

/** Rows in memory files that are sent to another device; `arrived`: see InFiles. */
interface RowsInFiles {
  readonly memory: FileMemory;
  readonly bytes: number;
  readonly arrived?: Int32Array | undefined;
}

/** Any view of host memory, shared or not. */
export type HostBytes = ArrayBufferView<ArrayBufferLike>;

/**
 * Moves bytes between host memory and GPU buffers through a few reused mapped buffers: new ones would cost
 * page faults each time. Sizes and offsets are multiples of 4.
 */
export class Staging {
  readonly #device: GPUDevice;
  readonly #pieces: PieceCopies;
  readonly #counters: TransferCounters;
  readonly #sizes: StagingSizes;
  readonly #up: StagingPool;
  readonly #down: StagingPool;
  /** Resolves when all pieces so far have been taken. */
  #taken: Promise<void> = Promise.resolve();

  constructor(
    { device, host }: { readonly device: GPUDevice; readonly host: GpuHost },
    counters: TransferCounters,
    sizes = BULK,
  ) {
    this.#device = device;
    this.#pieces = host.pieces;
    this.#counters = counters;
    this.#sizes = sizes;
    const { MAP_READ, MAP_WRITE, COPY_SRC, COPY_DST } = GPUBufferUsage;
    this.#up = new StagingPool(device, { usage: MAP_WRITE | COPY_SRC, label: 'upload' }, sizes.up);
    this.#down = new StagingPool(device, { usage: MAP_READ | COPY_DST, label: 'readback' }, sizes.down);
  }

  /**
   * Copies `source` to `target` from byte `offset` on. The promise may resolve before the copy has ended;
   * work submitted later sees the bytes.
   */
  async upload(target: GPUBuffer, source: HostBytes, offset = 0): Promise<void> {
    for (let at = 0; at < source.byteLength; at += this.#sizes.up.bytes) {
      const bytes = Math.min(this.#sizes.up.bytes, source.byteLength - at);
      await this.uploadFilled(target, offset + at, bytes, (staged) =>
        new Uint8Array(staged).set(new Uint8Array(source.buffer, source.byteOffset + at, bytes)),
      );
    }
  }

  /**
   * Uploads bytes that `fill` writes, at most the size of a staging buffer. `fill` receives memory that
   * still contains bytes of earlier uploads.
   */
  async uploadFilled(
    target: GPUBuffer,
    offset: number,
    bytes: number,
    fill: (staged: ArrayBuffer) => void,
  ): Promise<void> {
    const staging = await this.#up.take();
    // The mapped range may be longer than the copy: sizes of buffers are whole words.
    if (staging.mapState !== 'mapped') await staging.mapAsync(GPUMapMode.WRITE, 0, this.#sizes.up.bytes);
    fill(staging.getMappedRange(0, this.#sizes.up.bytes));
    staging.unmap();
    this.#copy(staging, 0, target, offset, bytes);
    this.#counters.up(bytes);
    this.#up.give(staging, staging.mapAsync(GPUMapMode.WRITE, 0, this.#sizes.up.bytes));
  }

  /** Fills `target` with the bytes of `source` from `offset` on; see downloadPieces. */
  download(source: GPUBuffer, target: HostBytes, offset = 0, submitted?: () => void): Promise<void> {
    const take = (piece: ArrayBuffer, at: number) =>
      new Uint8Array(target.buffer, target.byteOffset + at, piece.byteLength).set(new Uint8Array(piece));
    return this.downloadPieces(source, { offset, bytes: target.byteLength }, { take }, submitted);
  }

  /**
   * Passes a range of `source` to `to`, piece by piece. When a piece has been taken, its memory is unmapped.
   * Calls `submitted` when all copies are submitted; resolves when all pieces have been taken. If pieces
   * fail, throws the first failure once no other piece is in flight.
   */
  async downloadPieces(
    source: GPUBuffer,
    { offset, bytes, fill }: DownloadRange,
    to: PieceTaker,
    submitted?: () => void,
  ): Promise<void> {
    const parts: Promise<void>[] = [];
    const step = this.#sizes.down.bytes;
    try {
      for (let at = 0; at < bytes; at += step) {
        const length = Math.min(step, bytes - at);
        const staging = await this.#down.take();
        fill?.(at, length);
        this.#copy(source, fill ? 0 : offset + at, staging, 0, length);
        this.#counters.down(length);
        const taken = () =>
          this.#inTurn(async () => {
            await to.ready?.(at, length);
            to.take(staging.getMappedRange(0, length), at);
          });
        parts.push(this.#mapped(staging, length, taken));
      }
      submitted?.();
    } finally {
      await allEnded(parts);
    }
  }

  /** Reads a buffer when the copy to it has ended, then returns it to the pool. */
  #mapped(staging: GPUBuffer, length: number, read: () => Promise<void>): Promise<void> {
    const part = staging
      .mapAsync(GPUMapMode.READ, 0, length)
      .then(read)
      .finally(() => staging.unmap());
    this.#down.give(staging, part);
    return part;
  }

  /**
   * Calls `take` after the earlier pieces, and in a later turn of the event loop. So if the GPU has also
   * finished tasks, their answers are sent before the piece is copied.
   */
  #inTurn(take: () => Promise<void>): Promise<void> {
    const taken = this.#taken.then(nextTurn).then(take);
    this.#taken = taken.catch(() => undefined);
    return taken;
  }

  /**
   * Copies `bytes` bytes to memory files, which Linux keeps in memory. Threads of Node's pool write the
   * pieces, several at a time, also for concurrent downloads. Each piece that was written is marked in
   * `arrived`.
   */
  async downloadToFiles(
    source: GPUBuffer,
    { memory: target, bytes, arrived }: RowsInFiles,
    submitted?: () => void,
  ): Promise<void> {
    const parts: Promise<void>[] = [];
    for (let at = 0; at < bytes; at += target.pieceBytes) {
      const length = Math.min(target.pieceBytes, bytes - at);
      const staging = await this.#down.take();
      this.#copy(source, at, staging, 0, length);
      this.#counters.down(length);
      parts.push(
        this.#mapped(staging, length, async () => {
          await this.#pieces.write(target, new Uint8Array(staging.getMappedRange(0, length)), at);
          if (arrived !== undefined) Atomics.store(arrived, at / target.pieceBytes, 1);
        }),
      );
    }
    submitted?.();
    await allEnded(parts);
  }

  /**
   * Copies `bytes` bytes from memory files (see downloadToFiles) to `target` from byte `offset` on; otherwise
   * like upload. Waits for each piece until it is marked in `arrived`, if pieces are marked.
   */
  async uploadFromFiles(
    target: GPUBuffer,
    { memory: source, bytes, arrived }: RowsInFiles,
    offset = 0,
  ): Promise<void> {
    const parts: Promise<void>[] = [];
    for (let at = 0; at < bytes; at += source.pieceBytes) {
      const length = Math.min(source.pieceBytes, bytes - at);
      if (parts.length >= READS) await parts[parts.length - READS];
      if (arrived !== undefined) await pieceArrived(arrived, at / source.pieceBytes);
      const staging = await this.#up.take();
      const part = this.#fillFrom(source, staging, at, length).then(() =>
        this.#copy(staging, 0, target, offset + at, length),
      );
      this.#counters.up(length);
      this.#up.give(
        staging,
        part.then(() => staging.mapAsync(GPUMapMode.WRITE, 0, this.#sizes.up.bytes)),
      );
      parts.push(part);
    }
    await allEnded(parts);
  }

  async #fillFrom(source: FileMemory, staging: GPUBuffer, at: number, length: number): Promise<void> {
    if (staging.mapState !== 'mapped') await staging.mapAsync(GPUMapMode.WRITE, 0, this.#sizes.up.bytes);
    await this.#pieces.read(
      source,
      new Uint8Array(staging.getMappedRange(0, this.#sizes.up.bytes), 0, length),
      at,
    );
    staging.unmap();
  }

  async destroy(): Promise<void> {
    await Promise.all([this.#up.destroy(), this.#down.destroy()]);
  }

  #copy(from: GPUBuffer, fromOffset: number, to: GPUBuffer, toOffset: number, bytes: number): void {
    const encoder = this.#device.createCommandEncoder();
    encoder.copyBufferToBuffer(from, fromOffset, to, toOffset, bytes);
    this.#device.queue.submit([encoder.finish()]);
  }
}

/**
 * Resolves when a piece is marked as arrived (see InFiles). The event loop polls, as it does for the GPU's
 * events. Throws an error if the sender failed.
 */
async function pieceArrived(arrived: Int32Array, piece: number): Promise<void> {
  while (Atomics.load(arrived, piece) === 0) await pacedTurn();
  if (Atomics.load(arrived, piece) < 0) throw new Error('rows of another device did not arrive');
}

/** Resolves when all have settled; then throws the first failure. */
async function allEnded(parts: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(parts)).find((part) => part.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

interface StagingSize {
  readonly bytes: number;
  readonly buffers: number;
}

/** Mapped buffers for transfers in one direction, shared by all transfers and created on demand. */
class StagingPool {
  readonly #device: GPUDevice;
  readonly #buffers: Omit<GPUBufferDescriptor, 'size'>;
  readonly #size: StagingSize;
  readonly #all: GPUBuffer[] = [];
  readonly #ready: { readonly buffer: GPUBuffer; readonly when: Promise<void>; done: boolean }[] = [];

  /** `buffers`: usage of the buffers, and a label for errors. */
  constructor(device: GPUDevice, buffers: Omit<GPUBufferDescriptor, 'size'>, size: StagingSize) {
    this.#device = device;
    this.#buffers = buffers;
    this.#size = size;
  }

  /**
   * Takes a free buffer. If none is free, creates one, or waits for the next one if the pool has its full
   * size. Creating a buffer blocks the thread for a millisecond or more; afterwards the thread sends pending
   * answers before it continues.
   */
  async take(): Promise<GPUBuffer> {
    const free = this.#ready.findIndex(({ done }) => done);
    if (free < 0 && this.#all.length < this.#size.buffers) return this.#make();
    const [next] = this.#ready.splice(Math.max(0, free), 1);
    if (next === undefined)
      throw new Error(`staging pool ${this.#buffers.label}: all buffers are taken and none was given back`);
    await next.when;
    return next.buffer;
  }

  async #make(): Promise<GPUBuffer> {
    const buffer = this.#device.createBuffer({
      ...this.#buffers,
      size: this.#size.bytes,
      mappedAtCreation: (this.#buffers.usage & GPUBufferUsage.MAP_WRITE) !== 0,
    });
    this.#all.push(buffer);
    await nextTurn();
    return buffer;
  }

  /**
   * Returns a buffer to the pool. It can be taken again once `when` has settled. If `when` rejects, the
   * transfer that used the buffer reports the error, and the buffer stays usable: the next transfer maps it
   * again, which fails if the device is lost.
   */
  give(buffer: GPUBuffer, when: Promise<unknown>): void {
    const ready = {
      buffer,
      done: false,
      when: Promise.allSettled([when]).then(() => void (ready.done = true)),
    };
    this.#ready.push(ready);
  }

  /** Resolves when no promise of a buffer is pending. */
  async destroy(): Promise<void> {
    for (const buffer of this.#all) buffer.destroy();
    await Promise.all(this.#ready.map(({ when }) => when));
  }
}
