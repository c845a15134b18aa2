import type { JsonObject } from '../../index.ts';

/** A value as JSON without line breaks; numbers that JSON lacks (NaN, infinities) become null. */
export function jsonLine(value: JsonObject[string]): string {
  return JSON.stringify(value);
}

/** Writes a text and a newline to stdout; resolves once they have left. A closed pipe is no error. */
export function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(`${text}\n`, (error) => {
      if (error && !isBrokenPipe(error)) reject(error);
      else resolve();
    });
  });
}

/** Drops the errors of closed pipes, so that `factorflow inspect ratings | head -1` ends in silence. */
export function ignoreBrokenPipes(): void {
  process.stdout.on('error', () => {});
  process.stderr.on('error', () => {});
}

function isBrokenPipe(error: Error): boolean {
  return 'code' in error && (error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED');
}
