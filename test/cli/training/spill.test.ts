import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { baseBytes } from '../../../operators/planner/memory-budget.ts';
import { factorflow, program, start } from '../run-cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'factorflow-spill-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

const count = 150_000;
const data = join(folder, 'ratings.csv');
// There is room for the blocks, but not for the blocks and the chunks together.
const budget = `${baseBytes(1) + 18 * count}`;
const train = (name: string, ...more: string[]) => [
  'train',
  data,
  '--model-dir',
  join(folder, name),
  '--rank',
  '2',
  ...(more.includes('--max-iter') ? [] : ['--max-iter', '2']),
  '--workers',
  '1',
  '--device',
  'cpu',
  '--no-biases',
  ...more,
];
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

  it('leaves no file when it is stopped, and clears those of a run that was killed', async () => {
    const spill = folderOf('stopped');
    const stopped = start(train('stopped-model', ...spilling(spill), '--max-iter', '100000'));
    await stopped.stderrMatches(/iteration 2\//);
    expect(readdirSync(spill)).toHaveLength(1);
    stopped.child.kill('SIGINT');
    expect(await stopped.outcome).toMatchObject({ code: 130 });
    expect(readdirSync(spill)).toEqual([]);
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
    for (const [spill, reason] of [
      [join(data, 'below'), 'is not a folder'],
      [data, 'is not a folder'],
    ] as const) {
      const { code, stderr } = await factorflow(...train('never', ...spilling(spill)));
      expect(stderr).toMatch(new RegExp(`^factorflow: --spill-dir ${spill} ${reason}`));
      expect(stderr).not.toContain('read');
      expect(code).toBe(2);
    }
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

  it('leaves no file when training from files is stopped, and clears those of such a run that was killed', async () => {
    const spill = folderOf('training');
    const endless = (name: string) =>
      start(train(name, '--memory-budget', `${baseBytes(1)}`, '--spill-dir', spill, '--max-iter', '100000'));
    const stopped = endless('stopped-training');
    await stopped.stderrMatches(/iteration 3\//);
    const [own] = readdirSync(spill);
    expect(readdirSync(join(spill, own)).length).toBeGreaterThan(1);
    stopped.child.kill('SIGINT');
    expect(await stopped.outcome).toMatchObject({ code: 130 });
    expect(readdirSync(spill)).toEqual([]);
    const killed = endless('killed-training');
    await killed.stderrMatches(/iteration 2\//);
    killed.child.kill('SIGKILL');
    await killed.outcome;
    expect(readdirSync(spill)).toHaveLength(1);
    expect(await factorflow(...train('after', ...spilling(spill)))).toMatchObject({ code: 0 });
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
    const leasts: string[] = [];
    for (const algorithm of ['als', 'sgd']) {
      const asked = (least: string) =>
        train(`least-${algorithm}`, '--memory-budget', least, '--algorithm', algorithm, '--max-iter', '1');
      const planned = (least: string) => [
        'plan',
        ...asked(least)
          .slice(1)
          .filter((word, i, words) => ![word, words[i - 1]].includes('--model-dir')),
      ];
      const least = await leastOf(asked('100MiB'));
      leasts.push(least);
      // The plan reports the same minimum, also for a budget that is only slightly smaller.
      expect(await leastOf(planned('100MiB'))).toBe(least);
      expect(await leastOf(asked(`${Number.parseFloat(least) - 8}MiB`))).toBe(least);
      expect(await factorflow(...asked(least))).toMatchObject({ code: 0 });
      expect(await factorflow(...planned(least))).toMatchObject({ code: 0 });
    }
    expect(Number.parseFloat(leasts[0])).toBeLessThan(Number.parseFloat(leasts[1]));
  });
});
