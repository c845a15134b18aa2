import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { Transform, type Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import * as zlib from 'node:zlib';
import { UsageError } from '../../engine/errors.ts';
import { withoutControls } from '../../engine/format.ts';
import { waitForOther } from '../../engine/waits.ts';
import { type Compression, requireZstd } from '../compression/compressions.ts';
import { Lz4Packer } from '../compression/lz4-frame.ts';
import { errorCode, fileProblem } from '../files/file-problem.ts';
import { outputName, requirePath, STANDARD_STREAM } from '../files/path-kinds.ts';
import { atomicOutput, type AtomicOutput, type AtomicOutputOptions, checkOutput } from './atomic-output.ts';
import { standardOutput, standardProblem, writeStandard } from './standard-output.ts';

export interface ByteOutputOptions {
  /** Replaces an existing file. */
  readonly overwrite?: boolean;
  readonly compression?: Compression;
}

/**
 * One file (or stdout, "-") that is written from beginning to end. End it with exactly one of `commit` and
 * `fail`.
 */
export class ByteOutput {
  /** Bytes on the disk, known after `commit`. */
  bytes = 0;
  /** True once the reader of stdout has closed it: then writing can stop. */
  unread = false;
  readonly #path: string;
  readonly #output: AtomicOutput | undefined;
  readonly #sink: Writable;
  readonly #target: Writable;
  readonly #shown: ((bytes: Uint8Array) => Uint8Array) | undefined;
  #failure: unknown;

  private constructor(path: string, output: AtomicOutput | undefined, compression: Compression) {
    this.#path = path;
    this.#output = output;
    if (output === undefined && process.stdout.isTTY && compression === 'none') this.#shown = shownText();
    this.#target =
      output === undefined
        ? standardOutput()
        : createWriteStream(output.temporary, { flags: 'wx', highWaterMark: 1 << 20 });
    this.#target.on('error', this.#onError);
    this.#sink = this.#target;
    const packer = packing(compression);
    if (packer !== undefined) {
      packer.on('error', this.#onError);
      packer.pipe(this.#target, { end: output !== undefined });
      this.#sink = packer;
    }
  }

  /** Throws UsageError if the output may not be written. */
  static async open(
    path: string,
    { overwrite, compression = 'none' }: ByteOutputOptions,
  ): Promise<ByteOutput> {
    const output = path === STANDARD_STREAM ? undefined : await atomicOutput(path, fileOutput(overwrite));
    return new ByteOutput(path, output, compression);
  }

  /** Throws UsageError if the output may not be written; called before any work is done. */
  static async check(path: string, { overwrite, compression }: ByteOutputOptions): Promise<void> {
    if (compression === 'zstd') requireZstd('write', outputName(path));
    if (path !== STANDARD_STREAM) await checkOutput(path, fileOutput(overwrite));
  }

  /** Resolves when more can be written. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#check();
    if (this.unread || this.#sink.write(this.#shown?.(bytes) ?? bytes)) return;
    const wait = new AbortController();
    // The wait also ends if the target fails or is closed.
    const ready = Promise.race([once(this.#sink, 'drain', wait), once(this.#target, 'close', wait)]);
    const ended = ready.catch(() => {});
    await (this.#output === undefined ? waitForOther(ended) : ended);
    wait.abort();
    this.#check();
  }

  async commit(): Promise<void> {
    if (this.#output === undefined) {
      await this.#endStandard();
      return;
    }
    await this.#end();
    await finished(this.#target).catch((error: unknown) => (this.#failure ??= error));
    this.#check();
    this.bytes = 'bytesWritten' in this.#target ? Number(this.#target.bytesWritten) : 0;
    await this.#output.commit();
  }

  /**
   * Ends the compression only after all chunks were passed to it. If chunks were still waiting, Node would
   * end a frame of zstd with the last of them and then add an empty frame.
   */
  async #end(): Promise<void> {
    if (this.#sink !== this.#target)
      await new Promise<void>((resolve) => void this.#sink.write('', () => resolve()));
    this.#sink.end();
  }

  /** Removes a failed output, and returns the error to throw. */
  async fail(error: unknown): Promise<unknown> {
    this.#target.off('error', this.#onError).on('error', () => {});
    if (this.#output === undefined) return error;
    this.#sink.destroy();
    if (!this.#target.closed) {
      // An earlier error must not end the wait.
      const closed = new Promise((resolve) => this.#target.once('close', resolve));
      this.#target.destroy();
      await closed;
    }
    return this.#output.fail(error);
  }

  /** Waits until stdout has passed on all bytes; it stays open. */
  async #endStandard(): Promise<void> {
    if (this.#sink !== this.#target) {
      await this.#end();
      await waitForOther(finished(this.#sink));
    }
    await writeStandard('').catch((error: Error) => this.unread || this.#onError(error));
    this.#target.off('error', this.#onError);
    this.#check();
    this.bytes = 'bytesWritten' in this.#target ? Number(this.#target.bytesWritten) : 0;
  }

  readonly #onError = (error: Error): void => {
    if (this.#output === undefined && ['EPIPE', 'ECONNRESET'].includes(errorCode(error) ?? ''))
      this.unread = true;
    else this.#failure ??= error;
  };

  #check(): void {
    if (this.#failure === undefined) return;
    throw this.#output === undefined
      ? standardProblem(this.#failure)
      : fileProblem(this.#failure, 'write', this.#path);
  }
}

function fileOutput(overwrite: boolean | undefined): AtomicOutputOptions {
  return { kind: 'file', overwrite, recognizes: () => false };
}

/** Makes UTF-8 text safe for a terminal; pipes and files get the bytes unchanged. */
export function shownText(): (bytes: Uint8Array) => Uint8Array {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const encoder = new TextEncoder();
  return (bytes) => encoder.encode(withoutControls(decoder.decode(bytes, { stream: true })));
}

/** Throws UsageError for a folder's name. */
export function requireFileName(path: string): void {
  requirePath(path, 'write');
  if (path.endsWith('/'))
    throw new UsageError('the output is one file, and this names a folder', {
      phase: 'write',
      file: path,
      advice: 'Name a file; only Parquet is written as a folder',
    });
}

/** A stream that compresses what is written to it; undefined for 'none'. */
function packing(compression: Compression): Transform | undefined {
  if (compression === 'gzip') return zlib.createGzip({ level: 6 });
  if (compression === 'zstd')
    return zlib.createZstdCompress({ params: { [zlib.constants.ZSTD_c_checksumFlag]: 1 } });
  return compression === 'lz4' ? lz4Packing() : undefined;
}

function lz4Packing(): Transform {
  const packer = new Lz4Packer();
  let begun = false;
  const begin = (stream: Transform) => {
    if (!begun) stream.push(packer.begin());
    begun = true;
  };
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      begin(this);
      done(null, packer.pack(chunk));
    },
    flush(done) {
      begin(this);
      done(null, packer.end());
    },
  });
}
