import { join } from 'node:path';
import type { Case } from '../harness.ts';
import { generated, trainColumns, trainings } from '../processes.ts';

const largeRanks: Case = {
  about:
    'ALS by CG without A at ranks above 512: four iterations with biases, without, and of implicit ' +
    'data. FOLDER has a folder for each preset, which is generated if missing.',
  words: '[FOLDER]',
  options: {
    presets: 'netflix,movielens20m',
    ranks: '1024,2048,4096',
    precision: 'f16,f32',
    device: 'gpu',
  },
  columns: trainColumns,
  rounds: 1,
  *rows(given) {
    const { presets, ranks, precision, device } = given.options;
    for (const preset of presets.split(',')) {
      const folder = generated(preset, given, given.words[0] && join(given.words[0], preset));
      const test = ['--test', join(folder, 'test')];
      for (const rank of ranks.split(','))
        for (const form of [test, [...test, '--no-biases'], ['--implicit']])
          for (const bits of precision.split(',')) {
            const fixed = ['--cg-steps', '6', '--max-iter', '4', '--seed', '1', '--device', device];
            const flags = [join(folder, 'train'), ...form, '--rank', rank, '--precision', bits, ...fixed];
            const name = `${preset}, rank ${rank}, ${bits}, ${form.at(-1)?.replace(/.*\/test$/, 'biases')}`;
            yield { name, engines: trainings(given, flags) };
          }
    }
  },
};
export default largeRanks;
