import type { Case } from '../harness.ts';
import { trainColumns, trainings } from '../processes.ts';

const { load, ...others } = trainColumns;

const loading: Case = {
  about:
    'Seconds from the first byte of ratings to both sorted blocks, by file and number of workers. Each ' +
    'is a `train` of one iteration at rank 8. `--budget` limits its memory: the peak shows whether it ' +
    'is kept.',
  words: 'RATINGS...',
  options: { workers: '2', budget: '' },
  columns: { load, ...others },
  rounds: 5,
  *rows(given) {
    const { workers, budget } = given.options;
    const fixed = ['--rank', '8', '--max-iter', '1', '--no-biases', '--device', 'cpu'];
    for (const ratings of given.words)
      for (const count of workers.split(','))
        for (const limit of budget.split(',')) {
          const memory = limit === '' ? [] : ['--memory-budget', limit];
          const flags = [ratings, ...fixed, '--workers', count, ...memory];
          yield { name: `${ratings}, ${count} workers ${limit}`, engines: trainings(given, flags) };
        }
  },
};
export default loading;
