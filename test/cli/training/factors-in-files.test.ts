/** Runs whose factors are in files: killed and resumed, and on disks that are full. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { baseBytes } from '../../../operators/planner/memory-budget.ts';
import { withTmpfs } from '../../support/tmpfs.ts';
import { factorflow, start } from '../run-cli.ts';

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
const train = (model: string, iterations: number, spill: string, checkpoints?: string, ...more: string[]) => [
  'train',
  here('ratings.csv'),
  '--model-dir',
  here(model),
  '--max-iter',
  String(iterations),
  '--memory-budget',
  String(baseBytes(1) + 6 * 2 ** 20),
  '--spill-dir',
  spill,
  ...flags,
  ...(checkpoints === undefined ? [] : ['--checkpoint-dir', checkpoints, '--checkpoint-interval', '1']),
  ...more,
];

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
    await killed.stderrMatches(/iteration 3\//);
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

  it('is trained without checkpoints where their disk is full, with a warning that has the folder', async ({
    skip,
  }) => {
    // There are bytes, but too few names for the files of a checkpoint.
    await withTmpfs(skip, here('names'), 'size=64m,nr_inodes=6', async (checkpoints) => {
      const { code, stderr } = await factorflow(...train('trained', 1, here('more'), checkpoints));
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

  it('is refused before its first iteration where the disk has no room for its factors', async ({ skip }) => {
    await isRefused(skip, true, /the disk of --spill-dir has .* free, and .* need up to .*tiny-spill\//);
  });

  it('is refused before its first iteration where the disk has no room for checkpoints', async ({ skip }) => {
    await isRefused(skip, false, /checkpoints need .* more, and .* are free \(.*tiny-checkpoints\)/);
  });
});
