import { createHash } from 'node:crypto';
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALS, DataError, SGD, UsageError } from '../../index.ts';
import {
  als,
  cancelled,
  checkpointDir,
  expectSame,
  fit,
  held,
  rows,
  type Run,
  sgd,
} from './checkpointed-fits.ts';

describe('resume', () => {
  it('starts from the beginning where there is no checkpoint, and says so', async () => {
    const notes: string[] = [];
    const got = await fit(als(), {
      checkpointDir,
      resume: true,
      onEvent: (event) => void (event.type === 'note' && notes.push(event.text)),
    });
    expect(notes).toContain(`no checkpoint in ${checkpointDir}: training starts from the beginning`);
    expect(got.training).not.toHaveProperty('resumedFrom');
    expectSame(got, await fit(als()));
  });

  it('takes the checkpoint before one that is damaged, says so, and puts a good one in its place', async () => {
    await cancelled(als(), 7);
    appendFileSync(join(checkpointDir, 'checkpoint-00000006/items-00000.f32'), 'x');
    const warnings: string[] = [];
    const got = await fit(als(), {
      checkpointDir,
      checkpointInterval: 2,
      resume: true,
      onEvent: (event) => void (event.type === 'warning' && warnings.push(event.text)),
    });
    expect(warnings).toEqual([
      expect.stringMatching(
        /damaged or foreign: it has 2161 bytes in place of 2160 .*checkpoint-00000006\/items-00000\.f32\); the checkpoint before it is tried/,
      ),
    ]);
    expect(got.training?.resumedFrom?.iteration).toBe(4);
    expectSame(got, await fit(als()));
  });

  it('refuses a folder whose checkpoints are all damaged, with each of them, and leaves them there', async () => {
    await cancelled(als(), 5);
    for (const name of readdirSync(checkpointDir)) rmSync(join(checkpointDir, name, 'checkpoint.json'));
    const refused = fit(als(), { checkpointDir, resume: true });
    await expect(refused).rejects.toThrow(DataError);
    await expect(refused).rejects.toThrow(
      /no checkpoint can be used: .*checkpoint-00000004.*; .*checkpoint-00000002.*Remove them, or give another checkpointDir/,
    );
    expect(readdirSync(checkpointDir)).toHaveLength(2);
  });

  it.each([Number.NaN, Number.NEGATIVE_INFINITY])(
    'refuses factors that are %d, also where no iteration is left, and takes the checkpoint before',
    async (bad) => {
      await fit(als(), { checkpointDir, checkpointInterval: 8 });
      const spoil = (checkpoint: string) => {
        const [folder, name] = [join(checkpointDir, checkpoint), 'items-00000.f32'];
        const bytes = readFileSync(join(folder, name));
        bytes.writeFloatLE(bad, 4 * 17);
        writeFileSync(join(folder, name), bytes);
        const sum = createHash('sha256').update(bytes).digest('hex');
        const sums = readFileSync(join(folder, 'SHA256SUMS'), 'utf8');
        writeFileSync(join(folder, 'SHA256SUMS'), sums.replace(/.*(?= {2}items-00000)/, sum));
      };
      spoil('checkpoint-00000009');
      const resumed = await fit(als(), { checkpointDir, checkpointInterval: 100, resume: true });
      expect(resumed.training?.resumedFrom?.iteration).toBe(8);
      expectSame(resumed, await fit(als()));
      for (const checkpoint of readdirSync(checkpointDir)) spoil(checkpoint);
      await expect(fit(als(), { checkpointDir, resume: true })).rejects.toThrow(
        new RegExp(`no checkpoint can be used: .*the number at position 17 is ${bad} .*items-00000.f32`),
      );
    },
  );

  it('shows no control characters of a checkpoint', async () => {
    await cancelled(als(), 3);
    const file = join(checkpointDir, 'checkpoint-00000002', 'checkpoint.json');
    const saved = JSON.parse(readFileSync(file, 'utf8')) as Record<string, object>;
    const restate = (change: object) => {
      writeFileSync(file, JSON.stringify({ ...saved, ...change }));
      const sums = join(checkpointDir, 'checkpoint-00000002', 'SHA256SUMS');
      writeFileSync(
        sums,
        readFileSync(sums, 'utf8').replace(
          /.*checkpoint.json/,
          `${createHash('sha256').update(readFileSync(file)).digest('hex')}  checkpoint.json`,
        ),
      );
    };
    restate({ params: { ...saved.params, 'a\u001b]0;\u0007': 'b\u009b' } });
    await expect(fit(als(), { checkpointDir, resume: true })).rejects.toThrow(
      '"a\\u001b]0;\\u0007" is "b\ufffd" in the checkpoint, and not there here',
    );
    restate({ package: 'other\u001b[2J\n\u009b 1.0' });
    const notes: string[] = [];
    await fit(als(), {
      checkpointDir,
      resume: true,
      onEvent: (event) => void (event.type === 'note' && notes.push(event.text)),
    });
    expect(notes).toContainEqual(
      expect.stringMatching(/^training continues from iteration 2 of .*, which other2J 1\.0 wrote$/),
    );
  });

  it.each<[string, ALS | SGD, Run, RegExp]>([
    [
      'parameters',
      als({ regParam: 0.3, rank: 5 }),
      {},
      /does not fit: rank is 6 in the checkpoint, and 5 here; regParam is 0\.02 in the checkpoint, and 0\.3 here/,
    ],
    ['a seed', als({ seed: 4 }), {}, /seed is 3 in the checkpoint, and 4 here/],
    [
      'a default of before',
      als({ cgSteps: 5 }),
      {},
      /cgSteps is "auto" in the checkpoint, and 5 here.*keeps the values of its run, including the defaults at that time: to continue it give cgSteps: 'auto', or give another checkpointDir/,
    ],
    ['an algorithm', sgd(), {}, /algorithm is "als" in the checkpoint, and "sgd" here/],
    ['fewer iterations', als({ maxIter: 3 }), {}, /it is of iteration 4, and maxIter is 3/],
    ['fewer ratings', als(), { ratings: rows.slice(1) }, /ratings: 3482 in the checkpoint, and 3481 here/],
    [
      'other values',
      als(),
      { ratings: rows.map((row, at) => (at === 9 ? { ...row, rating: row.rating + 1 } : row)) },
      /does not fit: other ratings of the same users and items/,
    ],
    [
      'other ids',
      als(),
      {
        ratings: rows.map((row) => ({ ...row, user: row.user + 1000 })),
        tested: held.map((row) => ({ ...row, user: row.user + 1000 })),
      },
      /does not fit: other users/,
    ],
    [
      'no validation set',
      als(),
      { tested: null },
      /pairs of the validation set: \d+ in the checkpoint, and null here/,
    ],
    [
      'another validation set',
      als(),
      { tested: held.map((row) => ({ ...row, rating: 1 })) },
      /does not fit: another validation set/,
    ],
  ])('refuses %s, and names the difference', async (_, trainer, run, message) => {
    await cancelled(als(), 5);
    const refused = fit(trainer, { checkpointDir, resume: true, ...run });
    await expect(refused).rejects.toThrow(UsageError);
    await expect(refused).rejects.toThrow(message);
    expect(readdirSync(checkpointDir).sort()).toEqual(['checkpoint-00000002', 'checkpoint-00000004']);
  });

  it('takes the ratings in any order', async () => {
    await cancelled(als(), 5);
    expectSame(
      await fit(als(), { checkpointDir, resume: true, ratings: rows.toReversed() }),
      await fit(als()),
    );
  });
});
