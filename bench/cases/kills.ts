import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { type Kill, killedRuns, spillingRun } from '../../test/support/damage/killed-runs.ts';
import type { Case } from '../harness.ts';

const INTERVAL = 2;
const sgd = '--algorithm sgd --schedule wavefront --rate adagrad --test-fraction 0.1 --early-stop 30';

const kills: Case = {
  about:
    'Training runs killed at random moments after their first checkpoint and resumed: models that equal ' +
    'the model of an undisturbed run bit for bit, kills while something was written, files left, and ' +
    'iterations run again. A round is a seed.',
  words: '[RATINGS = examples/data/movietweetings-100k/ratings.parquet]',
  options: { kills: '50' },
  columns: { kills: '', equal: '', writing: '', left: 'files', again: 'iterations' },
  rounds: 1,
  *rows({ words: [ratings = 'examples/data/movietweetings-100k/ratings.parquet'], options, scratch }) {
    const line = (flags: string) => () =>
      `train ${ratings} --device cpu --rank 32 --max-iter 40 ${flags}`.split(' ');
    const runs: Readonly<Record<string, (folder: string) => string[]>> = {
      'ALS, conjugate gradients, biases': line('--solver cg'),
      'SGD, wavefront, AdaGrad': line(sgd),
      'ALS, ratings in files': spillingRun,
    };
    for (const [name, train] of Object.entries(runs)) {
      const run = async (seed: number) => {
        const folder = mkdtempSync(join(scratch, 'kills-'));
        const given = {
          train: train(folder),
          interval: INTERVAL,
          kills: Number(options.kills),
          seed,
          folder,
        };
        const made = await killedRuns({ ...given, onKill: () => {} });
        const count = (of: (kill: Kill) => boolean) => made.filter(of).length;
        return {
          kills: made.length,
          equal: count(({ differing }) => differing.length === 0),
          writing: count(({ writing }) => writing),
          left: made.flatMap(({ left }) => left).length,
          again: Math.max(...made.map(({ told, resumedFrom }) => told - resumedFrom)),
        };
      };
      yield { name, engines: { train: run } };
    }
  },
};
export default kills;
