import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
  readFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { baseBytes } from '../../../operators/planner/memory-budget.ts';
import { argv, factorflow, fewRatings, program, start } from '../run-cli.ts';
import { withTmpfs } from '../../support/tmpfs.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();

const count = 60_000;
const data = join(folder, 'ratings.csv');
// There is room for the blocks, but not for the blocks and the chunks together.
const budget = `${baseBytes(1) + 18 * count}`;
const train = (
  name: string,
  ...more: string[]
) => argv`train ${data} --model-dir ${join(folder, name)} --rank 2
  ${more.includes('--max-iter') ? [] : ['--max-iter', '2']} --workers 1 --device cpu
  --no-biases ${more}`;
const spilling = (spill: string) => ['--memory-budget', budget, '--spill-dir', spill];

beforeAll(() => {
  const lines = Array.from(
    { length: count },
    (_, k) => `${(k * 7919) % 700},${Math.floor(k / 700)},${(k % 5) + 1}`,
  );
  writeFileSync(data, `user,item,rating\n${lines.join('\n')}\n`);
});

const folderOf = (name: string) => {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
};

/** The checksums of a side's files in a model. */
const sumsOf = (model: string, side: string) =>
  execFileSync('sha256sum', readdirSync(join(folder, model, side)).sort(), {
    cwd: join(folder, model, side),
    encoding: 'utf8',
  });

