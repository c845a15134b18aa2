import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { CapacityError } from '../../engine/errors.ts';
import { waitForOther } from '../../engine/waits.ts';
import { fileProblem } from '../files/file-problem.ts';

let whole: Writable | undefined;

/**
 * The process's stdout. Node's own stream for a file or a device drops the rest of a short write, such as the
 * last one on a disk that fills; the stream returned here writes all bytes or fails.
 */
export function standardOutput(): Writable {
  const stdout: Writable & { readonly fd?: number } = process.stdout;
  // Pipes and terminals are sockets; a worker thread's stdout has no descriptor.
  if (stdout instanceof Socket || stdout.fd === undefined) return stdout;
  return (whole ??= new FileOutput(stdout.fd));
}

class FileOutput extends Writable {
  bytesWritten = 0;
  readonly #fd: number;

  constructor(fd: number) {
    super({ decodeStrings: true });
    this.#fd = fd;
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    try {
      for (let at = 0; at < bytes.length;) {
        const written = writeSync(this.#fd, bytes, at);
        at += written;
        this.bytesWritten += written;
      }
    } catch (error) {
      return done(error as Error);
    }
    done();
  }
}

/**
 * Writes to stdout; resolves once the bytes are written. Waits as long as the reader of a pipe does, and
 * counts as waiting for another program.
 */
export function writeStandard(bytes: Uint8Array | string): Promise<void> {
  return waitForOther(
    new Promise((resolve, reject) => {
      standardOutput().write(bytes, (error) => (error ? reject(error) : resolve()));
    }),
  );
}

/** The error for stdout that takes no more bytes; what it has taken stays there. */
export function standardProblem(error: unknown): Error {
  const problem = fileProblem(error, 'write', 'stdout');
  if (!(problem instanceof CapacityError)) return problem;
  const advice = `${problem.details.advice?.split(';')[0]}; what is written so far is incomplete`;
  return new CapacityError(problem.summary, { ...problem.details, advice });
}
