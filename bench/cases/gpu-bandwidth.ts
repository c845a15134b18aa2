import { copyRate, gatherRate } from '../gpu/bandwidth.ts';
import { HalfIterations } from '../gpu/training.ts';
import type { Case } from '../harness.ts';

const bandwidth: Case = {
  about:
    "Rates of a GPU's memory, for lower bounds of an iteration: copies (reading and writing both " +
    "count), and float16 rows of θ and x gathered in the ratings' order. A side reads its ratings at 8 " +
    "bytes and each side's factors once; the gathers are N_z f elements a side. FOLDER is of " +
    '`factorflow generate`.',
  words: 'FOLDER',
  options: { rank: '100' },
  columns: { rate: 'GB/s' },
  rounds: 1,
  async *rows({ words, options }) {
    const training = await HalfIterations.open(words[0]);
    await training.restart(Number(options.rank));
    const { gpu, users, items } = training;
    const { x, theta } = training.factors();
    const rate = async (bytes: Promise<number>) => ({ rate: (await bytes) / 1e6 });
    const engines = {
      copy: () => rate(copyRate(gpu)),
      'θ by user': () => rate(gatherRate(gpu, users, theta)),
      'x by item': () => rate(gatherRate(gpu, items, x)),
    };
    yield { name: gpu.info.name, engines };
  },
};
export default bandwidth;