describe('a memory budget below what loading takes', () => {
  it('loads by way of files, gives the same model and leaves no file', async () => {
    const spill = folderOf('spill');
    expect(await factorflow(...train('plain'))).toMatchObject({ code: 0 });
    const { code, stderr } = await factorflow(...train('spilled', ...spilling(spill)));
    expect(stderr).toContain('they go by way of files');
    expect(code).toBe(0);
    expect(readdirSync(spill)).toEqual([]);
    for (const side of ['userFactors', 'itemFactors'])
      expect(sumsOf('spilled', side)).toBe(sumsOf('plain', side));
  });

  it('clears the files of a run that was killed', async () => {
    const spill = folderOf('killed');
    const killed = start(train('killed-model', ...spilling(spill), '--max-iter', '100000'));
    await killed.stderrMatches(/iteration 2\//);
    // Of another host, and of the user's own.
    mkdirSync(join(spill, `.factorflow-spill.tmp-0123456789ab-${process.pid}-1-0`));
    mkdirSync(join(spill, `notes-of-${hostname()}`));
    killed.child.kill('SIGKILL');
    await killed.outcome;
    expect(readdirSync(spill)).toHaveLength(3);
    expect(await factorflow(...train('next', ...spilling(spill)))).toMatchObject({ code: 0 });
    expect(readdirSync(spill).sort()).toEqual([
      `.factorflow-spill.tmp-0123456789ab-${process.pid}-1-0`,
      `notes-of-${hostname()}`,
    ]);
  });

  it('exits with 2 before the reading for a path that is no folder', async () => {
    const { code, stderr } = await factorflow(...train('never', ...spilling(join(data, 'below'))));
    expect(stderr).toMatch(new RegExp(`^factorflow: --spill-dir ${join(data, 'below')} is not a folder`));
    expect(stderr).not.toContain('read');
    expect(code).toBe(2);
  });

  it('exits with 4 and the bytes where the disk is full, and leaves no file', ({ skip }) => {
    if (process.platform === 'win32') return skip('there is no limit on the size of files');
    const spill = folderOf('full');
    // A file size limit simulates a full disk: writes beyond it fail.
    const { status, stderr } = spawnSync(
      'sh',
      [
        '-c',
        `trap '' XFSZ; ulimit -f 512; exec "$0" "$@"`,
        process.execPath,
        program,
        ...train('full-model', ...spilling(spill)),
      ],
      { encoding: 'utf8' },
    );
    expect(stderr).toMatch(/^factorflow: .*the disk is full: \S+ \w+ \(\d+ bytes\) more did not fit/m);
    expect(status).toBe(4);
    expect(readdirSync(spill)).toEqual([]);
    expect(existsSync(join(folder, 'full-model'))).toBe(false);
  });

  it('trains from files where the blocks do not fit either, and exits with 4 by sgd, which needs them in memory', async () => {
    const spill = folderOf('blocks');
    const tight = ['--memory-budget', `${baseBytes(1) + 2 * count}`, '--spill-dir', spill];
    const { code, stdout } = await factorflow(...train('small', ...tight, '--json'));
    expect(code).toBe(0);
    expect(JSON.parse(stdout).ratings).toBe(count);
    expect(readdirSync(spill)).toEqual([]);
    for (const side of ['userFactors', 'itemFactors'])
      expect(sumsOf('small', side)).toBe(sumsOf('plain', side));
    const sgd = await factorflow(...train('small-sgd', ...tight, '--algorithm', 'sgd'));
    expect(sgd.stderr).toMatch(/^factorflow: .*the run needs about .* Raise --memory-budget to /m);
    expect(sgd.code).toBe(4);
  });

  it('leaves no file when training from files is stopped', async () => {
    const spill = folderOf('training');
    const tight = ['--memory-budget', `${baseBytes(1)}`, '--spill-dir', spill];
    const stopped = start(train('stopped-training', ...tight, '--max-iter', '100000'));
    await stopped.stderrMatches(/iteration 3\//);
    const [own] = readdirSync(spill);
    expect(readdirSync(join(spill, own)).length).toBeGreaterThan(1);
    stopped.child.kill('SIGINT');
    expect(await stopped.outcome).toMatchObject({ code: 130 });
    expect(readdirSync(spill)).toEqual([]);
  });

  it('exits with 4 and the least that works for a budget below what the process itself needs', async () => {
    const leastOf = async (command: readonly string[]) => {
      const { code, stderr } = await factorflow(...command);
      expect(code).toBe(4);
      return /^factorflow: .* but the memory budget is [\d.]+ MiB. Raise --memory-budget to ([\d.]+ MiB) or more/m
        .exec(stderr)?.[1]
        .replace(' ', '') as string;
    };
    const asked = (least: string, algorithm = 'als') =>
      train(`least-${algorithm}`, '--memory-budget', least, '--algorithm', algorithm, '--max-iter', '1');
    const planned = (least: string) =>
      ['plan', ...asked(least).slice(1)].filter(
        (word, i, words) => ![word, words[i - 1]].includes('--model-dir'),
      );
    const least = await leastOf(asked('100MiB'));
    // The plan reports the same minimum, also for a budget that is only slightly smaller.
    expect(await leastOf(planned('100MiB'))).toBe(least);
    expect(await leastOf(asked(`${Number.parseFloat(least) - 8}MiB`))).toBe(least);
    expect(await factorflow(...asked(least))).toMatchObject({ code: 0 });
    expect(await factorflow(...planned(least))).toMatchObject({ code: 0 });
    expect(Number.parseFloat(least)).toBeLessThan(Number.parseFloat(await leastOf(asked('100MiB', 'sgd'))));
  });
});

describe('factors in files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'factorflow-factors-in-files-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const here = (name: string) => join(folder, name);

  /** The users' factors take 10 MB in one version. */
  const [users, items, rank] = [40_000, 2000, 64];

  beforeAll(() => {
    const lines = Array.from(
      { length: 50_000 },
      (_, k) => `${k % users},${(k * 7919) % items},${(k % 9) / 2 + 1}`,
    );
    writeFileSync(here('ratings.csv'), `user,item,rating\n${lines.join('\n')}\n`);
  });

  const flags = `--rank ${rank} --no-biases --solver cg --cg-steps 1 --device cpu --workers 1`.split(' ');
  const train = (
    model: string,
    iterations: number,
    spill: string,
    checkpoints?: string,
    ...more: string[]
  ) => argv`train ${here('ratings.csv')} --model-dir ${here(model)} --max-iter ${String(iterations)}
  --memory-budget ${String(baseBytes(1) + 6 * 2 ** 20)} --spill-dir ${spill} ${flags}
  ${checkpoints === undefined ? [] : ['--checkpoint-dir', checkpoints, '--checkpoint-interval', '1']}
  ${more}`;

  const factorsOf = (model: string) =>
    ['userFactors', 'itemFactors'].map((side) =>
      readFileSync(join(here(model), side, readdirSync(join(here(model), side)).sort()[0])),
    );

  /** The names of the checkpoints; none for a folder that is removed, since nothing was written there. */
  const checkpointsIn = (path: string) =>
    existsSync(path) ? readdirSync(path).filter((name) => name.includes('checkpoint')) : [];

  describe('a run with its factors in files', () => {
    it('gives the same factors where it was killed and resumed, and its files are removed', async () => {
      const [spill, checkpoints] = [here('spill'), here('checkpoints')];
      const killed = start(train('killed', 100_000, spill, checkpoints));
      await killed.stderrMatches(/iteration 2\//);
      killed.child.kill('SIGKILL');
      await killed.outcome;
      const [left] = readdirSync(spill);
      // A file for each part of the users.
      expect(readdirSync(join(spill, left)).length).toBeGreaterThanOrEqual(64);
      const iteration = Math.max(
        ...checkpointsIn(checkpoints).map((name) => Number(/^checkpoint-(\d+)$/.exec(name)?.[1] ?? 0)),
      );
      expect(iteration).toBeGreaterThan(0);
      const resumed = await factorflow(
        ...train('resumed', iteration + 1, spill, checkpoints, '--resume', '--json'),
      );
      expect(resumed.code).toBe(0);
      expect(JSON.parse(resumed.stdout)).toMatchObject({ resumedFrom: { iteration } });
      expect(readdirSync(spill)).toEqual([]);
      const whole = await factorflow(...train('whole', iteration + 1, here('more')));
      expect(whole.code).toBe(0);
      expect(factorsOf('resumed').map((bytes, side) => bytes.equals(factorsOf('whole')[side]))).toEqual([
        true,
        true,
      ]);
    });

    it('exits with 4 and the folder where the disk of its factors is full', async ({ skip }) => {
      // There are bytes, but too few names for the files of the parts.
      await withTmpfs(skip, here('full'), 'size=64m,nr_inodes=40', async (spill) => {
        const { code, stderr } = await factorflow(...train('never', 2, spill, here('none')));
        expect(stderr).toContain('train: started');
        expect(stderr).toMatch(/^factorflow: .*the disk is full.*full\//m);
        expect(code).toBe(4);
        expect(readdirSync(spill)).toEqual([]);
      });
      expect(checkpointsIn(here('none'))).toEqual([]);
      expect(existsSync(here('never'))).toBe(false);
    });

    it('or any other is trained without checkpoints where their disk is full, with a warning that has the folder', async ({
      skip,
    }) => {
      // There are bytes, but too few names for the files of a checkpoint.
      await withTmpfs(skip, here('names'), 'size=64m,nr_inodes=6', async (checkpoints) => {
        const { code, stderr } = await factorflow(
          ...argv`train ${await fewRatings()} --model-dir ${here('trained')} --rank 4 --max-iter 1 --device cpu
          --checkpoint-dir ${checkpoints} --checkpoint-interval 1`,
        );
        expect(stderr).toMatch(
          /checkpoint of iteration 1 could not be written, and training continues without it: .*the disk is full.*names\/checkpoint-00000001/,
        );
        expect(code).toBe(0);
        expect(checkpointsIn(checkpoints)).toEqual([]);
      });
      expect(factorsOf('trained')).toHaveLength(2);
    });

    const isRefused = async (skip: (reason: string) => void, isSpill: boolean, pattern: RegExp) => {
      const name = isSpill ? 'tiny-spill' : 'tiny-checkpoints';
      await withTmpfs(skip, here(name), 'size=8m', async (path) => {
        const line = isSpill
          ? train('refused', 2, path, here('none'))
          : train('refused', 2, here('more'), path);
        const { code, stderr } = await factorflow(...line);
        expect(stderr).toMatch(pattern);
        expect(stderr).not.toContain('iteration 1/');
        expect(code).toBe(4);
      });
    };

    it('is refused before its first iteration where the disk has no room for its factors', async ({
      skip,
    }) => {
      await isRefused(skip, true, /the disk of --spill-dir has .* free, and .* need up to .*tiny-spill\//);
    });

    it('is refused before its first iteration where the disk has no room for checkpoints', async ({
      skip,
    }) => {
      await isRefused(skip, false, /checkpoints need .* more, and .* are free \(.*tiny-checkpoints\)/);
    });
  });
});
