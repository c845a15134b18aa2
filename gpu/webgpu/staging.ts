import type { FileMemory } from '../../engine/partition.ts';
import { PIECE_BYTES } from '../exchange/memory-files.ts';
import { readPiece, writePiece } from '../exchange/copy-files.ts';
import type { TransferCounters } from './counters.ts';
import { nextTurn } from './polls.ts';
import { StagingPool, type StagingSize } from './staging-pool.ts';

/**
 * Large enough for the full speed of the bus, small enough that filling one overlaps with copying another.
 */
export const STAGING_BYTES = 16 << 20;

/** Bytes that are read back at once. */
export const READBACK_BYTES = 4 << 20;

/** The buffers of both directions. */
export interface StagingSizes {
  readonly up: StagingSize;
  readonly down: StagingSize;
}

/**
 * For data that come and go as a whole. Readback buffers are small: making one takes the thread 4 ms for 16
 * MiB, and copying from it more, while answers to tasks wait.
 */
export const BULK: StagingSizes = {
  up: { bytes: STAGING_BYTES, buffers: 4 },
  down: { bytes: READBACK_BYTES, buffers: 8 },
};

/**
 * For exchanges with other GPUs. Small buffers stay in the processor's caches on the way; there are many,
 * since a copy waits in the queue for the kernels that were submitted before it, and keeps its buffer as
 * long.
 */
export const EXCHANGE: StagingSizes = {
  up: { bytes: PIECE_BYTES, buffers: 96 },
  down: { bytes: PIECE_BYTES, buffers: 96 },
};

/** Pieces that an upload reads from files at once. */
const READS = 16;

/**
 * Bytes of a buffer, read in pieces of the size of a readback buffer; `offset` and `bytes` are multiples of
 * 4.
 */
export interface DownloadRange {
  readonly offset: number;
  readonly bytes: number;
  /**
   * Submits work that writes the next piece, so many bytes from byte `at` of the range on, to the beginning
   * of the buffer, which then has room for one piece.
   */
  readonly fill?: (at: number, bytes: number) => void;
}

/** Takes the pieces of a download, one at a time. */
export interface PieceTaker {
  /**
   * Resolves when the `bytes` from byte `at` of the range on can be taken. The mapped memory is asked for
   * after that, since a device that is lost meanwhile takes it away.
   */
  ready?(at: number, bytes: number): Promise<void>;
  /** Uses the bytes of a piece, which begins at byte `at` of the range. */
  take(piece: ArrayBuffer, at: number): void;
}

/** Any view of host memory, shared or not. */
export type HostBytes = ArrayBufferView<ArrayBufferLike>;

/**
 * Moves bytes between host memory and GPU buffers through a few mapped buffers that are reused: new ones
 * would cost page faults each time. Sizes and offsets are multiples of 4.
 *
 */
export class Staging {
  readonly #device: GPUDevice;
  readonly #counters: TransferCounters;
  readonly #sizes: StagingSizes;
  readonly #up: StagingPool;
  readonly #down: StagingPool;
  /** Resolves when the last piece so far has been taken. */
  #taken: Promise<void> = Promise.resolve();

  constructor(device: GPUDevice, counters: TransferCounters, sizes = BULK) {
    this.#device = device;
    this.#counters = counters;
    this.#sizes = sizes;
    const { MAP_READ, MAP_WRITE, COPY_SRC, COPY_DST } = GPUBufferUsage;
    this.#up = new StagingPool(device, { usage: MAP_WRITE | COPY_SRC, label: 'upload' }, sizes.up);
    this.#down = new StagingPool(device, { usage: MAP_READ | COPY_DST, label: 'readback' }, sizes.down);
  }

  /**
   * Copies `source` to `target` from byte `offset` on. Work submitted later sees the bytes, though the copy
   * may still be running.
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
   * Uploads at most as many bytes as a staging buffer has, that `fill` writes; the memory that it gets holds
   * bytes of earlier uploads.
   */
  async uploadFilled(
    target: GPUBuffer,
    offset: number,
    bytes: number,
    fill: (staged: ArrayBuffer) => void,
  ): Promise<void> {
    const staging = await this.#up.take();
    // The mapped range may be longer than the copy: buffers need whole words.
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
   * Hands the bytes of `source` from `offset` on to `to`, piece by piece, each with its place. A piece is
   * gone when it has been taken. Calls `submitted` when the copies are submitted, resolves when they have
   * ended. Throws the first failure once no piece is on its way any more.
   *
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

  /** Reads a buffer when the copy to it has ended, and gives it back after that. */
  #mapped(staging: GPUBuffer, length: number, read: () => Promise<void>): Promise<void> {
    const part = staging
      .mapAsync(GPUMapMode.READ, 0, length)
      .then(read)
      .finally(() => staging.unmap());
    this.#down.give(staging, part);
    return part;
  }

  /**
   * Takes a piece in a turn of the event loop of its own, after the earlier pieces: tasks whose end the GPU
   * reports with it answer first.
   */
  #inTurn(take: () => Promise<void>): Promise<void> {
    const taken = this.#taken.then(nextTurn).then(take);
    this.#taken = taken.catch(() => undefined);
    return taken;
  }

  /**
   * Copies so many bytes to files in memory. Threads of the system write the pieces, so that several of them,
   * and of several downloads, go at once.
   */
  async downloadToFiles(
    source: GPUBuffer,
    target: FileMemory,
    bytes: number,
    submitted?: () => void,
  ): Promise<void> {
    const parts: Promise<void>[] = [];
    for (let at = 0; at < bytes; at += target.pieceBytes) {
      const length = Math.min(target.pieceBytes, bytes - at);
      const staging = await this.#down.take();
      this.#copy(source, at, staging, 0, length);
      this.#counters.down(length);
      parts.push(
        this.#mapped(staging, length, () =>
          writePiece(target, new Uint8Array(staging.getMappedRange(0, length)), at),
        ),
      );
    }
    submitted?.();
    await allEnded(parts);
  }

  /** Copies so many bytes of files in memory to `target` from byte `offset` on; as upload otherwise. */
  async uploadFromFiles(target: GPUBuffer, source: FileMemory, bytes: number, offset = 0): Promise<void> {
    const parts: Promise<void>[] = [];
    for (let at = 0; at < bytes; at += source.pieceBytes) {
      const length = Math.min(source.pieceBytes, bytes - at);
      if (parts.length >= READS) await parts[parts.length - READS];
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
    await readPiece(source, new Uint8Array(staging.getMappedRange(0, this.#sizes.up.bytes), 0, length), at);
    staging.unmap();
  }

  destroy(): void {
    this.#up.destroy();
    this.#down.destroy();
  }

  #copy(from: GPUBuffer, fromOffset: number, to: GPUBuffer, toOffset: number, bytes: number): void {
    const encoder = this.#device.createCommandEncoder();
    encoder.copyBufferToBuffer(from, fromOffset, to, toOffset, bytes);
    this.#device.queue.submit([encoder.finish()]);
  }
}

/** Resolves when all have ended; throws the first failure then. */
async function allEnded(parts: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(parts)).find((part) => part.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
