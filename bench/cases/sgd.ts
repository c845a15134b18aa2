import { join } from 'node:path';
import type { Case } from '../harness.ts';
import { generated, trainColumns, trainings } from '../processes.ts';

const sgd: Case = {
  about:
    'SGD by rank and schedule, on the CPU or a GPU: the median epoch without evaluation. FOLDER is ' +
    'written by `factorflow generate`; without one it has the shape of MovieLens-20M. libmf had 65, 52 ' +
    'and 29.5 M updates/s at ranks 32, 64 and 128 with two threads of a similar machine.',
  words: '[FOLDER]',
  options: {
    ranks: '32,64,128',
    schedules: 'auto,hogwild,wavefront,blocks',
    epochs: '10',
    workers: '2',
    device: 'cpu',
  },
  columns: trainColumns,
  rounds: 1,
  *rows(given) {
    const { ranks, schedules, epochs, workers, device } = given.options;
    const folder = generated('movielens20m', given);
    const data = [join(folder, 'train'), '--test', join(folder, 'test'), '--algorithm', 'sgd', '--no-biases'];
    const fixed = [...data, '--max-iter', epochs, '--workers', workers, '--device', device, '--seed', '1'];
    for (const rank of ranks.split(','))
      for (const schedule of schedules.split(',')) {
        const flags = [...fixed, '--rank', rank, ...(schedule === 'auto' ? [] : ['--schedule', schedule])];
        yield { name: `rank ${rank}, ${schedule}`, engines: trainings(given, flags) };
      }
  },
};
export default sgd;
