import { join } from 'node:path';
import type { Case } from '../harness.ts';
import { generated, trainColumns, trainings } from '../processes.ts';

const settings = [
  'cholesky --rank 64',
  'cg --rank 64 --cg-steps 6',
  'cg --rank 64 --cg-steps 3',
  'cg --rank 128',
];

const als: Case = {
  about:
    "ALS on the CPU at MovieLens-20M's size: loading and training, each setting in a process of its " +
    'own. FOLDER is written by `factorflow generate --preset movielens20m`, and made if missing. ' +
    'implicit 0.7 took 16.2, -, 3.36 and 4.99 s an iteration (3 steps of CG) on a similar machine.',
  words: '[FOLDER]',
  options: { workers: '2' },
  columns: trainColumns,
  rounds: 1,
  *rows(given) {
    const folder = generated('movielens20m', given);
    const fixed = `--reg-param 0.05 --max-iter 4 --workers ${given.options.workers} --seed 1`.split(' ');
    for (const setting of settings) {
      const data = [join(folder, 'train'), '--test', join(folder, 'test')];
      const flags = [...data, ...fixed, '--device', 'cpu', '--solver', ...setting.split(' ')];
      yield { name: setting, engines: trainings(given, flags) };
    }
  },
};
export default als;
