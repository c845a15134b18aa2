import { CapacityError } from '../../engine/errors.ts';
import { waitForOther } from '../../engine/waits.ts';
import { fileProblem } from '../files/file-problem.ts';
import { standardOutput } from './standard-output.ts';

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
