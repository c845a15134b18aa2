import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { Writable } from 'node:stream';

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
