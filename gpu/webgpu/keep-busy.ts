import { spinKernel } from '../kernels/copies/spin.ts';
import type { Gpu } from './gpu.ts';

/** Some milliseconds on a large GPU. */
const WORKGROUPS = 2048;
const ROUNDS = 20_000;

/**
 * Waits for `work` of the host, such as the compiling of kernels, while the GPU has something to do: an idle card clocks down
 * to a fifth, and takes tenths of a second to come back, which would be the first iterations'. Not for software adapters.
 */
export async function keepBusy<Result>(gpu: Gpu, work: Promise<Result>): Promise<Result> {
  if (gpu.info.software) return work;
  const state = { waiting: true };
  const done = work.finally(() => {
    state.waiting = false;
  });
  // Whoever waits for `work` hears of its failure.
  done.catch(() => undefined);
  await Promise.race([done, new Promise((resolve) => setTimeout(resolve, 5))]);
  if (state.waiting) {
    const spin = await gpu.compile(spinKernel, {});
    const result = await gpu.scratch('spin', 16);
    while (state.waiting) await gpu.pass('spin').dispatch(spin, { result }, { rounds: ROUNDS }, WORKGROUPS).submit();
  }
  return done;
}
