import { standardOutput, standardProblem, writeStandard } from '../../connectors/output/standard-output.ts';
import type { JsonObject } from '../../index.ts';

/**
 * Characters that terminals act on and JSON allows unescaped: DEL, C1 controls, and characters that change
 * the direction of text.
 */
const ACTED_ON = /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/**
 * A value as JSON without line breaks, escaping all characters that a terminal acts on; numbers that JSON
 * lacks (NaN, infinities) become null.
 */
export function jsonLine(value: JsonObject[string]): string {
  return JSON.stringify(value).replaceAll(
    ACTED_ON,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Writes a text and a newline to stdout; resolves once they are written. A closed pipe is not an error. */
export async function print(text: string): Promise<void> {
  await writeStandard(`${text}\n`).catch((error: Error) => {
    if (!isBrokenPipe(error)) throw standardProblem(error);
  });
}

/** Ignores errors of closed pipes, so that `factorflow inspect ratings | head -1` ends silently. */
export function ignoreBrokenPipes(): void {
  standardOutput().on('error', () => {});
  process.stderr.on('error', () => {});
}

export function isBrokenPipe(error: Error): boolean {
  return 'code' in error && (error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED');
}
