/**
 * Waits for others, such as a source of the caller's, end with this library's errors when a run is cancelled.
 */
import { expect, it } from 'vitest';
import { CancelledError } from '../../engine/errors.ts';
import { Patience } from '../../engine/waits.ts';

/** Waits for work that is cancelled, as `fetch` is: with the reason of the signal. */
async function cancelled(problem?: Error): Promise<unknown> {
  const stop = new AbortController();
  const reason = new DOMException('stopped', 'AbortError');
  using patience = new Patience(stop.signal, 'read');
  const { promise, reject } = Promise.withResolvers<never>();
  stop.signal.addEventListener('abort', () => reject(problem ?? reason));
  const wait = patience.waitFor(() => promise).catch((error: unknown) => error);
  stop.abort(reason);
  const error = await wait;
  if (problem === undefined) expect((error as CancelledError).details.cause).toBe(reason);
  return error;
}

it('an end with the reason of the signal is a cancel', async () => {
  expect(await cancelled()).toBeInstanceOf(CancelledError);
});

it('another failure keeps its error', async () => {
  const problem = new Error('row 9');
  expect(await cancelled(problem)).toBe(problem);
});
