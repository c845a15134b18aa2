/**
 * `npm run reproduce` on made files of each kind of split, and, small, on the published sets in
 * FACTORFLOW_DATA.
 */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readOptions } from '../../scripts/reproduce/options.ts';
import type { Settings } from '../../scripts/reproduce/search.ts';
import { publishedRows, sets } from '../../scripts/reproduce/sets.ts';
import { dataFolder } from '../support/data-folder.ts';
import { everyNth, isDeep } from '../support/deep.ts';
import { reproduce, reproduceFolder } from './run-reproduce.ts';

const folder = reproduceFolder();

/** 20 users in two groups that choose items of their own half of 12, as NCF's files. */
function ncfFolder(
  name: string,
  change: (lines: { train: string[]; negative: string[] }) => void = () => {},
) {
  const made = mkdtempSync(join(folder, `${name}-`));
  const [train, test, negative] = [[] as string[], [] as string[], [] as string[]];
  for (let user = 0; user < 20; user++) {
    const first = (user % 2) * 6;
    for (let k = 0; k < 4; k++) train.push(`${user}\t${first + ((user + k) % 6)}\t5\t1`);
    test.push(`${user}\t${first + ((user + 4) % 6)}\t5\t1`);
    const others = Array.from({ length: 6 }, (_, k) => 6 - first + k);
    negative.push(`(${user},${first + ((user + 4) % 6)})\t${others.join('\t')}`);
  }
  change({ train, negative });
  for (const [end, lines] of Object.entries({
    'train.rating': train,
    'test.rating': test,
    'test.negative': negative,
  }))
    writeFileSync(join(made, `ml-1m.${end}`), `${lines.join('\n')}\n`);
  return made;
}

