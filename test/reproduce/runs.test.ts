/** `npm run reproduce` on generated ratings: small forms of each experiment, and what its tables count. */
import { describe, expect, it } from 'vitest';
import {
  cardFigure,
  cardPoints,
  iterationCells,
  pointsOf,
  summarize,
  techniqueCells,
} from '../../scripts/reproduce/tables.ts';
import { describeLoad, type MeasuredRun } from '../../scripts/reproduce/measure-run.ts';
import { runs } from '../../scripts/reproduce/runs.ts';
import { everyNth } from '../support/deep.ts';
import { reproduce, reproduceFolder } from './run-reproduce.ts';

reproduceFolder();

const course = (...rmse: readonly number[]) =>
  rmse.map((testRmse, k) => ({ iteration: k + 1, seconds: k === 0 ? 9 : k, loss: 10 - k, testRmse }));

describe('small, on the CPU', () => {
  for (const { name, variants, published } of everyNth(runs, 3)) {
    // One of them at another scale and rank.
    const other = name === 'cumf-netflix' ? ['--scale', '0.001', '--rank', '4'] : [];
    const ratings = other.length === 0 ? '0.002 (--small): 960 users' : '0.001 (as given): 480 users';
    it(`${name} prints its commands, iterations, and the paper's figures`, async () => {
      const { code, stdout, stderr } = await reproduce(name, '--small', '--device', 'cpu', ...other);
      expect([code, stderr]).toEqual([0, '']);
      const own = variants.filter(({ only = 'cpu' }) => only === 'cpu');
      expect(stdout.match(/^\$ factorflow \w+/gm)).toEqual([
        '$ factorflow generate',
        ...own.map(() => '$ factorflow train'),
      ]);
      expect(stdout).toContain(`scale ${ratings}`);
      expect(stdout).toContain(`--rank ${other.length === 0 ? 8 : 4} `);
      for (const { label } of own) {
        const row = stdout.split('\n').find((line) => line.startsWith(`${label}  `));
        expect(row, label).toMatch(/[\d,]+ .* of 3 .* [01]\.\d{4}$/);
      }
      expect(stdout).toMatch(/^3 +[\d.]+ +\d+\.\d{4} +[01]\.\d{4}/m);
      for (const { figure, source } of published) {
        expect(stdout).toContain(figure);
        expect(stdout).toContain(source);
      }
    });
  }
});

describe('the summary of a course', () => {
  it('has the median of the iterations after the first, and the way to within 1 %', () => {
    const summary = summarize(pointsOf(course(1, 0.805, 0.9, 0.807, 0.8)));
    expect(summary.secondsAnIteration).toBe(2.5);
    expect(summary.near).toEqual({ iterations: 4, seconds: 9 + 1 + 2 + 3, testRmse: 0.807 });
    expect(summary.last.iterations).toBe(5);
  });

  it('of one iteration has its seconds; between distant points a mean', () => {
    expect(summarize(pointsOf(course(1)))).toMatchObject({ secondsAnIteration: 9, near: { iterations: 1 } });
    const points = [
      { iterations: 1, seconds: 5, testRmse: 1 },
      { iterations: 5, seconds: 13, testRmse: 1 },
    ];
    expect(summarize(points).secondsAnIteration).toBe(2);
  });
});

describe('tables', () => {
  const measured: MeasuredRun = {
    device: { kind: 'cpu', description: 'two threads', software: false },
    ratings: {
      scale: 1,
      scaleReason: '',
      users: 1,
      items: 1,
      ratings: 10,
      testRatings: 1,
      bestTestRmse: 1,
    },
    load: { average: 3, cores: 2 },
    variants: [
      { label: 'Cholesky', flags: '', iterations: course(1, 0.9, 0.8) },
      { label: 'Cholesky, one thread', flags: '', iterations: course(1, 0.9) },
    ],
  };
  const clmf = runs.find(({ name }) => name === 'clmf-ablation');
  if (clmf === undefined) throw new Error('no clmf-ablation');

  it('have an iteration a row, with empty cells after the end of a shorter course', () => {
    expect(iterationCells(measured)).toEqual([
      ['iteration', 'Cholesky: seconds', 'loss a rating', 'test RMSE'].concat([
        'Cholesky, one thread: seconds',
        'loss a rating',
        'test RMSE',
      ]),
      ['1', '9', '1.0000', '1.0000', '9', '1.0000', '1.0000'],
      ['2', '10', '0.9000', '0.9000', '10', '0.9000', '0.9000'],
      ['3', '12', '0.8000', '0.8000', '', '', ''],
    ]);
  });

  it('compare variants with the first, and say which were not run', () => {
    const cells = techniqueCells(clmf, measured).slice(1);
    expect(cells.map((row) => row.at(-1))).toEqual([
      '0.67 times as long (Cholesky, one thread)',
      'no flag: the CPU kernels are compiled with it',
      'no counterpart: a CPU has caches only',
      'no flag: the CPU kernels are compiled with it',
      'not run',
    ]);
    const busy = { ...measured, load: { average: 3.1, cores: 2 } };
    expect(techniqueCells(clmf, busy)[1].at(-1)).toMatch(/^not comparable: the machine was busy/);
    expect(describeLoad(busy)).toContain('other programs ran');
    expect(describeLoad(measured)).toBe('Load average 3 on 2 cores at the end.');
    const onGpu = { ...measured, device: { ...measured.device, kind: 'gpu' as const } };
    expect(techniqueCells(clmf, onGpu)[2].at(-1)).toBe('see the table of the bench');
  });

  it('take figures of the card from bench/results, or name what is missing', () => {
    expect(cardFigure({ result: 'techniques', row: 'bin 1', column: 'of the first' })).toBe(
      '2.27 times as long (bin 1; result `techniques`)',
    );
    const missing = { result: 'techniques', row: 'bin 3', column: 'of the first' };
    expect(() => cardFigure(missing)).toThrow('result techniques has no of the first of "bin 3"');
    const none = {
      label: '',
      result: 'rmse-seconds',
      where: { solver: 'LU' },
      counted: 'iteration',
    } as const;
    expect(() => cardPoints(none)).toThrow('result rmse-seconds has no rows with {"solver":"LU"}');
    expect(() => cardPoints({ ...none, result: 'nosuch' })).toThrow('bench/results has no result nosuch');
  });
});
