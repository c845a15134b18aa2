import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ratings, start, temporaryFolder } from './run-cli.ts';

const folder = temporaryFolder();

it('a training whose thread ends by itself goes on with another, to the same model', async () => {
  const train = (name: string, options: Parameters<typeof start>[1] = {}) =>
    start(
      [
        'train',
        ratings,
        '--rank',
        '64',
        '--solver',
        'cholesky',
        '--max-iter',
        '3',
        '--device',
        'cpu',
        '--workers',
        '2',
        '--quiet',
        '--model-dir',
        join(folder, name),
      ],
      options,
    ).outcome;
  const factors = (name: string) => readFileSync(join(folder, name, 'itemFactors/part-00000.parquet'));
  const mark = join(folder, 'ended');
  const ended = await train('ended-model', {
    nodeArgs: ['--import', join(import.meta.dirname, '../support/faults/end-at-clock.mjs')],
    env: { FACTORFLOW_END_AT: '201', FACTORFLOW_END_MARK: mark },
  });
  expect(ended).toMatchObject({ code: 0 });
  expect(existsSync(mark)).toBe(true);
  expect(await train('model')).toMatchObject({ code: 0 });
  expect(factors('ended-model').equals(factors('model'))).toBe(true);
});