describe('on made files', () => {
  it('prints what it reads, the commands and the table, and ranks candidates', async () => {
    const { code, stdout, stderr } = await reproduce('ncf-ml1m', '--data', ncfFolder('clean'), '--small');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain(
      '20 users, 12 items, 80 train pairs, 20 test pairs, 120 candidates\n$ factorflow train',
    );
    expect(stdout).toMatch(
      /\$ factorflow evaluate \S+ \S+ --ranking --candidates \S+ --exclude \S+ --metrics hit-rate,ndcg/,
    );
    expect(stdout).toMatch(/iALS +0\.5505 +0\.3862 +0\.7109 +0\.4382/);
    expect(stdout).toMatch(/FactorFlow \(--small\) +1\.0000/);
  });

  it.runIf(isDeep)(
    'counts candidates that are train or test pairs; train pairs are ranked if asked for',
    async () => {
      const data = ncfFolder('candidates', ({ negative }) => {
        negative[0] = '(0,4)\t0\t4\t11\t11';
      });
      const left = await reproduce('ncf-ml1m', '--data', data, '--small');
      for (const text of [
        '1 candidates repeat another',
        '1 candidates are test pairs',
        '1 candidates are train pairs; they are left out',
      ])
        expect(left.stdout).toContain(text);
      const kept = await reproduce('ncf-ml1m', '--data', data, '--small', '--seen-candidates', 'keep');
      expect(kept.stdout).toContain('1 candidates are train pairs; they are ranked');
      expect(kept.stdout).not.toContain('--exclude');
    },
  );

  it.runIf(isDeep)('refuses test pairs that are in train, unless they are allowed', async () => {
    const data = ncfFolder('leaked', ({ train }) => train.push('0\t4\t5\t1'));
    const refused = await reproduce('ncf-ml1m', '--data', data, '--small');
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain('1 test pairs are in the training part');
    expect(refused.stdout).not.toContain('$ factorflow');
    const allowed = await reproduce('ncf-ml1m', '--data', data, '--small', '--allow-leaked');
    expect(allowed.code).toBe(0);
    expect(allowed.stdout).toContain('1 test pairs are in train');
  });

  it.runIf(isDeep)('counts users without a train pair as misses', async () => {
    const data = ncfFolder('untrained', ({ train }) => train.splice(0, 4));
    const { stdout } = await reproduce('ncf-ml1m', '--data', data, '--small');
    expect(stdout).toContain('1 test users have no train pair; they count as misses');
    expect(stdout).toMatch(/FactorFlow \(--small\) +0\.95/);
  });

  it.runIf(isDeep)(
    'chooses settings on a part of train, keeps them, and takes them the next time',
    async () => {
      const [data, settings] = [ncfFolder('search'), join(folder, 'settings.json')];
      const before = await reproduce('ncf-ml1m', '--data', data, '--settings', settings);
      expect([before.code, before.stderr]).toEqual([3, expect.stringContaining('no settings for ncf-ml1m')]);
      const searchArgs = ['ncf-ml1m', '--data', data, '--settings', settings, '--search', '--trials', '2'];
      const searched = await reproduce(...searchArgs);
      expect(searched.code, searched.stderr).toBe(0);
      const commands = searched.stdout.match(/^\$ factorflow \w+/gm);
      expect(commands).toEqual(
        ['split', 'tune', 'tune', 'tune', 'train', 'evaluate'].map((c) => `$ factorflow ${c}`),
      );
      const tunes = searched.stdout.match(/^\$ factorflow tune .*$/gm) ?? [];
      expect(tunes.filter((line) => line.includes('test.parquet'))).toEqual([]);
      const kept = JSON.parse(readFileSync(settings, 'utf8')) as Settings;
      expect(kept.chosen).toMatchObject({ metric: 'hit-rate@100', trials: 13 });
      const again = await reproduce('ncf-ml1m', '--data', data, '--settings', settings);
      expect(again.stdout).toContain(`--rank ${kept.flags.rank} `);
      expect(again.stdout).toContain('13 tried in');
    },
  );

  it('says which files it looks for, and prints its help', async () => {
    const none = await reproduce('gowalla', '--data', folder);
    expect(none.code).toBe(3);
    expect(none.stderr).toContain('Give a folder with train.txt, test.txt, or with train.parquet');
    expect(await reproduce('--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('--search') });
  });
});

it.each([
  [['nosuch', '--data', 'x'], 'no set "nosuch": choose one of gowalla, yelp2018'],
  [['--data', 'x'], 'no name of a set: choose one of'],
  [['gowalla', 'yelp2018', '--data', 'x'], 'no set "gowalla yelp2018"'],
  [['gowalla', '--data', 'x', '--rnak', '8'], "Unknown option '--rnak'"],
  [['gowalla', '--data', 'x', '--rank', 'y'], '--rank takes a whole number, not "y"'],
  [['gowalla', '--data', 'x', '--seen-candidates', 'y'], 'takes keep or leave-out, not "y"'],
  [['gowalla', '--data', 'x', '--scale', '1'], '--scale cannot be used with gowalla, which reads the files'],
  [['clmf-ablation', '--data', 'x'], '--data cannot be used with clmf-ablation, which generates'],
  [['cumf-netflix', '--search'], '--search cannot be used with cumf-netflix, which generates'],
  [
    ['gowalla', '--data', 'x', '--attributes'],
    '--attributes cannot be used with gowalla, whose items have none',
  ],
  [['cumf-netflix', '--scale', '2'], '--scale takes a number above 0 and at most 1, not "2"'],
  [['cumf-netflix', '--scale', ' '], '--scale takes a number above 0 and at most 1, not " "'],
  [['cumf-netflix', '--device', 'tpu'], '--device takes auto, cpu or gpu, not "tpu"'],
])('%j is refused', (args, text) => {
  expect(() => readOptions(args)).toThrow(text);
});

/** Least value of the set's first metric at rank 8 after 3 iterations, over 1,000 users. */
const least: Readonly<Record<string, number>> = {
  gowalla: 0.07,
  'cmn-citeulike-a': 0.45,
  'cvae-citeulike-a': 0.012,
  'cvae-citeulike-t': 0.04,
};

describe('on published sets, small', () => {
  for (const { name, folder: data } of everyNth(sets, 4, 1)) {
    const found = dataFolder(data);
    it.skipIf(!found)(`measures ${name}`, async () => {
      const { code, stdout, stderr } = await reproduce(name, '--data', found as string, '--small');
      expect(code, stderr).toBe(0);
      const row = /^FactorFlow \(--small\) +(\S+)/m.exec(stdout);
      expect(Number(row?.[1])).toBeGreaterThan(least[name] ?? 0);
    });
  }
});

it.skipIf(!dataFolder('cvae-citeulike-a') || !dataFolder('citeulike-a'))(
  'attributes add a second row, of a model that was trained with them',
  async () => {
    const data = resolve(dataFolder('citeulike-a')!, '..');
    const { code, stdout, stderr } = await reproduce(
      'cvae-citeulike-a',
      '--data',
      data,
      '--small',
      '--attributes',
    );
    expect(code, stderr).toBe(0);
    const recalls = [...stdout.matchAll(/^FactorFlow \(--small\).* (\S+)$/gm)].map(([, last]) =>
      Number(last),
    );
    expect(recalls).toHaveLength(2);
    expect(stdout).toMatch(/\$ factorflow train .*--item-attributes \S+attributes\.parquet/);
    expect(recalls[1]).not.toBe(recalls[0]);
    expect(recalls[1]).toBeGreaterThan(0.04);
  },
);

it.each(sets)('$name has published rows of what it measures', ({ name, metrics, k }) => {
  const { source, rows } = publishedRows(name);
  const measured = metrics.flatMap((metric) => k.map((length) => `${metric}@${length}`));
  expect(source).toMatch(/\S/);
  for (const { values } of rows) expect(Object.keys(values).toSorted()).toEqual(measured.toSorted());
});
